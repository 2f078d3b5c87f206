// Every leaf of a Machine's configuration: program changes reach the service, and a refresh shows outside changes.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fromWire, toWire } from "../../api/case.ts";
import { machineConfig, type MachineConfig } from "../../api/machineConfig.ts";
import { isObject, type Field } from "../../api/schema.ts";
import type { Values } from "../../provider/core/resource.ts";
import { canonical, equal, withoutUndefined } from "../../provider/core/values.ts";
import { configFields } from "../../provider/machines/settings.ts";
import { arbitraryOf } from "../support/arbitrary.ts";
import { makeApp, makeVolume, send } from "../support/around.ts";
import { bind, type Bound } from "../support/binding.ts";
import { startService, type TestService } from "../support/startService.ts";

interface Leaf {
  readonly name: string;
  /** The path of fields from the configuration to the leaf. */
  readonly way: readonly (readonly [part: string, field: Field])[];
  readonly field: Field;
}

/** Leaves that other tests cover. */
const elsewhere: Readonly<Record<string, string>> = {
  "metadata.*": "it makes no version, and is owned by key: machine.test.ts",
  "extra.*": "what no schema knows: machine.test.ts",
  "mounts.*.volume": "its change replaces the Machine: the life of a Machine",
};

/** Values for leaves whose type allows invalid ones. */
const values: Readonly<Record<string, readonly [unknown, unknown]>> = {
  "guest.cpus": [2, 4],
  "guest.memoryMb": [512, 1024],
  "guest.maxMemoryMb": [2048, 4096],
  size: ["shared-cpu-2x", "performance-1x"],
  "env.*": ["one", "two"],
  "containers.*.healthchecks.*.unhealthy": [undefined, "stop"],
  "services.*.ports.*.httpOptions.response.headers.*": ["one", ["two", "three"]],
};

/** Other fields that a leaf needs. */
const beside: Readonly<Record<string, Values>> = { "mounts.*.extendThresholdPercent": { addSizeGb: 1 } };

function leavesOf(field: Field, way: Leaf["way"]): Leaf[] {
  const { shape } = field;
  const into = (part: string, inner: Field) => leavesOf(inner, [...way, [part, inner]]);
  if (shape.kind === "object") return Object.entries(shape.fields).flatMap(([name, inner]) => into(name, inner));
  if (shape.kind === "array") return into("*", shape.item);
  if (shape.kind === "record") return into("*", shape.value);
  return [{ name: way.map(([part]) => part).join("."), way, field }];
}

const all = Object.entries(configFields).flatMap(([name, field]) => leavesOf(field, [[name, field]]));
const leaves = all.filter(({ name }) => !Object.hasOwn(elsewhere, name));

/** The smallest value that a field accepts. */
function least(field: Field): unknown {
  const { shape } = field;
  if (shape.kind === "object") return required(shape.fields);
  if (shape.kind === "array") return [];
  return shape.kind === "record" ? {} : sample(field)[0];
}

const required = (fields: Readonly<Record<string, Field>>): Values =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, field]) => (field.optional ? [] : [[name, least(field)] as const])),
  );

/** Values that a leaf accepts, all with different meanings. */
function sample(field: Field): unknown[] {
  const found: unknown[] = [];
  for (const value of fc.sample(arbitraryOf(field), { numRuns: 40, seed: 1 })) {
    if (!found.some((other) => equal(canonical(field, other), canonical(field, value)))) found.push(value);
  }
  // An omitted value may equal the default, so the second value is never the default.
  return found.sort((a, b) => Number(canonical(field, a) !== undefined) - Number(canonical(field, b) !== undefined));
}

const key = "key";

/** A configuration with a value for the leaf and its required fields only; `volume` is for mounts. */
function configWith({ name, way }: Leaf, value: unknown, volume: string): Values {
  const at = (depth: number): unknown => {
    const [, field] = way[depth] ?? [];
    if (!field) return value;
    const { shape } = field;
    if (shape.kind === "array") return [at(depth + 1)];
    if (shape.kind === "record") return { [key]: at(depth + 1) };
    if (shape.kind !== "object") return value;
    const next = way[depth + 1]?.[0] ?? "";
    const extra = depth === way.length - 2 ? beside[name] : undefined;
    return { ...required(shape.fields), ...extra, [next]: at(depth + 1) };
  };
  const top = way[0]?.[0] ?? "";
  const config: Values = { image: "registry.example.com/web:1", [top]: at(0) };
  for (const mount of (config["mounts"] ?? []) as Values[]) mount["volume"] = volume;
  return withoutUndefined(config);
}

function valueAt({ way }: Leaf, config: unknown): unknown {
  let found = config;
  for (const [part] of way)
    found = Array.isArray(found) ? found[0] : isObject(found) ? found[part === "*" ? key : part] : undefined;
  return found;
}

describe("every leaf of a Machine's configuration", () => {
  let service: TestService;
  let machine: Bound;
  let runs = 0;
  beforeAll(async () => {
    service = await startService();
    machine = bind("Machine", service);
    await makeApp(service, "app");
  });
  afterAll(() => service.close());

  async function passes(leaf: Leaf): Promise<void> {
    const { field, name } = leaf;
    const [first, second] = values[name] ?? sample(field);
    expect(second, `${name} has two values to change between`).toBeDefined();
    const means = (config: unknown, value: unknown, what: string) =>
      expect(canonical(field, valueAt(leaf, config)), `${name}: ${what}`).toEqual(canonical(field, value));
    const volume = name.startsWith("mounts") ? await makeVolume(service, "app", "ams") : "";
    const checked = async (value: unknown, olds: Values = {}) => {
      const config = configWith(leaf, value, volume);
      const { inputs, failures } = await machine.check(olds, {
        app: "app",
        region: "ams",
        waitForChecks: false,
        config,
      });
      expect(failures, name).toEqual([]);
      return inputs;
    };
    const inputs = await checked(first);
    const { id, state } = await machine.create(inputs);
    const next = await checked(second, inputs);
    expect(await machine.diff(id, state, next), name).toBe("update");
    const after = await machine.update(id, state, next);
    const at = `/v1/apps/app/machines/${String(state["machineId"])}`;
    const live = async () => fromWire(machineConfig, (await send<Values>(service, "GET", at))["config"]);
    means(await live(), second, "a change in the program reaches the service");
    expect(await machine.diff(id, (await machine.read(id, after))?.state ?? {}, next), name).toBe("same");

    await send(service, "POST", at, {
      config: toWire(machineConfig, configWith(leaf, first, volume)) as MachineConfig,
    });
    // As in a new run: this run would not list again at once.
    const later = bind("Machine", service, { requestTimeoutSeconds: String(100 + ++runs) });
    const found = await later.read(id, after);
    means(found?.inputs?.["config"], first, "a change outside is seen by a refresh");
    expect(await later.diff(id, found?.state ?? {}, next), name).toBe("update");
    await send(service, "DELETE", `${at}?force=true`);
  }

  test("there are leaves, and those covered elsewhere exist", () => {
    expect(leaves.length).toBeGreaterThan(150);
    expect(Object.keys(elsewhere).filter((name) => !all.some((leaf) => leaf.name === name))).toEqual([]);
    expect(
      [...Object.keys(values), ...Object.keys(beside)].filter((name) => !all.some((leaf) => leaf.name === name)),
    ).toEqual([]);
  });

  const tops = [...new Set(leaves.map(({ way }) => way[0]?.[0] ?? ""))];
  test.each(tops)("%s", async (top) => {
    for (const leaf of leaves.filter(({ way }) => way[0]?.[0] === top)) await passes(leaf);
  });
});
