// Whatever the service accepts and stores, the types and the checks of the provider accept in the program that is imported from it.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { machineConfig } from "../../../api/machineConfig.ts";
import { createApp } from "../../../api/apps.ts";
import { camelKey } from "../../../api/case.ts";
import { assignIp } from "../../../api/ipAssignments.ts";
import { createPostgresCluster } from "../../../api/postgres.ts";
import { createVolume } from "../../../api/volumes.ts";
import { define, fieldOf, isObject, type Field } from "../../../api/schema.ts";
import { checkInputs } from "../../../provider/core/check.ts";
import { Run } from "../../../provider/core/run/run.ts";
import { UNKNOWN } from "../../../provider/core/values.ts";
import { resources } from "../../../provider/registry.ts";
import { tsc } from "../../../tools/lib/paths.mjs";
import { arbitraryOf } from "../../support/arbitrary.ts";
import { makeApp, makeCluster, send } from "../../support/around.ts";
import { isThorough } from "../../support/extent.mts";
import { noIntents } from "../../support/jumpingClient.ts";
import { makeOrganization } from "../../support/organizations.ts";
import { startService, type TestService } from "../../support/startService.ts";
import { commandHere } from "../command.ts";
import { typescriptReader, type Declared } from "./readers.ts";

const image = "registry.example.com/shop:1";
const count = isThorough ? 400 : 60;

/** The same value, with parts of it empty or null: lists and maps that have nothing in them, and what is left out by a null. */
function* emptied(field: Field, value: unknown): Generator {
  const { shape } = field;
  if (shape.kind === "array" && Array.isArray(value)) {
    yield [];
    for (const [i, item] of value.entries()) for (const other of emptied(shape.item, item)) yield value.with(i, other);
  }
  if (!isObject(value)) return;
  if (shape.kind === "record") yield {};
  for (const [name, inner] of Object.entries(value)) {
    const known = shape.kind === "record" ? shape.value : shape.kind === "object" ? shape.fields[name] : undefined;
    if (known === undefined) continue;
    for (const other of [
      ...emptied(known, inner),
      ...(known.optional ? [null] : []),
      ...(known.shape.kind === "object" ? [{}] : []),
    ]) {
      const out = { ...value };
      define(out, name, other);
      yield out;
    }
  }
}

/** Creates Machines of all these configurations that the service accepts; the number of those. */
async function create(service: TestService, configs: readonly unknown[]): Promise<number> {
  let accepted = 0;
  for (const [i, config] of configs.entries()) {
    const body = { name: `m-${i}`, region: "ams", skip_launch: true, config };
    const answer = await fetch(`${service.url}/v1/apps/shop/machines`, {
      method: "POST",
      headers: { authorization: `Bearer ${service.token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    await answer.arrayBuffer();
    if (answer.ok) accepted++;
    else expect(answer.status).toBeLessThan(500);
  }
  return accepted;
}

/** Writes the program of an organization in TypeScript, compiles it, and returns what it declares. */
async function imported(service: TestService): Promise<readonly Declared[]> {
  const folder = mkdtempSync(join(tmpdir(), "machines-contract-"));
  try {
    const { code, err } = await commandHere(service, ["import", "--out", folder]);
    expect([code, err]).toEqual([0, ""]);
    symlinkSync(join(process.cwd(), "node_modules"), join(folder, "node_modules"));
    const program = readFileSync(join(folder, "index.ts"), "utf8");
    let said = "";
    try {
      execFileSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8", stdio: "pipe" });
    } catch (error) {
      said = (error as { stdout: string }).stdout;
    }
    expect(said.slice(0, 4000)).toBe("");
    const [answer] = typescriptReader([program]);
    expect(answer?.error).toBe(undefined);
    return answer?.resources ?? [];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A value as the engine would send it. */
function sent(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sent);
  if (!isObject(value)) return value;
  if (typeof value["id"] === "string" && Object.keys(value).length === 1) return "shop";
  // A secret of the configuration, which no check looks into.
  if (typeof value["setting"] === "string" && Object.keys(value).length === 1) return UNKNOWN;
  const out: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(value)) define(out, name, sent(inner));
  return out;
}

/** What the provider's check says about the resources of a program. */
function problemsOf(declared: readonly Declared[]): readonly string[] {
  const run = new Run(() => noIntents);
  return declared.flatMap(({ type, name, properties }) => {
    const resource = resources[type];
    if (resource === undefined) return [`there is no ${type}`];
    const { problems } = checkInputs(resource, {}, sent(properties) as Record<string, unknown>, {
      ...{ randomHex: () => "0123456", run },
    });
    return problems.map((problem) => `${type} ${name}: ${JSON.stringify(problem)}`);
  });
}

describe("what the service accepts and stores", () => {
  test("what the service accepts and stores is accepted by the types and the check of the provider: configurations of Machines", async () => {
    const service = await startService();
    await makeApp(service, "shop");
    const field = fieldOf(machineConfig);
    const drawn = fc.sample(arbitraryOf(field), { numRuns: count, seed: 1 }) as Record<string, unknown>[];
    const configs = drawn.flatMap((config) => {
      const whole = { ...config, image };
      const others = [...emptied(field, whole)];
      return [whole, ...others.filter((_, i) => i % Math.ceil(others.length / 3) === 0)];
    });
    const own = [
      { checks: { alive: { type: "http", port: 80, headers: [{ name: "Host", values: [] }] } } },
      { checks: { alive: {} } },
      { services: [{ internal_port: 80, protocol: "tcp", checks: [{ headers: [{ name: "Host", values: [] }] }] }] },
      { stop_config: { signal: 2, timeout: 5_000_000_000 } },
      { services: [{ internal_port: 80, autostop: true }] },
      {
        future: { deep: [1, { text: "x", none: null }] },
        guest: { new_kind: "y" },
        metadata: { fly_kept: "1", own: "2" },
      },
    ].map((one) => ({ image, ...one }));
    const accepted = await create(service, [...own, ...configs]);
    expect(accepted).toBeGreaterThan(own.length + configs.length / 4);
    const declared = await imported(service);
    expect(declared.filter(({ type }) => type === "Machine")).toHaveLength(accepted);
    expect(problemsOf(declared)).toEqual([]);
    await service.close();
  });

  test("what the service accepts and stores is accepted by the types and the check of the provider: one of every kind of object", async () => {
    const service = await startService();
    await makeOrganization(service, "kinds", 80);
    for (const [i, plan] of ["BASIC", "performance"].entries()) await makeCluster(service, `plan-${i}`, { plan });
    await makeApp(service, "odd");
    for (const fstype of ["ext4", "raw"])
      await send(service, "POST", "/v1/apps/odd/volumes", { name: fstype, region: "ams", size_gb: 1, fstype });
    const declared = await imported(service);
    expect(problemsOf(declared)).toEqual([]);
    await service.close();
  });

  test.each([
    ["App", createApp],
    ["Volume", createVolume],
    ["IpAssignment", assignIp],
    ["PostgresCluster", createPostgresCluster],
  ])("what the service accepts and stores is among the values that the types have: %s", (type, body) => {
    const { shape } = fieldOf(body);
    const inputs = resources[type]?.inputFields ?? {};
    for (const [name, { shape: wire, meta }] of Object.entries(shape.kind === "object" ? shape.fields : {})) {
      const field = inputs[camelKey(name)];
      if (wire.kind !== "leaf" || wire.values === undefined || field === undefined || meta.open) continue;
      const { shape: own } = field;
      expect([name, own.kind === "leaf" && own.values ? [...own.values].sort() : []]).toEqual([
        name,
        [...wire.values].sort(),
      ]);
    }
  });

  test("what the service accepts and stores is of the platform's versions of Postgres, unless its clusters are servers", async () => {
    const service = await startService();
    await expect(makeCluster(service, "late", { pg_major_version: "18" })).rejects.toThrow(
      'invalid pg_major_version, got \\"18\\", allowed are \\"16\\", \\"17\\"',
    );
    await service.close();
  });
});
