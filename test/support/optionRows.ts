// The rows of docs/engine-options.md: the option of each, and the program's resources before and afterwards.

/** The columns. */
export const kinds = ["Volume", "Machine", "PostgresCluster", "Secret"] as const;
/** One of them. */
export type Kind = (typeof kinds)[number];
type Values = Readonly<Record<string, unknown>>;
const runs = [
  ...(["first", "changes", "target", "program", "refresh", "protect"] as const),
  ...(["beforeVolume", "beforeCluster", "volume", "cluster", "dynamic"] as const),
];
/** The runs of the CLI, in order. */
export type Run = (typeof runs)[number];

/** A row of four resources. */
export interface Row {
  /** The prefix of the names of its four resources. */
  readonly key: string;
  /** Its title on the page. */
  readonly option: string;
  readonly done: string;
  /** The run whose result is recorded. */
  readonly run: Run;
  /** A different run for these. */
  readonly runOf?: Readonly<Partial<Record<Kind, Run>>>;
  /** The program's change by then: none, a change in place, one that replaces, … */
  readonly change?: "small" | "big" | "removed" | "renamed" | "other";
  readonly options?: (kind: Kind) => Values;
  /** Those of the changed program, if different. */
  readonly later?: (kind: Kind) => Values;
  /** Whether the switches that allow a loss are on. */
  readonly mayLose?: true;
  readonly app?: string;
  /** Whether the program is reverted after that run, so that a refusal does not stop later runs. */
  readonly isOnce?: true;
}

/** The image of its Machines. */
export const image = "registry.example.com/web:1";
/** The name of the secret of a row. */
export const secretName = (key: string): string => key.toUpperCase().replaceAll("-", "_");
const inputs: Readonly<Record<Kind, (key: string, app: string, change?: Row["change"]) => Values>> = {
  Volume: (_, app, change) => ({ app, region: "ams", sizeGb: change === "small" ? 2 : 1, encrypted: change !== "big" }),
  Machine: (_, app, change) => ({
    ...{ app, region: change === "big" ? "fra" : "ams" },
    config: { image, ...(change === "small" ? { env: { LEVEL: "2" } } : {}) },
  }),
  PostgresCluster: (_, __, change) => ({
    region: "fra",
    plan: change === "big" ? "starter" : "basic",
  }),
  Secret: (key, app, change) => ({
    ...{ app, name: `${secretName(key)}${change === "big" || change === "other" ? "_2" : ""}` },
    value: change === "small" ? "2" : "1",
  }),
};
const replacing = { Volume: "encrypted", Machine: "region", PostgresCluster: "plan", Secret: "name" } as const;
const inPlace = {
  Volume: "sizeGb",
  Machine: "config",
  PostgresCluster: "deletionProtection",
  Secret: "value",
} as const;
const switches: Readonly<Partial<Record<Kind, Values>>> = {
  Volume: { allowDataLoss: true },
  PostgresCluster: { deletionProtection: false },
};

const short = (kind: Kind): string => (kind === "PostgresCluster" ? "cluster" : kind.toLowerCase());
/** The name of a resource in the program. */
export const nameOf = ({ key }: Pick<Row, "key">, kind: Kind): string => `${key}-${short(kind)}`;
/** Its name after the change. */
export const laterName = (row: Row, kind: Kind): string =>
  nameOf(row.change === "renamed" ? { key: `${row.key}-new` } : row, kind);

/** Ids of objects that others created, for the program to import, by name. */
export const foreign = new Map<string, string>();
const imports = (key: string) => (kind: Kind) => ({ import: foreign.get(nameOf({ key }, kind)) });

/** All rows. */
export const rows: readonly Row[] = [
  {
    ...{ key: "plain", option: "no option", done: "a change that replaces", run: "changes", change: "big" },
    // Check refuses it, and that ends a run.
    ...{ runOf: { Volume: "volume", PostgresCluster: "cluster" }, isOnce: true },
  },
  {
    key: "switch",
    option: "no option",
    done: "the same, with the switch on",
    run: "changes",
    change: "big",
    mayLose: true,
  },
  { key: "gone", option: "no option", done: "removed from the program", run: "changes", change: "removed" },
  { key: "name", option: "no option", done: "renamed in the program", run: "changes", change: "renamed" },
  {
    ...{ key: "ignore", option: "`ignoreChanges`", done: "a change that replaces", run: "changes", change: "big" },
    options: (kind) => ({ ignoreChanges: [replacing[kind]] }),
  },
  {
    ...{
      key: "protect-gone",
      option: "`protect`",
      done: "removed from the program",
      run: "protect",
      change: "removed",
    },
    options: () => ({ protect: true }),
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
    ...{
      key: "with-force",
      option: "`deletedWith` an App",
      done: "the same, the App with `forceDestroy`",
      run: "changes",
    },
    ...{ change: "removed", app: "forced", options: () => ({ deletedWith: "forced", dependsOn: "forced" }) },
  },
  {
    ...{ key: "before", option: "`deleteBeforeReplace`", done: "`--replace`", run: "changes" },
    options: () => ({ deleteBeforeReplace: true }),
    // With --continue-on-error, the CLI waits for ever once such a deletion has failed.
    runOf: { Volume: "beforeVolume", PostgresCluster: "beforeCluster" },
  },
  {
    ...{ key: "on", option: "`replaceOnChanges`", done: "a change of what it names", run: "changes", change: "small" },
    // A failed registration prevents the engine from all deletions of its run.
    ...{ runOf: { Volume: "refresh", PostgresCluster: "refresh" }, isOnce: true },
    options: (kind) => ({ replaceOnChanges: [inPlace[kind]] }),
  },
  {
    ...{ key: "alias", option: "`aliases`", done: "renamed in the program", run: "changes", change: "renamed" },
    later: (kind) => ({ aliases: [{ name: nameOf({ key: "alias" }, kind) }] }),
  },
  {
    key: "import",
    option: "`import`",
    done: "an object that others created",
    run: "first",
    options: imports("import"),
  },
  {
    ...{
      key: "import-dynamic",
      option: "`import`, dynamic binding",
      done: "an object that others created",
      run: "dynamic",
    },
    options: imports("import-dynamic"),
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
    key: "go-on",
    option: "`--continue-on-error`",
    done: "others fail, and it changes",
    run: "refresh",
    change: "small",
  },
  { key: "refresh", option: "`up --refresh`", done: "others deleted it", run: "refresh" },
  {
    key: "program",
    option: "`refresh --run-program`",
    done: "a change that replaces",
    run: "program",
    change: "big",
    isOnce: true,
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
];
/** The row of a key. */
export const byKey = (key: string): Row => {
  const row = rows.find((one) => one.key === key);
  if (!row) throw new Error(`no row ${key}`);
  return row;
};

/** A resource in the form that the program reads. */
export interface Declared {
  readonly kind: string;
  readonly name: string;
  readonly inputs: Values;
  readonly options: Values;
}

/** The run in which a cell is recorded. */
export const runOf = (row: Row, kind: Kind): Run => row.runOf?.[kind] ?? row.run;

/** A refusal or a preview is reverted. */
const isOnceOnly = (row: Row, kind: Kind): boolean =>
  row.isOnce === true && (row.runOf === undefined || row.runOf[kind] !== undefined);

/** The program of a run. */
export function declared(run: Run): Declared[] {
  const isLater = runs.indexOf(run) > 0;
  const apps = isLater ? [] : [{ name: "other" }, { name: "forced", forceDestroy: true }];
  const all = rows
    .filter((row) => (row.run === "dynamic") === (run === "dynamic"))
    .flatMap((row) =>
      kinds.flatMap((kind): Declared[] => {
        const at = runOf(row, kind);
        const isChanged =
          at !== "first" &&
          at !== "dynamic" &&
          (isOnceOnly(row, kind) ? at === run : runs.indexOf(at) <= runs.indexOf(run));
        if (isChanged && row.change === "removed") return [];
        const { change } = isChanged ? row : {};
        // No other input of a cluster changes in place.
        const isProtected =
          kind === "PostgresCluster" && row.change === "small" ? { deletionProtection: isChanged } : {};
        const more = row.mayLose ? switches[kind] : isProtected;
        return [
          {
            ...{ kind, name: isChanged ? laterName(row, kind) : nameOf(row, kind) },
            inputs: { ...inputs[kind](row.key, row.app ?? "shop", change), ...more },
            options: { ...row.options?.(kind), ...(isChanged ? row.later?.(kind) : {}) },
          },
        ];
      }),
    );
  return [...apps.map((app) => ({ kind: "App", name: app.name, inputs: app, options: {} })), ...all];
}

/** A program that allows the deletion of everything in the state: the last or first declaration of each resource. */
export function declaredForTheEnd(isInState: (name: string) => boolean): Declared[] {
  const all = new Map([...declared("first"), ...declared("cluster")].map((one) => [one.name, one]));
  return [...all.values()].filter(({ name }) => isInState(name));
}
