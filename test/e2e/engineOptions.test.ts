// The effect of the engine's own options and commands on resources with and without data (R9, R11, R12). Every cell of
// docs/engine-options.md is tested with the real CLI, or most of them in `npm test`. `UPDATE_DOCS=1` writes the page;
// otherwise it is compared.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { makeApp, makeCluster, makeMachine, makeVolume, send } from "../support/around.ts";
import { errorsOf, held, onService, word, type Held } from "../support/optionMatrix.ts";
import * as matrix from "../support/optionRows.ts";
import { foreign, kinds, laterName, nameOf, rows, type Kind, type Row, type Run } from "../support/optionRows.ts";
import { Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const page = "docs/engine-options.md";
const program = `
import { readFileSync } from "node:fs";
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const lose = process.env["LOSE"] !== undefined;
const switches = { Volume: { allowDataLoss: true }, PostgresCluster: { deletionProtection: false }, App: { forceDestroy: true } };
const made: Record<string, pulumi.Resource> = {};
for (const { kind, name, inputs, options } of JSON.parse(readFileSync("resources.json", "utf8"))) {
  const { deletedWith, dependsOn, ...others } = options;
  const around = lose ? { protect: false, retainOnDelete: false } : { deletedWith: made[deletedWith], dependsOn: made[dependsOn] ?? [] };
  made[name] = new machines[kind](name, { ...inputs, ...(lose ? switches[kind] : {}) }, { ...others, ...around });
}
`;

let service: TestService;
let stack: Stack;
let first: Held = { live: {}, leaving: [] };
/** The texts of the cells, by name. */
const words = new Map<string, string>();
/** Ids of objects that other clients deleted. */
const deletedOutside = new Set<string>();
/** Objects that no longer exist although the program guards them or the state has them. There must be none. */
const losses: string[] = [];

const urn = (key: string, kind: Kind): string => stack.urn(kind, nameOf({ key }, kind));
const urns = (...keys: string[]): string[] => keys.flatMap((key) => kinds.map((kind) => urn(key, kind)));
const each = (option: string, names: readonly string[]): string[] => names.flatMap((name) => [option, name]);

async function makeForeign(key: string, secret: string): Promise<void> {
  const [volume, machine, cluster] = await Promise.all([
    makeVolume(service, "shop", "ams"),
    makeMachine(service, "shop", { region: "ams", config: { image: matrix.image } }),
    makeCluster(service, key),
    send(service, "POST", `/v1/apps/shop/secrets/${secret}`, { value: "1" }),
  ]);
  const ids = [`shop/${volume}`, `shop/${machine}`, cluster, `shop/${secret}`];
  for (const [at, kind] of kinds.entries()) foreign.set(nameOf({ key }, kind), ids[at] ?? "");
}

async function deleteOutside(key: string): Promise<void> {
  for (const kind of kinds) {
    const { id = "" } = first.live[nameOf({ key }, kind)] ?? {};
    const [app = "", name = ""] = id.split("/");
    const inApp = `/v1/apps/${app}/${kind.toLowerCase()}s/${name}${kind === "Machine" ? "?force=true" : ""}`;
    await send(service, "DELETE", kind === "PostgresCluster" ? `/v1/postgres/${id}` : inApp);
    deletedOutside.add(id);
  }
}

/** Records the result of a run for a cell. */
function judge(row: Row, kind: Kind, after: Held, there: Set<string>, error: string | undefined): void {
  const [name, later] = [nameOf(row, kind), laterName(row, kind)];
  const before = first.live[name];
  const isDeletedOutside = before !== undefined && deletedOutside.has(before.id);
  const isThere = before !== undefined && there.has(before.id);
  const facts = {
    ...{ before, isThere, isDeletedOutside, error },
    after: after.live[name],
    renamed: later === name ? undefined : after.live[later],
    imported: foreign.get(name),
    isLeaving: before !== undefined && after.leaving.includes(before.id),
    isForgotten: row.option.includes("state delete"),
  };
  words.set(name, word(facts));
  const mayGo = row.mayLose ?? (isDeletedOutside || row.change === "removed" || row.change === "renamed");
  if (before && (kind === "Volume" || kind === "PostgresCluster") && !mayGo && !isThere)
    losses.push(`${name}: its original ${before.id} is gone`);
}

/** Runs the CLI with the program of a run, and records the cells that it covers. */
async function play(run: Run, args: readonly string[], on = stack): Promise<void> {
  writeFileSync(join(on.dir, "resources.json"), JSON.stringify(matrix.declared(run)));
  const { output } = await on.run([...args, "--yes", "--skip-preview"]);
  const [after, there, errors] = [held(on), await onService(service), errorsOf(output)];
  for (const row of rows)
    for (const kind of kinds.filter((one) => matrix.runOf(row, one) === run))
      judge(row, kind, after, there, errors[nameOf(row, kind)] ?? errors[laterName(row, kind)]);
  for (const [name, { id }] of Object.entries(after.live))
    if (!there.has(id) && !deletedOutside.has(id)) losses.push(`${name}: ${id} is in the state and not on the service`);
}

/** The table of the page. */
function table(): string {
  const cells = rows.map((row) => [row.option, row.done, ...kinds.map((kind) => words.get(nameOf(row, kind)) ?? "")]);
  const lines = [["option", "what happens", ...kinds.map((kind) => `\`${kind}\``)], Array(6).fill("---"), ...cells];
  return lines.map((line) => `| ${line.join(" | ")} |\n`).join("");
}

beforeAll(async () => {
  service = await startService();
  await makeApp(service, "shop");
  await makeForeign("import", "IMPORT");
  await makeForeign("import-other", "IMPORT_OTHER_2");
  await makeForeign("import-dynamic", "IMPORT_DYNAMIC");
  stack = await newStack("pulumi-machines-plugin");
});
afterAll(() => service.close());

async function newStack(binding: "pulumi-machines" | "pulumi-machines-plugin"): Promise<Stack> {
  const made = new Stack(inject("installed"), "options", binding);
  made.program(program);
  Object.assign(made.env, { MACHINES_ENDPOINT: service.url, MACHINES_TOKEN: service.token });
  await made.init({});
  return made;
}

test("every option has the documented effect on every resource, and nothing is lost", async () => {
  const up = ["up", "--continue-on-error"];
  await play("first", ["up"]);
  first = held(stack);
  await stack.ok("state", "taint", "--yes", ...urns("taint"));
  await stack.ok("state", "delete", "--yes", ...urns("forget", "forget-gone"));
  for (const kind of kinds)
    await stack.ok("state", "rename", "--yes", urn("move", kind), laterName(matrix.byKey("move"), kind));
  const replaced = [...urns("replace", "retain"), urn("before", "Machine"), urn("before", "Secret")];
  await play("changes", [...up, ...each("--replace", replaced)]);
  await playRest(up);

  const there = await onService(service);
  const refused = [...words].filter(([, text]) => text.startsWith("refused"));
  expect(refused.filter(([name]) => !there.has(first.live[name]?.id ?? ""))).toEqual([]);
  expect(losses).toEqual([]);
  const now = readFileSync(page, "utf8").replace(/^\| option .*\n(?:\|.*\n)*/m, table);
  if (process.env["UPDATE_DOCS"]) writeFileSync(page, now);
  expect(readFileSync(page, "utf8"), "UPDATE_DOCS=1 writes the page").toBe(now);
});

/** The runs after the first changes. */
async function playRest(up: readonly string[]): Promise<void> {
  await play("target", [...up, ...each("--target", urns("target", "target-gone"))]);
  await deleteOutside("program-lost");
  await play("program", ["refresh", "--run-program"]);
  await deleteOutside("refresh");
  await play("refresh", [...up, "--refresh"]);
  await play("protect", up);
  await play("beforeVolume", ["up", "--target-replace", urn("before", "Volume")]);
  await play("beforeCluster", ["up", "--target-replace", urn("before", "PostgresCluster")]);
  await play("volume", ["up", "--target", urn("plain", "Volume")]);
  await play("cluster", ["up", "--target", urn("plain", "PostgresCluster")]);
  await play("dynamic", up, await newStack("pulumi-machines"));
}

test("with the switches on, everything is deleted except what the page says is kept", async () => {
  const { live } = held(stack);
  const all = matrix.declaredForTheEnd((name) => live[name] !== undefined);
  writeFileSync(join(stack.dir, "resources.json"), JSON.stringify(all));
  for (const command of ["up", "destroy"]) {
    const { code, output } = await stack.run([command, "--yes", "--skip-preview"], { env: { LOSE: "1" } });
    expect(code, output).toBe(0);
  }
  expect(held(stack)).toEqual({ live: {}, leaving: [] });
  const kept = [...words]
    .filter(([, text]) => text.includes("kept on the service"))
    .map(([name]) => first.live[name]?.id);
  const others = kinds.map((kind) => foreign.get(nameOf({ key: "import-dynamic" }, kind)));
  const left = await onService(service);
  expect([...left].filter((id) => ![...kept, ...others, "shop"].includes(id))).toEqual([]);
  for (const id of left) if (!id.includes("/") && id !== "shop") await send(service, "DELETE", `/v1/postgres/${id}`);
  await send(service, "DELETE", "/v1/apps/shop?force=true");
  expect([...(await onService(service))]).toEqual([]);
});
