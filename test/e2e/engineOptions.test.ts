// The effect of the engine's own options and commands on resources with and without data (R9, R11, R12). Every cell of
// docs/engine-options.md is tested with the real CLI, or most of them in `npm test`. `UPDATE_DOCS=1` writes the page;
// otherwise it is compared.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { fleetTag, phaseTag } from "../../api/fleetTags.ts";
import { makeApp, makeCluster, makeMachine, makeVolume, send } from "../support/around.ts";
import { runInline } from "../support/inline.ts";
import { image, kinds, nameOf, secretName, type Kind } from "../support/optionKinds.ts";
import { errorsOf, held, onService, word, type Held } from "../support/optionMatrix.ts";
import { declared, declaredForTheEnd, laterName, runOf } from "../support/optionProgram.ts";
import { byKey, foreign, rows, type OnStack, type Row, type Run } from "../support/optionRows.ts";
import { Stack, type Ran } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const page = "docs/engine-options.md";
const program = `
import { readFileSync } from "node:fs";
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const lose = process.env["LOSE"] !== undefined;
const switches = { Volume: { allowDataLoss: true }, PostgresCluster: { deletionProtection: false }, App: { forceDestroy: true } };
const made: Record<string, pulumi.Resource> = {};
const hooks: Record<string, pulumi.ResourceHook | pulumi.ErrorHook> = {};
if (process.env["FAILING"] !== undefined) {
  for (const on of ["beforeCreate", "afterCreate", "beforeUpdate", "afterUpdate", "beforeDelete", "afterDelete"])
    hooks["fails-" + on] = new pulumi.ResourceHook("fails-" + on, () => {
      if (process.env["FAILING"].split(" ").includes(on)) throw new Error("as the test wants it");
    });
  hooks["again"] = new pulumi.ErrorHook("again", ({ errors }) => errors.length < 9);
}
let mapped: pulumi.ProviderResource | undefined;
for (const { kind, name, inputs, options } of JSON.parse(readFileSync("resources.json", "utf8"))) {
  const { deletedWith, dependsOn, replaceWith, hooks: named = {}, mapped: variable, ...others } = options;
  if (variable !== undefined)
    mapped ??= new machines.Provider("mapped", {}, { envVarMappings: { [variable]: "MACHINES_TOKEN" } });
  const bound = Object.fromEntries(Object.entries(named).map(([on, hook]) => [on, [hooks[hook]]]));
  const around = lose
    ? { protect: false, retainOnDelete: false }
    : { deletedWith: made[deletedWith], dependsOn: made[dependsOn] ?? [], replaceWith: replaceWith && [made[replaceWith]] };
  const more = { provider: variable && mapped, hooks: Object.keys(hooks).length > 0 ? bound : undefined };
  made[name] = new machines[kind](name, { ...inputs, ...(lose ? switches[kind] : {}) }, { ...others, ...around, ...more });
}
`;

let service: TestService;
let stack: Stack;
const stacks: Partial<Record<OnStack, Stack>> = {};
/** The resources of each stack after its first run. */
let first: Held["live"] = {};
/** The texts of the cells, by name. */
const words = new Map<string, string>();
/** Ids of objects that other clients deleted. */
const deletedOutside = new Set<string>();
/** Objects that no longer exist although the program guards them or the state has them. There must be none. */
const losses: string[] = [];

const urn = (key: string, kind: Kind): string => stack.urn(kind, nameOf({ key }, kind));
const urns = (...keys: string[]): string[] => keys.flatMap((key) => kinds.map((kind) => urn(key, kind)));
const each = (option: string, names: readonly string[]): string[] => names.flatMap((name) => [option, name]);

/** Makes what a row imports, as others would. */
async function makeForeign(key: string, suffix = ""): Promise<void> {
  const fleet = nameOf({ key }, "Fleet") + suffix;
  const secret = secretName(key) + suffix.replace("-", "_");
  const metadata = { [fleetTag]: fleet, "pulumi-fleet-region": "ams", [phaseTag]: "serving" };
  const [volume, machine, cluster, , member] = await Promise.all([
    makeVolume(service, "shop", "ams"),
    makeMachine(service, "shop", { region: "ams", config: { image } }),
    makeCluster(service, key),
    send(service, "POST", `/v1/apps/shop/secrets/${secret}`, { value: "1" }),
    makeMachine(service, "shop", { name: `${fleet}-ams-1`, region: "ams", config: { image, metadata } }),
  ]);
  const ids = [`shop/${volume}`, `shop/${machine}`, `shop/${fleet}`, cluster, `shop/${secret}`];
  for (const [at, kind] of kinds.entries()) foreign.set(nameOf({ key }, kind), ids[at] ?? "");
  foreign.set(`${key}-member`, `shop/${member}`);
}

async function deleteOutside(key: string): Promise<void> {
  for (const kind of kinds) {
    const { id = "", machines = [] } = first[nameOf({ key }, kind)] ?? {};
    const [app = "", name = ""] = id.split("/");
    const inApp = `/v1/apps/${app}/${kind.toLowerCase()}s/${name}${kind === "Machine" ? "?force=true" : ""}`;
    if (kind === "Fleet")
      for (const one of machines)
        await send(service, "DELETE", `/v1/apps/${one.replace("/", "/machines/")}?force=true`);
    else await send(service, "DELETE", kind === "PostgresCluster" ? `/v1/postgres/${id}` : inApp);
    deletedOutside.add(id);
  }
}

/** Records the result of a run for a cell. */
function judge(row: Row, kind: Kind, after: Held, there: Set<string>, error: string | undefined): void {
  const [name, later] = [nameOf(row, kind), laterName(row, kind)];
  const before = first[name];
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
  const text = word(facts);
  words.set(name, text);
  const isDestroyed = row.option.includes("`destroy");
  const mayGo =
    row.mayLose ?? (isDestroyed || isDeletedOutside || row.change === "removed" || row.change === "renamed");
  const isRefused = text.startsWith("refused");
  const holdsData = kind === "Volume" || kind === "PostgresCluster";
  if (before && !isThere && (isRefused || (holdsData && !mayGo)))
    losses.push(`${name}: its original ${before.id} is gone`);
  // The id of a fleet stays when its Machines are others.
  const isKept = /^(unchanged|updated in place|moved|kept|refused)/.test(text);
  for (const machine of isKept && !isDeletedOutside ? (before?.machines ?? []) : [])
    if (!there.has(machine)) losses.push(`${name}: its Machine ${machine} is gone`);
}

/** Runs the CLI with the program of a run, and records the cells that it covers. */
async function play(run: Run, args: readonly string[], on = stack): Promise<void> {
  await record(run, on, () => on.run([...args, "--yes", "--skip-preview"]));
}

/** Records the cells of a run, with the program of that run. */
async function record(run: Run, on: Stack, work: () => Promise<Ran>): Promise<void> {
  writeFileSync(join(on.dir, "resources.json"), JSON.stringify(declared(run)));
  const { output } = await work();
  const [after, there, errors] = [held(on), await onService(service), errorsOf(output)];
  // The first violation of a plan ends the run.
  const all = /^.*violates plan.*$/m.exec(output)?.[0];
  for (const row of rows)
    for (const kind of kinds.filter((one) => runOf(row, one) === run))
      judge(row, kind, after, there, errors[nameOf(row, kind)] ?? errors[laterName(row, kind)] ?? all);
  for (const [name, { id }] of Object.entries(after.live))
    if (!there.has(id) && !deletedOutside.has(id)) losses.push(`${name}: ${id} is in the state and not on the service`);
}

/** The table of the page. */
function table(): string {
  const cells = rows.map((row) => [row.option, row.done, ...kinds.map((kind) => words.get(nameOf(row, kind)) ?? "")]);
  const titles = ["option", "what happens", ...kinds.map((kind) => `\`${kind}\``)];
  const lines = [titles, titles.map(() => "---"), ...cells];
  return lines.map((line) => `| ${line.join(" | ")} |\n`).join("");
}

beforeAll(async () => {
  service = await startService();
  await makeApp(service, "shop");
  await makeForeign("import");
  await makeForeign("import-other", "-2");
  await makeForeign("import-dynamic");
  stack = await newStack("main");
  // A `Provider` has no settings of the stack, so only the variable of its mapping has a token that is valid.
  Object.assign(stack.env, { MACHINES_TOKEN: "not-valid", OTHER_TOKEN: service.token, THIRD_TOKEN: service.token });
});
afterAll(() => service.close());

async function newStack(on: OnStack): Promise<Stack> {
  const made = new Stack(inject("installed"), on, on === "dynamic" ? "pulumi-machines" : "pulumi-machines-plugin");
  made.program(program);
  Object.assign(made.env, { MACHINES_ENDPOINT: service.url, MACHINES_MIN_HEALTHY_SECONDS: "0" });
  await made.init({ "machines:token": service.token });
  stacks[on] = made;
  return made;
}

const up = ["up", "--continue-on-error"];
/** Adds what a stack has after its first run. */
const begin = (on: Stack): void => {
  first = { ...first, ...held(on).live };
};

test("every option has the documented effect on every resource, and nothing is lost", async () => {
  await play("first", ["up"]);
  begin(stack);
  await stack.ok("state", "taint", "--yes", ...urns("taint"));
  await stack.ok("state", "delete", "--yes", ...urns("forget", "forget-gone"));
  for (const kind of kinds)
    await stack.ok("state", "rename", "--yes", urn("move", kind), laterName(byKey("move"), kind));
  const replaced = [
    ...urns("replace", "retain"),
    ...(["Machine", "Fleet", "Secret"] as const).map((kind) => urn("before", kind)),
  ];
  await play("changes", [...up, ...each("--replace", [...replaced, stack.urn("Secret", "first-trigger")])]);
  await playRest();
  await playPlans(await newStack("plans"));
  await playHooks(await newStack("hooks"));

  expect(losses).toEqual([]);
  const now = readFileSync(page, "utf8").replace(/^\| option .*\n(?:\|.*\n)*/m, table);
  if (process.env["UPDATE_DOCS"]) writeFileSync(page, now);
  expect(readFileSync(page, "utf8"), "UPDATE_DOCS=1 writes the page").toBe(now);
});

/** The runs after the first changes. */
async function playRest(): Promise<void> {
  await play("target", [...up, ...each("--target", urns("target", "target-gone"))]);
  await deleteOutside("program-lost");
  await play("program", ["refresh", "--run-program"]);
  await deleteOutside("refresh");
  await play("refresh", [...up, "--refresh", "--replace", stack.urn("Secret", "later-trigger")]);
  await play("protect", up);
  await play("beforeVolume", ["up", "--target-replace", urn("before", "Volume")]);
  await play("beforeCluster", ["up", "--target-replace", urn("before", "PostgresCluster")]);
  await play("volume", ["up", "--target", urn("plain", "Volume")]);
  await play("cluster", ["up", "--target", urn("plain", "PostgresCluster")]);
  await play("dynamic", up, await newStack("dynamic"));
}

/** Plans and protection. */
async function playPlans(on: Stack): Promise<void> {
  const save = () => on.ok("preview", "--save-plan", "plan.json");
  await play("planFirst", ["up"], on);
  begin(on);
  writeFileSync(join(on.dir, "resources.json"), JSON.stringify(declared("plan")));
  await save();
  await play("plan", ["up", "--plan", "plan.json"], on);
  await save();
  await play("otherPlan", [...up, "--plan", "plan.json"], on);
  await play("ignoreProtect", [...up, "--ignore-protect"], on);
  await play("excludeProtected", ["destroy", "--exclude-protected", "--continue-on-error"], on);
  await play("destroyIgnoring", ["destroy", "--ignore-protect", "--continue-on-error"], on);
}

/** Hooks, which the language host of a CLI that was built from its Go modules cannot run. */
async function playHooks(on: Stack): Promise<void> {
  const run = (name: Run, ...failing: string[]) =>
    record(name, on, () => {
      on.env["FAILING"] = failing.join(" ");
      return runInline(on, "up", { continueOnError: true });
    });
  await run("hookCreate", "beforeCreate", "afterCreate");
  begin(on);
  await run("hookUpdate", "beforeUpdate", "afterUpdate");
  await run("hookDelete", "beforeDelete", "afterDelete");
  for (const operation of ["volumes.create", "machines.create", "postgres.create", "secrets.set"])
    service.fail({ operation, status: 422, times: 1 });
  await run("hookError");
  service.fail({ operation: "machines.create", status: 422, times: 1 });
  await run("hookFleet");
  delete on.env["FAILING"];
}

test("with the switches on, everything is deleted except what the page says is kept", async () => {
  for (const [name, on] of Object.entries(stacks) as [OnStack, Stack][]) {
    const { live } = held(on);
    writeFileSync(
      join(on.dir, "resources.json"),
      JSON.stringify(declaredForTheEnd(name, (one) => live[one] !== undefined)),
    );
    for (const command of ["up", "destroy"]) {
      const { code, output } = await on.run([command, "--yes", "--skip-preview"], { env: { LOSE: "1" } });
      expect(code, output).toBe(0);
    }
    expect(held(on)).toEqual({ live: {}, leaving: [] });
  }
  const kept = [...words]
    .filter(([, text]) => text.includes("kept on the service"))
    .flatMap(([name]) => [first[name]?.id, ...(first[name]?.machines ?? [])]);
  const others = [...foreign].filter(([name]) => name.startsWith("import-dynamic")).map(([, id]) => id);
  const left = await onService(service);
  expect([...left].filter((id) => ![...kept, ...others, "shop"].includes(id))).toEqual([]);
  for (const id of left) if (!id.includes("/") && id !== "shop") await send(service, "DELETE", `/v1/postgres/${id}`);
  await send(service, "DELETE", "/v1/apps/shop?force=true");
  expect([...(await onService(service))]).toEqual([]);
});
