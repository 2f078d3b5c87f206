// What the engine's own options and commands make of what holds data and of what does not (R9, R11, R12): every cell of
// docs/engine-options.md is played with the real CLI. `UPDATE_DOCS=1` writes the page; otherwise it is compared.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { makeApp, makeCluster, makeMachine, makeVolume, send } from "../support/around.ts";
import { errorsOf, held, onService, word, type Held } from "../support/optionMatrix.ts";
import { Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const kinds = ["Volume", "Machine", "PostgresCluster", "Secret"] as const;
type Kind = (typeof kinds)[number];
type Values = Readonly<Record<string, unknown>>;
type Run = "first" | "changes" | "target" | "program" | "refresh" | "protect" | "beforeVolume" | "beforeCluster" | "volume" | "cluster";

interface Row {
  /** Begins the names of its four resources. */
  readonly key: string;
  /** What the page calls it. */
  readonly option: string;
  readonly done: string;
  /** The run that is looked at. */
  readonly run: Run;
  /** Another one for these: check refuses, and one refusal by check ends a run. */
  readonly runOf?: Readonly<Partial<Record<Kind, Run>>>;
  /** What the program does by then: nothing, a change in place, one that replaces, … */
  readonly change?: "small" | "big" | "removed" | "renamed" | "other";
  readonly options?: (kind: Kind) => Values;
  /** Those of the changed program, where they are others. */
  readonly later?: (kind: Kind) => Values;
  /** Whether the switches that allow a loss are on. */
  readonly mayLose?: true;
  readonly app?: string;
}

const image = "registry.example.com/web:1";
const secretName = (key: string): string => key.toUpperCase().replaceAll("-", "_");
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
const inPlace = { Volume: "sizeGb", Machine: "config", PostgresCluster: "deletionProtection", Secret: "value" } as const;
const switches: Readonly<Partial<Record<Kind, Values>>> = {
  Volume: { allowDataLoss: true },
  PostgresCluster: { deletionProtection: false },
};

const short = (kind: Kind): string => (kind === "PostgresCluster" ? "cluster" : kind.toLowerCase());
const nameOf = ({ key }: Pick<Row, "key">, kind: Kind): string => `${key}-${short(kind)}`;
const laterName = (row: Row, kind: Kind): string => nameOf(row.change === "renamed" ? { key: `${row.key}-new` } : row, kind);

/** What others made, by name: ids that the program imports. */
const foreign = new Map<string, string>();
const imports = (key: string) => (kind: Kind) => ({ import: foreign.get(nameOf({ key }, kind)) });

const rows: readonly Row[] = [
  {
    ...{ key: "plain", option: "no option", done: "a change that replaces", run: "changes", change: "big" },
    runOf: { Volume: "volume", PostgresCluster: "cluster" },
  },
  { key: "switch", option: "no option", done: "the same, with the switch on", run: "changes", change: "big", mayLose: true },
  { key: "gone", option: "no option", done: "removed from the program", run: "changes", change: "removed" },
  { key: "name", option: "no option", done: "renamed in the program", run: "changes", change: "renamed" },
  {
    ...{ key: "ignore", option: "`ignoreChanges`", done: "a change that replaces", run: "changes", change: "big" },
    options: (kind) => ({ ignoreChanges: [replacing[kind]] }),
  },
  {
    ...{ key: "protect-gone", option: "`protect`", done: "removed from the program", run: "protect", change: "removed" },
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
    ...{ key: "with-force", option: "`deletedWith` an App", done: "the same, the App with `forceDestroy`", run: "changes" },
    ...{ change: "removed", app: "forced", options: () => ({ deletedWith: "forced", dependsOn: "forced" }) },
  },
  {
    ...{ key: "before", option: "`deleteBeforeReplace`", done: "`--replace`", run: "changes" },
    options: () => ({ deleteBeforeReplace: true }),
    // With --continue-on-error, the CLI waits for ever once such a deletion has failed.
    runOf: { Volume: "beforeVolume", PostgresCluster: "beforeCluster" },
  },
  {
    ...{ key: "on", option: "`replaceOnChanges`", done: "a change of what it names", run: "refresh", change: "small" },
    options: (kind) => ({ replaceOnChanges: [inPlace[kind]] }),
  },
  {
    ...{ key: "alias", option: "`aliases`", done: "renamed in the program", run: "changes", change: "renamed" },
    later: (kind) => ({ aliases: [{ name: nameOf({ key: "alias" }, kind) }] }),
  },
  { key: "import", option: "`import`", done: "an object that others made", run: "first", options: imports("import") },
  {
    ...{ key: "import-other", option: "`import`", done: "another object than the state's", run: "changes" },
    ...{ change: "other", later: imports("import-other") },
  },
  { key: "target", option: "`--target`", done: "it, and it changes", run: "target", change: "small" },
  { key: "target-gone", option: "`--target`", done: "it, and it is removed", run: "target", change: "removed" },
  { key: "target-other", option: "`--target`", done: "others, and it changes", run: "target", change: "small" },
  { key: "replace", option: "`--replace`", done: "it", run: "changes" },
  { key: "go-on", option: "`--continue-on-error`", done: "others fail, and it changes", run: "refresh", change: "small" },
  { key: "refresh", option: "`up --refresh`", done: "others deleted it", run: "refresh" },
  { key: "program", option: "`refresh --run-program`", done: "a change that replaces", run: "program", change: "big" },
  {
    ...{ key: "program-gone", option: "`refresh --run-program`", done: "removed from the program", run: "program" },
    change: "removed",
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
const byKey = (key: string): Row => {
  const row = rows.find((one) => one.key === key);
  if (!row) throw new Error(`no row ${key}`);
  return row;
};

const program = `
import { readFileSync } from "node:fs";
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const switches = process.env["LOSE"] ? { Volume: { allowDataLoss: true }, PostgresCluster: { deletionProtection: false } } : {};
const made: Record<string, pulumi.Resource> = {};
for (const { kind, name, inputs, options: { deletedWith, dependsOn, protect, ...options } } of JSON.parse(readFileSync("resources.json", "utf8"))) {
  const lose = process.env["LOSE"] !== undefined;
  const around = { deletedWith: made[deletedWith], dependsOn: lose ? [] : made[dependsOn] ?? [], protect: protect && !lose };
  made[name] = new machines[kind](name, { ...inputs, ...switches[kind] }, { ...options, ...around });
}
`;

/** A resource as the program reads it. */
interface Declared {
  readonly kind: string;
  readonly name: string;
  readonly inputs: Values;
  readonly options: Values;
}

const runs: readonly Run[] = [
  ...["first", "changes", "target", "program", "refresh", "protect"] as const,
  ...["beforeVolume", "beforeCluster", "volume", "cluster"] as const,
];

/** What the program declares in a run. */
function declared(run: Run): Declared[] {
  const isLater = runs.indexOf(run) > 0;
  const apps = isLater ? [] : [{ name: "other" }, { name: "forced", forceDestroy: true }];
  const all = rows.flatMap((row) =>
    kinds.flatMap((kind): Declared[] => {
      const at = row.runOf?.[kind] ?? row.run;
      const isOnce = at === "program" || at === "volume" || at === "cluster";
      const isChanged = at !== "first" && (isOnce ? at === run : runs.indexOf(at) <= runs.indexOf(run));
      if (isChanged && row.change === "removed") return [];
      const { change } = isChanged ? row : {};
      // No other input of a cluster changes in place.
      const isProtected = kind === "PostgresCluster" && row.change === "small" ? { deletionProtection: isChanged } : {};
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

let service: TestService;
let stack: Stack;
/** What the program still declares without its switch, and is gone all the same. */
const losses: string[] = [];
const file = "docs/engine-options.md";
const table = new Map<string, string>();
const urn = (kind: Kind, name: string): string => stack.urn(kind, name);
const urns = (key: string): string[] => kinds.map((kind) => urn(kind, nameOf(byKey(key), kind)));

async function makeForeign(): Promise<void> {
  for (const key of ["import", "import-other"]) {
    const [volume, machine, cluster] = await Promise.all([
      makeVolume(service, "shop", "ams"),
      makeMachine(service, "shop", { region: "ams", config: { image } }),
      makeCluster(service, key),
    ]);
    const name = `${secretName(key)}${key === "import" ? "" : "_2"}`;
    await send(service, "POST", `/v1/apps/shop/secrets/${name}`, { value: "1" });
    const ids = [`shop/${volume}`, `shop/${machine}`, cluster, `shop/${name}`];
    for (const [at, kind] of kinds.entries()) foreign.set(nameOf({ key }, kind), ids[at] ?? "");
  }
}

/** What others delete. */
async function deleteOutside(key: string, before: Held): Promise<void> {
  for (const kind of kinds) {
    const { id = "" } = before.live[nameOf({ key }, kind)] ?? {};
    const [app = "", name = ""] = id.split("/");
    if (kind === "PostgresCluster") await send(service, "DELETE", `/v1/postgres/${id}`);
    else await send(service, "DELETE", `/v1/apps/${app}/${kind.toLowerCase()}s/${name}${kind === "Machine" ? "?force=true" : ""}`);
  }
}

/** Runs the CLI with the program of a run, and puts down what became of the rows that it is about. */
async function play(run: Run, before: Held, ...args: string[]): Promise<string> {
  writeFileSync(join(stack.dir, "resources.json"), JSON.stringify(declared(run), undefined, 1));
  const { output } = await stack.run([...args, "--yes", "--skip-preview"]);
  const [after, there, errors] = [held(stack), await onService(service), errorsOf(output)];
  if (process.env["SHOW"]) console.log(run, process.uptime(), output);
  for (const row of rows) {
    for (const kind of kinds.filter((one) => (row.runOf?.[one] ?? row.run) === run)) {
      const [name, later] = [nameOf(row, kind), laterName(row, kind)];
      const original = before.live[name];
      const facts = {
        before: original,
        after: after.live[name],
        renamed: later === name ? undefined : after.live[later],
        imported: foreign.get(name),
        isThere: original !== undefined && there.has(original.id),
        isLeaving: original !== undefined && after.leaving.includes(original.id),
        isGoneOutside: row.done === "others deleted it",
        error: errors[name] ?? errors[later],
      };
      table.set(name, word(facts));
      const mayGo = row.mayLose || row.change === "removed" || row.change === "renamed" || facts.isGoneOutside;
      const holdsData = kind === "Volume" || kind === "PostgresCluster";
      if (original && holdsData && !mayGo && !there.has(original.id)) losses.push(`${name}: its original is gone`);
    }
  }
  return output;
}

const up = ["up", "--continue-on-error"];

beforeAll(async () => {
  service = await startService();
  await makeApp(service, "shop");
  await makeForeign();
  stack = new Stack(inject("installed"), "options", "pulumi-machines-plugin");
  stack.program(program);
  Object.assign(stack.env, { MACHINES_ENDPOINT: service.url, MACHINES_TOKEN: service.token });
  await stack.init({});
});
afterAll(() => service.close());

const after = (option: string, names: readonly string[]): string[] => names.flatMap((name) => [option, name]);
const both = ["Machine", "Secret"] as const;

/** The table as the page has it. */
function written(): string {
  const cells = rows.map((row) => [row.option, row.done, ...kinds.map((kind) => table.get(nameOf(row, kind)) ?? "")]);
  const lines = [["option", "what happens", ...kinds.map((kind) => `\`${kind}\``)], ["---", "---", ...kinds.map(() => "---")], ...cells];
  return lines.map((line) => `| ${line.join(" | ")} |\n`).join("");
}

test("every option does to every resource what the page says, and nothing is lost", async () => {
  await play("first", { live: {}, leaving: [] }, "up");
  const first = held(stack);
  await stack.ok("state", "taint", "--yes", ...urns("taint"));
  await stack.ok("state", "delete", "--yes", ...urns("forget"), ...urns("forget-gone"));
  for (const kind of kinds)
    await stack.ok("state", "rename", "--yes", urn(kind, nameOf({ key: "move" }, kind)), laterName(byKey("move"), kind));
  const byForce = [...urns("replace"), ...urns("retain"), ...both.map((kind) => urn(kind, nameOf({ key: "before" }, kind)))];
  await play("changes", first, ...up, ...after("--replace", byForce));
  await play("target", first, ...up, ...after("--target", [...urns("target"), ...urns("target-gone")]));
  await deleteOutside("program-lost", first);
  await play("program", first, "refresh", "--run-program");
  await deleteOutside("refresh", first);
  await play("refresh", first, ...up, "--refresh");
  await play("protect", first, ...up);
  await play("beforeVolume", first, "up", "--target-replace", urn("Volume", "before-volume"));
  await play("beforeCluster", first, "up", "--target-replace", urn("PostgresCluster", "before-cluster"));
  await play("volume", first, "up", "--target", urn("Volume", "plain-volume"));
  await play("cluster", first, "up", "--target", urn("PostgresCluster", "plain-cluster"));
  expect(losses).toEqual([]);

  const page = readFileSync(file, "utf8");
  const now = page.replace(/^\| option (?:.*\n)+?(?=\n|$(?![^]))/m, () => written());
  if (process.env["UPDATE_DOCS"]) writeFileSync(file, now);
  else expect(page, "UPDATE_DOCS=1 writes the page").toBe(now);
});

test("with the switches on everything goes", async () => {
  for (const command of ["up", "destroy"]) {
    const { code, output } = await stack.run([command, "--yes", "--skip-preview"], { env: { LOSE: "1" } });
    expect(code, output).toBe(0);
  }
  expect(held(stack)).toEqual({ live: {}, leaving: [] });
  // What the page says was kept is the user's to delete.
  console.log([...await onService(service)].length);
});
