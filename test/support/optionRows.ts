// The rows of docs/engine-options.md: the option of each, and when the program changes.
import { inPlace, nameOf, replacing, type Change, type Kind, type Values } from "./optionKinds.ts";

/** The runs of the CLI by their stack, in order. The first one of each creates its resources. */
export const runs = {
  main: [
    ...(["first", "changes", "target", "program", "refresh", "protect"] as const),
    ...(["beforeVolume", "beforeCluster", "volume", "cluster"] as const),
  ],
  dynamic: ["dynamic"],
  plans: ["planFirst", "plan", "otherPlan", "ignoreProtect", "excludeProtected", "destroyIgnoring"],
  hooks: ["hookCreate", "hookUpdate", "hookDelete", "hookError", "hookFleet"],
} as const;
/** A stack of the test. */
export type OnStack = keyof typeof runs;
/** One of the runs. */
export type Run = (typeof runs)[OnStack][number];

/** A row with one resource for each column. */
export interface Row {
  /** The prefix of the names of its resources. */
  readonly key: string;
  /** Its title on the page. */
  readonly option: string;
  readonly done: string;
  /** The run whose result is recorded. */
  readonly run: Run;
  /** A different run for these. */
  readonly runOf?: Readonly<Partial<Record<Kind, Run>>>;
  /** The program's change by then. */
  readonly change?: Change;
  readonly options?: (kind: Kind) => Values;
  /** Those of the changed program, if different. */
  readonly later?: (kind: Kind) => Values;
  /** Whether the switches that allow a loss are on. */
  readonly mayLose?: true;
  readonly app?: string;
  /** Whether the program is reverted after that run, so that a refusal does not stop later runs. */
  readonly isOnce?: true;
  /** Whether the program declares it only from that run on. */
  readonly isNew?: true;
}

/** Ids of objects that others created, for the program to import, by name. */
export const foreign = new Map<string, string>();
const imports = (key: string) => (kind: Kind) => ({ import: foreign.get(nameOf({ key }, kind)) });
/** A failed registration prevents the engine from all deletions of its run. */
const guarded = { Volume: "refresh", PostgresCluster: "refresh" } as const;
const protect = () => ({ protect: true });
const hook = (on: string, name: string) => ({ ...{ option: `\`${on}\``, options: () => ({ hooks: { [on]: name } }) } });
const failing = (key: string, on: string) => ({ key, done: "the hook fails", ...hook(on, `fails-${on}`) });

/** All rows. */
export const rows: readonly Row[] = [
  {
    ...{ key: "plain", option: "no option", done: "a change that replaces", run: "changes", change: "big" },
    // Check refuses it, and that ends a run.
    ...{ runOf: { Volume: "volume", PostgresCluster: "cluster" }, isOnce: true },
  },
  {
    ...{ key: "switch", option: "no option", done: "the same, with the switch on", run: "changes", change: "big" },
    mayLose: true,
  },
  { key: "gone", option: "no option", done: "removed from the program", run: "changes", change: "removed" },
  { key: "name", option: "no option", done: "renamed in the program", run: "changes", change: "renamed" },
  {
    ...{ key: "ignore", option: "`ignoreChanges`", done: "a change that replaces", run: "changes", change: "big" },
    options: (kind) => ({ ignoreChanges: [replacing[kind]] }),
  },
  {
    ...{ key: "protect-gone", option: "`protect`", done: "removed from the program", run: "protect" },
    ...{ change: "removed", options: protect },
  },
  {
    ...{ key: "unprotect-gone", option: "`up --ignore-protect`", done: "protected, and removed from the program" },
    ...{ run: "ignoreProtect", change: "removed", options: protect },
  },
  {
    ...{ key: "exclude", option: "`destroy --exclude-protected`", done: "protected", run: "excludeProtected" },
    options: protect,
  },
  {
    ...{ key: "exclude-other", option: "`destroy --exclude-protected`", done: "not protected" },
    run: "excludeProtected",
  },
  {
    ...{ key: "unprotect", option: "`destroy --ignore-protect`", done: "protected", run: "destroyIgnoring" },
    options: protect,
  },
  {
    ...{ key: "retain", option: "`retainOnDelete`", done: "`--replace`", run: "changes" },
    options: () => ({ retainOnDelete: true }),
  },
  {
    ...{ key: "retain-gone", option: "`retainOnDelete`", done: "removed from the program", run: "changes" },
    ...{ change: "removed", options: () => ({ retainOnDelete: true }) },
  },
  {
    ...{ key: "with", option: "`deletedWith` an App", done: "both removed from the program", run: "changes" },
    ...{ change: "removed", app: "other", options: () => ({ deletedWith: "other", dependsOn: "other" }) },
  },
  {
    ...{ key: "with-force", option: "`deletedWith` an App", done: "the same, the App with `forceDestroy`" },
    ...{ run: "changes", change: "removed", app: "forced" },
    options: () => ({ deletedWith: "forced", dependsOn: "forced" }),
  },
  {
    ...{ key: "before", option: "`deleteBeforeReplace`", done: "`--replace`", run: "changes" },
    options: () => ({ deleteBeforeReplace: true }),
    // With --continue-on-error, the CLI waits for ever once such a deletion has failed.
    runOf: { Volume: "beforeVolume", PostgresCluster: "beforeCluster" },
  },
  {
    ...{ key: "on", option: "`replaceOnChanges`", done: "a change of what it names", run: "changes", change: "small" },
    ...{ runOf: guarded, isOnce: true },
    options: (kind) => ({ replaceOnChanges: [inPlace[kind]] }),
  },
  {
    ...{ key: "rep-with", option: "`replaceWith`", done: "what it names is replaced", run: "changes" },
    ...{ runOf: guarded, options: (kind) => ({ replaceWith: kind in guarded ? "later-trigger" : "first-trigger" }) },
  },
  {
    ...{ key: "trigger", option: "`replacementTrigger`", done: "its value changes", run: "changes" },
    ...{
      runOf: guarded,
      isOnce: true,
      options: () => ({ replacementTrigger: "1" }),
      later: () => ({ replacementTrigger: "2" }),
    },
  },
  {
    ...{ key: "mapped", option: "`envVarMappings` of a `Provider`", done: "the token comes from another variable" },
    ...{ run: "changes", options: () => ({ mapped: "OTHER_TOKEN" }), later: () => ({ mapped: "THIRD_TOKEN" }) },
  },
  {
    ...{ key: "alias", option: "`aliases`", done: "renamed in the program", run: "changes", change: "renamed" },
    later: (kind) => ({ aliases: [{ name: nameOf({ key: "alias" }, kind) }] }),
  },
  {
    ...{ key: "import", option: "`import`", done: "an object that others created", run: "first" },
    options: imports("import"),
  },
  {
    ...{ key: "import-dynamic", option: "`import`, dynamic binding", done: "an object that others created" },
    ...{ run: "dynamic", options: imports("import-dynamic") },
  },
  {
    ...{ key: "import-other", option: "`import`", done: "another object than the state's", run: "changes" },
    ...{ change: "other", later: imports("import-other") },
  },
  { key: "target", option: "`--target`", done: "it, and it changes", run: "target", change: "small" },
  { key: "target-gone", option: "`--target`", done: "it, and it is removed", run: "target", change: "removed" },
  { key: "target-other", option: "`--target`", done: "others, and it changes", run: "target", change: "small" },
  { key: "replace", option: "`--replace`", done: "it", run: "changes" },
  {
    ...{ key: "go-on", option: "`--continue-on-error`", done: "others fail, and it changes", run: "refresh" },
    change: "small",
  },
  { key: "plan", option: "`up --plan`", done: "a change that the plan has", run: "plan", change: "small" },
  {
    ...{ key: "plan-other", option: "`up --plan`", done: "a change that the plan does not have", run: "otherPlan" },
    ...{ change: "small", isOnce: true },
  },
  { key: "refresh", option: "`up --refresh`", done: "others deleted it", run: "refresh" },
  {
    ...{ key: "program", option: "`refresh --run-program`", done: "a change that replaces", run: "program" },
    ...{ change: "big", isOnce: true },
  },
  {
    ...{ key: "program-gone", option: "`refresh --run-program`", done: "removed from the program", run: "program" },
    ...{ change: "removed", isOnce: true },
  },
  { key: "program-lost", option: "`refresh --run-program`", done: "others deleted it", run: "program" },
  { key: "taint", option: "`state taint`", done: "then `up`", run: "changes" },
  { key: "forget", option: "`state delete`", done: "then `up`", run: "changes" },
  {
    ...{ key: "forget-gone", option: "`state delete`", done: "and removed from the program", run: "changes" },
    change: "removed",
  },
  { key: "move", option: "`state rename`", done: "and renamed in the program", run: "changes", change: "renamed" },
  { ...failing("hook-create", "beforeCreate"), run: "hookCreate" },
  { ...failing("hook-created", "afterCreate"), run: "hookCreate" },
  { ...failing("hook-update", "beforeUpdate"), run: "hookUpdate", change: "small" },
  { ...failing("hook-updated", "afterUpdate"), run: "hookUpdate", change: "small" },
  { ...failing("hook-delete", "beforeDelete"), run: "hookDelete", change: "removed", mayLose: true },
  { ...failing("hook-deleted", "afterDelete"), run: "hookDelete", change: "removed", mayLose: true },
  {
    ...{ key: "hook-error", done: "the service refuses its creation once", ...hook("onError", "again") },
    ...{ run: "hookError", runOf: { Fleet: "hookFleet" }, isNew: true },
  },
];
/** The row of a key. */
export const byKey = (key: string): Row => {
  const row = rows.find((one) => one.key === key);
  if (!row) throw new Error(`no row ${key}`);
  return row;
};
