// Failures after the object was created: the engine still gets its id and state, and the next up continues.
import grpc from "@grpc/grpc-js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeApp, send } from "../support/around.ts";
import { drive, urnOf, type Driver } from "../support/driver.ts";
import { startPlugin, unfinishedIn, wireTo, type Plugin, type Unfinished } from "../support/plugin.ts";
import { secret, toStruct, type Properties } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1";
const failingChecks = { env: { MACHINES_SIMULATE: "checks:critical" }, checks: { alive: { type: "tcp", port: 80 } } };

describe("a failure after creation", () => {
  let service: TestService;
  let plugin: Plugin;
  let count = 0;
  beforeAll(async () => {
    service = await startService();
    plugin = await startPlugin();
    const args = toStruct({ endpoint: service.url, token: service.token, maxUnavailable: "100%" });
    await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
    await makeApp(service, "app");
  });
  afterAll(async () => {
    await plugin.close();
    await service.close();
  });

  const fresh = (): Driver => drive(plugin.client, urnOf("Machine", `failing-${++count}`));
  const wanted = (config: Properties) => ({ app: "app", region: "ams", config: { image, ...config } });
  /** Seconds that an operation may take which cannot end: long enough for what it does before, on a busy computer. */
  const brief = 5;
  const unfinished = async (work: Promise<unknown>): Promise<Unfinished> => {
    const error = await work.catch((reason: unknown) => reason);
    const found = unfinishedIn(error);
    if (!found) throw new Error(`not an initialization that failed: ${String(error)}`);
    return found;
  };
  const live = (id: string) =>
    send<{ state: string; config: Properties }>(service, "GET", `/v1/apps/app/machines/${id.split("/")[1] ?? ""}`);

  test("a create returns id, state with its secrets, and the reason; the next update repairs in place", async () => {
    const machine = fresh();
    const config = { env: { A: secret("canary"), MACHINES_SIMULATE: "crash" } };
    const inputs = await machine.checked(wanted(config));
    const error = (await machine.create(inputs).catch((reason: unknown) => reason)) as grpc.ServiceError;
    expect(error.code).toBe(grpc.status.UNKNOWN);
    const { id, state, reasons } = await unfinished(Promise.reject(error));
    expect(await live(id)).toMatchObject({ state: "failed" });
    expect(state).toMatchObject({ machineId: id.split("/")[1], app: "app", config: { image, ...config } });
    expect(reasons).toEqual([error.details]);
    expect(error.details).toMatch(/is failed and not started: its main process exited \(code 1\)/);
    expect(await machine.diff({ id, oldInputs: inputs, state, inputs })).toMatchObject({ changes: true, detailed: {} });
    const next = await machine.checked(wanted({ env: { A: secret("canary") } }), inputs);
    const after = await machine.update({ id, oldInputs: inputs, state, inputs: next });
    expect(after).toMatchObject({ machineId: state["machineId"], state: "started" });
    expect(await machine.diff({ id, oldInputs: next, state: after, inputs: next })).toMatchObject({ changes: false });
  });

  test("the repair remains to be done after a refresh, although the engine would consider it done", async () => {
    const machine = fresh();
    const inputs = await machine.checked(wanted({ env: { MACHINES_SIMULATE: "crash" } }));
    const { id, state } = await unfinished(machine.create(inputs));
    const found = await machine.read(id, { state, inputs });
    expect(await machine.diff({ id, oldInputs: inputs, state: found?.state ?? {}, inputs })).toMatchObject({
      changes: true,
    });
  });

  test("F43: a create that the engine repeats, as an on-error hook requests, continues with the reported object", async () => {
    const machine = fresh();
    const inputs = await machine.checked(wanted(failingChecks));
    const before = (await send<unknown[]>(service, "GET", "/v1/apps/app/machines")).length;
    const first = await unfinished(machine.create(inputs, { timeout: brief }));
    const second = await unfinished(machine.create(inputs, { timeout: brief }));
    expect(second.id).toBe(first.id);
    // A refusal that does not mention the Machine does not make the engine forget it either.
    service.fail({ operation: "machines.acquireLease", status: 403, when: "before" });
    const third = await unfinished(machine.create(inputs, { timeout: brief }));
    service.service.faults.clear();
    expect(third.id).toBe(first.id);
    expect(await send<unknown[]>(service, "GET", "/v1/apps/app/machines")).toHaveLength(before + 1);

    const cluster = drive(plugin.client, urnOf("PostgresCluster", "again"));
    const wantedCluster = await cluster.checked({ name: "again", region: "fra", plan: "basic" });
    service.fail({ operation: "postgres.get", status: 403, when: "before", times: 1 });
    const failed = await unfinished(cluster.create(wantedCluster));
    const made = await cluster.create(wantedCluster);
    expect(made).toMatchObject({ id: failed.id, state: { status: "ready" } });
  });

  test("an update returns the live values", async () => {
    const machine = fresh();
    const inputs = await machine.checked(wanted({}));
    const { id, state } = await machine.create(inputs);
    const next = await machine.checked(wanted({ env: { MACHINES_SIMULATE: "crash" } }), inputs);
    const failed = await unfinished(machine.update({ id, oldInputs: inputs, state, inputs: next }));
    expect(failed.id).toBe(id);
    expect(failed.state["version"]).not.toBe(state["version"]);
    expect(failed.state).toMatchObject({ config: { image, env: { MACHINES_SIMULATE: "crash" } } });
  });

  test("a create that exceeds its timeout is one, and says what it was waiting for", async () => {
    const machine = fresh();
    const inputs = await machine.checked(wanted(failingChecks));
    const { id, state, reasons } = await unfinished(machine.create(inputs, { timeout: brief }));
    expect(reasons.join()).toMatch(/checks of Machine .* did not pass within 5s: .*alive is/);
    expect(await live(id)).toMatchObject({ state: "started" });
    // The wait remains to be done, and another failure does not change the saved state.
    const again = machine.update({ id, oldInputs: inputs, state, inputs, timeout: brief });
    await expect(again).rejects.toThrow(/did not pass within 5s/);
  });

  test("a delete that exceeds its timeout reports that, and the object is kept", async () => {
    const machine = fresh();
    const inputs = await machine.checked(wanted({}));
    const { id, state } = await machine.create(inputs);
    await send(service, "POST", `/v1/apps/app/machines/${id.split("/")[1] ?? ""}/lease`, { ttl: 600 });
    const args = toStruct({ endpoint: service.url, token: service.token, maxUnavailable: "100%" });
    await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
    await expect(machine.delete({ id, state, inputs, timeout: brief })).rejects.toThrow(/was not released within 5s/);
    expect(await live(id)).toMatchObject({ state: "started" });
  });

  test("a refusal before creation is a plain error without a state", async () => {
    const inputs = await fresh().checked(wanted({ env: { MACHINES_SIMULATE: "nonsense" } }));
    const error = await fresh()
      .create(inputs)
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      code: grpc.status.UNKNOWN,
      details: expect.stringMatching(/answered 400/) as unknown,
    });
    expect(unfinishedIn(error)).toBeUndefined();
  });

  test("a state larger than 64 KB is sent completely, in a header", async () => {
    // Node.js clients accept no header of that size, Go clients do. The test reads the connection's bytes, and the client
    // here never receives them.
    const headersIn = (bytes: Buffer) => framesOf(bytes).filter(({ type }) => /headers|continuation/.test(type));
    const wire = await wireTo(plugin.port, (answered) => headersIn(answered).length === 0);
    try {
      const machine = fresh();
      const big = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`BIG_${i}`, "x".repeat(50_000)]));
      const inputs = await machine.checked(wanted({ env: { ...big, MACHINES_SIMULATE: "crash" } }));
      const creating = drive(wire.client, machine.urn).create(inputs);
      await expect.poll(() => headersIn(wire.answered()).at(-1)?.endsHeaders).toBe(true);
      const sizes = headersIn(wire.answered()).map(({ length }) => length);
      expect(sizes.reduce((a, b) => a + b, 0)).toBeGreaterThan(400_000);
      expect(framesOf(wire.answered()).map(({ type }) => type)).not.toContain("reset");
      wire.cut();
      await expect(creating).rejects.toThrow(/UNAVAILABLE/);
    } finally {
      wire.close();
    }
  });
});

interface Frame {
  readonly type: "headers" | "continuation" | "reset" | "other";
  readonly length: number;
  readonly endsHeaders: boolean;
}

/** The complete frames of an HTTP/2 connection. */
function framesOf(bytes: Buffer): Frame[] {
  const types: Readonly<Record<number, Frame["type"]>> = { 1: "headers", 3: "reset", 9: "continuation" };
  const frames: Frame[] = [];
  for (let at = 0; at + 9 <= bytes.length;) {
    const length = bytes.readUIntBE(at, 3);
    if (at + 9 + length > bytes.length) break;
    frames.push({
      type: types[bytes[at + 3] ?? 0] ?? "other",
      length,
      endsHeaders: ((bytes[at + 4] ?? 0) & 0x4) !== 0,
    });
    at += 9 + length;
  }
  return frames;
}
