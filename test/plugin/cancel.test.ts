// Cancellation: sent requests are finished, waits end, nothing new is sent, and no lease remains.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import empty from "google-protobuf/google/protobuf/empty_pb.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import { makeApp, send } from "../support/around.ts";
import { drive, urnOf, type Driver } from "../support/driver.ts";
import { gate } from "../support/gate.ts";
import { startPlugin, unfinishedIn, type Plugin } from "../support/plugin.ts";
import { toStruct, type Properties } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1";
/** Does not advance until the clock is advanced, which never happens. */
const forEver = { MACHINES_SIMULATE: "slow:60s" };

describe("cancel", () => {
  let service: TestService;
  let plugin: Plugin;
  beforeEach(async () => {
    service = await startService({ clock: new ManualClock() });
    plugin = await startPlugin();
    const args = toStruct({ endpoint: service.url, token: service.token });
    await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
    await makeApp(service, "app");
  });
  afterEach(async () => {
    await plugin.close();
    await service.close();
  });

  const of = (name: string): Driver => drive(plugin.client, urnOf("Machine", name));
  const wanted = (config: Properties = {}) => ({ app: "app", region: "ams", config: { image, ...config } });
  const cancel = () => plugin.client.cancel(new empty.Empty());
  const outcome = (work: Promise<unknown>): Promise<unknown> => work.catch((reason: unknown) => reason);
  const sentSince = (before: number) =>
    service.requests.slice(before).map(({ operation, status }) => `${operation ?? "?"} ${status}`);
  const held = () => expect.poll(() => service.service.context.waits.size).toBe(1);
  const machines = () => send<{ id: string }[]>(service, "GET", "/v1/apps/app/machines");
  const leaseOf = (id: string) => send(service, "GET", `/v1/apps/app/machines/${id.split("/")[1] ?? ""}/lease`);

  test("while a create waits: it returns its id and state at once", async () => {
    const inputs = await of("a").checked(wanted({ env: forEver }));
    const creating = outcome(of("a").create(inputs));
    await held();
    const before = service.requests.length;
    await cancel();
    const failed = unfinishedIn(await creating);
    expect(failed).toMatchObject({
      id: `app/${(await machines())[0]?.id ?? ""}`,
      state: { config: { image, env: forEver } },
      reasons: [expect.stringMatching(/^cancelled: nothing more is sent\. Objects that were created are kept/)],
    });
    // Only one read followed; the interrupted wait was recorded before.
    expect(sentSince(before).filter((sent) => !/wait|list/.test(sent))).toEqual(["machines.get 200"]);
  });

  test("while the create request is under way: its answer is awaited, and its id is kept", async () => {
    const inputs = await of("a").checked(wanted({ env: forEver }));
    const { opened, open } = gate();
    service.fail({ operation: "machines.create", when: "after", until: () => opened });
    const creating = outcome(of("a").create(inputs));
    // The service has created it, and delays its answer.
    await expect.poll(async () => (await machines()).length).toBe(1);
    await cancel();
    open();
    expect(unfinishedIn(await creating)?.id).toBe(`app/${(await machines())[0]?.id ?? ""}`);
  });

  test("while a create is about to be retried: it is not sent, and no object is reported", async () => {
    const inputs = await of("a").checked(wanted());
    service.fail({ operation: "machines.create", when: "before", status: 429, headers: { "retry-after": "60" } });
    const creating = outcome(of("a").create(inputs));
    await expect.poll(() => sentSince(0)).toContain("machines.create 429");
    await cancel();
    const error = await creating;
    expect(String(error)).toMatch(/cancelled: nothing more is sent/);
    expect(unfinishedIn(error)).toBeUndefined();
    expect(await machines()).toEqual([]);
  });

  test("while an update holds the lease and waits: the lease is released, and the change is reported", async () => {
    const inputs = await of("a").checked(wanted());
    const { id, state } = await of("a").create(inputs);
    const next = await of("a").checked(wanted({ env: forEver }), inputs);
    const updating = outcome(of("a").update({ id, oldInputs: inputs, state, inputs: next }));
    await held();
    await expect(leaseOf(id)).resolves.toBeDefined();
    const before = service.requests.length;
    await cancel();
    const failed = unfinishedIn(await updating);
    expect(failed).toMatchObject({ id, state: { config: { image, env: forEver } } });
    expect(failed?.state["version"]).not.toBe(state["version"]);
    await expect(leaseOf(id)).rejects.toThrow(/404/);
    const writes = sentSince(before).filter((sent) => !/get|wait|Lease 404/.test(sent));
    expect(writes).toEqual(["machines.releaseLease 200"]);
  });

  test("while an update waits for another client's lease: nothing was changed, and nothing is requested again", async () => {
    const inputs = await of("a").checked(wanted());
    const { id, state } = await of("a").create(inputs);
    await send(service, "POST", `/v1/apps/app/machines/${String(state["machineId"])}/lease`, { ttl: 600 });
    const next = await of("a").checked(wanted({ env: { A: "1" } }), inputs);
    const updating = outcome(of("a").update({ id, oldInputs: inputs, state, inputs: next }));
    await expect.poll(() => sentSince(0)).toContain("machines.acquireLease 409");
    await cancel();
    const error = await updating;
    expect(String(error)).toMatch(/cancelled/);
    expect(unfinishedIn(error)).toBeUndefined();
    const after = service.requests.length;
    const fresh = await of("a").create(next).catch(String);
    expect(fresh).toMatch(/cancelled/);
    expect(service.requests.length).toBe(after);
    // The other client keeps its lease.
    await expect(leaseOf(id)).resolves.toBeDefined();
  });

  test("while the request for a lease is under way: the lease is released as soon as it is acquired", async () => {
    const inputs = await of("a").checked(wanted());
    const { id, state } = await of("a").create(inputs);
    const next = await of("a").checked(wanted({ env: { A: "1" } }), inputs);
    const { opened, open } = gate();
    service.fail({ operation: "machines.acquireLease", when: "after", until: () => opened });
    const updating = outcome(of("a").update({ id, oldInputs: inputs, state, inputs: next }));
    await expect
      .poll(() =>
        leaseOf(id).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    await cancel();
    open();
    expect(String(await updating)).toMatch(/cancelled/);
    await expect(leaseOf(id)).rejects.toThrow(/404/);
    expect(sentSince(0)).not.toContain("machines.update 200");
  });

  test("while several operations run: each returns its own result", async () => {
    const names = ["a", "b", "c", "d"];
    const creating = Promise.all(
      names.map(async (name) => outcome(of(name).create(await of(name).checked(wanted({ env: forEver }))))),
    );
    await expect.poll(() => service.service.context.waits.size).toBe(names.length);
    await cancel();
    const ids = (await creating).map((error) => unfinishedIn(error)?.id);
    expect(new Set(ids)).toEqual(new Set((await machines()).map(({ id }) => `app/${id}`)));
    expect(ids).toHaveLength(names.length);
  });

  test("later calls send nothing: no create, no read, no preview check", async () => {
    await cancel();
    const before = service.requests.length;
    const app = drive(plugin.client, urnOf("App", "late"));
    const inputs = await app.checked({ name: "late" });
    for (const work of [
      app.create(inputs),
      app.read("late"),
      app.previewCreate(inputs),
      app.update({
        id: "late",
        state: { ...inputs, forceDestroy: true, network: "x" },
        inputs: { ...inputs, network: "y" },
      }),
      app.delete({ id: "late", state: inputs }),
    ])
      await expect(work).rejects.toThrow(/cancelled: nothing more is sent/);
    expect(service.requests.length).toBe(before);
  });
});
