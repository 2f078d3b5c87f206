// Resources that the engine reads before each diff: a fleet, so that `up` repairs its Machines without a refresh.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeApp, send } from "../support/around.ts";
import { drive, urnOf, type Driver } from "../support/driver.ts";
import { startPlugin, unfinishedIn, type Plugin } from "../support/plugin.ts";
import { secret, toStruct, type Properties } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

const defaultProvider = "urn:pulumi:dev::project::pulumi:providers:machines::default_0_1_0";
const image = (tag: string) => `registry.example.com/web:${tag}`;
const config = { image: image("1") };

let service: TestService;
beforeAll(async () => (service = await startService()));
afterAll(() => service.close());

interface Engine {
  readonly canRefreshFirst?: boolean;
  readonly provider?: string;
}

/** A plugin as an engine starts and configures it. */
async function started({ canRefreshFirst = true, provider = defaultProvider }: Engine = {}): Promise<Plugin> {
  const values = { endpoint: service.url, token: service.token };
  const plugin = await startPlugin({ env: { PULUMI_CONFIG: JSON.stringify(values) } });
  const hello = new proto.ProviderHandshakeRequest().setEngineAddress("127.0.0.1:1");
  await plugin.client.handshake(hello.setSupportsRefreshBeforeUpdate(canRefreshFirst));
  await plugin.client.configure(new proto.ConfigureRequest().setUrn(provider).setArgs(toStruct(values)));
  return plugin;
}

describe("the engine is asked to read a fleet before each diff", () => {
  const urn = urnOf("Fleet", "web");

  /** The answers about a fleet to a create, to a refresh, an update, an update that fails, and a `get`. */
  const told = async ({ client }: Plugin, app: string) => {
    const fleet = drive(client, urn);
    const inputs = await fleet.checked({ app, name: "web", regions: { ams: 1 }, config });
    const created = await client.create(new proto.CreateRequest().setUrn(urn).setProperties(toStruct(inputs)));
    const [id, state] = [created.getId(), created.getProperties()];
    const readIt = () => client.read(new proto.ReadRequest().setUrn(urn).setId(id).setProperties(state));
    const updateTo = (news: Properties) =>
      client.update(new proto.UpdateRequest().setUrn(urn).setId(id).setOlds(state).setNews(toStruct(news)));
    const crashing = { image: image("2"), env: { MACHINES_SIMULATE: "crash" } };
    const [read, updated] = [await readIt(), await updateTo(inputs)];
    const failed = await updateTo(
      await fleet.checked({ app, name: "web", regions: { ams: 1 }, config: crashing }),
    ).then(() => undefined, unfinishedIn);
    const got = await client.read(new proto.ReadRequest().setUrn(urn).setId(id));
    return [created, read, updated]
      .map((answer) => answer.getRefreshBeforeUpdate())
      .concat([failed?.refreshBeforeUpdate ?? false, got.getRefreshBeforeUpdate()]);
  };

  test.each<[string, Engine, boolean]>([
    ["if it can do so", {}, true],
    ["not if it is older", { canRefreshFirst: false }, false],
    [
      "not with an explicit provider, whose stored token may be an old one",
      { provider: "urn:pulumi:dev::project::pulumi:providers:machines::other" },
      false,
    ],
  ])("%s", async (_, engine, isTold) => {
    const plugin = await started(engine);
    try {
      const app = await makeApp(service, `told-${service.requests.length}`);
      expect(await told(plugin, app)).toEqual([isTold, isTold, isTold, isTold, false]);
    } finally {
      await plugin.close();
    }
  });

  test("the engine is not asked to read Machines before a diff, so they stay stopped", async () => {
    const plugin = await started();
    try {
      const machine = drive(plugin.client, urnOf("Machine", "web"));
      const inputs = await machine.checked({ app: await makeApp(service, "single"), region: "ams", config });
      const request = new proto.CreateRequest().setUrn(machine.urn).setProperties(toStruct(inputs));
      expect((await plugin.client.create(request)).getRefreshBeforeUpdate()).toBe(false);
    } finally {
      await plugin.close();
    }
  });
});

describe("an update after the read", () => {
  let plugin: Plugin;
  let fleet: Driver;
  let app: string;
  let inputs: Properties;
  let id: string;
  let state: Properties;
  beforeAll(async () => {
    plugin = await started();
    fleet = drive(plugin.client, urnOf("Fleet", "web"));
    app = await makeApp(service, "read-first");
    inputs = await wanted({});
    ({ id, state } = await fleet.create(inputs));
  });
  afterAll(() => plugin.close());

  const wanted = (more: Properties, olds?: Properties) =>
    fleet.checked({ app, name: "web", regions: { ams: 2, iad: 1 }, config, ...more }, olds);
  interface Live {
    readonly id: string;
    readonly name: string;
    readonly state: string;
    readonly config: { readonly image: string };
  }
  const live = () => send<Live[]>(service, "GET", `/v1/apps/${app}/machines`);
  const post = (machine: Live | undefined, path: string, body: unknown) =>
    send(service, "POST", `/v1/apps/${app}/machines/${machine?.id ?? ""}${path}`, body);
  const images = async () => (await live()).map((one) => one.config.image).sort();
  const named = async (name: string) => (await live()).find((one) => one.name === name);
  /** The next `up`: reads, then compares. The engine takes the values of ignored inputs from what was read. */
  const next = async (more: Properties = {}, ignored: readonly string[] = []) => {
    const read = await fleet.read(id, { state, inputs });
    if (read?.inputs === undefined) throw new Error("the fleet is gone");
    const kept = Object.fromEntries(ignored.map((name) => [name, read.inputs?.[name]]));
    const news = await wanted({ ...more, ...kept }, read.inputs);
    const { changes, diffs } = await fleet.diff({ id, state: read.state, inputs: news, ignoreChanges: ignored });
    return { read, news, changes, diffs };
  };
  const up = async (found: Awaited<ReturnType<typeof next>>) => {
    state = await fleet.update({ id, state: found.read.state, inputs: found.news });
    inputs = found.news;
  };

  test("an update after the read has nothing to do without drift", async () => {
    expect((await next()).changes).toBe(false);
  });

  test("an update after the read starts a Machine that was stopped by hand", async () => {
    await post((await live())[0], "/stop", {});
    const found = await next();
    expect(found.diffs).toEqual(["drift"]);
    await up(found);
    expect((await live()).map((one) => one.state)).toEqual(["started", "started", "started"]);
    expect((await next()).changes).toBe(false);
  });

  test("an update after the read creates a Machine that is missing, unless the program ignores the counts", async () => {
    const lost = await named("web-ams-2");
    await send(service, "DELETE", `/v1/apps/${app}/machines/${lost?.id ?? ""}?force=true`);
    expect(await next({}, ["regions"])).toMatchObject({
      changes: false,
      read: { inputs: { regions: { ams: 1, iad: 1 } } },
    });
    const found = await next();
    expect(found.diffs).toEqual(["regions"]);
    await up(found);
    expect((await live()).map(({ name }) => name).sort()).toEqual(["web-ams-1", "web-ams-2", "web-iad-1"]);
  });

  test("repairs one Machine with another configuration, even if the program ignores the configuration", async () => {
    const odd = await named("web-iad-1");
    for (const ignored of [[], ["config"]]) {
      await post(odd, "", { config: { ...odd?.config, image: image("by-hand") } });
      const found = await next({}, ignored);
      expect(found.diffs).toEqual(["drift"]);
      await up(found);
      expect(await images()).toEqual([image("1"), image("1"), image("1")]);
    }
  });

  test("an update after the read keeps the configuration that most Machines got elsewhere, if the program ignores it", async () => {
    for (const name of ["web-ams-1", "web-ams-2"]) {
      const one = await named(name);
      await post(one, "", { config: { ...one?.config, image: image("elsewhere") } });
    }
    const { read } = await next();
    expect(read.inputs).toMatchObject({ config: { image: image("elsewhere") } });
    await up(await next({}, ["config"]));
    expect(await images()).toEqual([image("elsewhere"), image("elsewhere"), image("elsewhere")]);
    await up(await next());
    expect(await images()).toEqual([image("1"), image("1"), image("1")]);
  });

  test("an update after the read waits with the canaries, and still knows the previous configuration", async () => {
    const strategy = { type: "canary", count: 1, observe: "0s", promote: "manual" };
    const waiting = { strategy, config: { image: image("2") } };
    await up(await next(waiting));
    expect(state).toMatchObject({ rollout: "canary", committed: secret(config) });
    const found = await next(waiting);
    expect(found.changes).toBe(false);
    expect(found.read.state).toMatchObject({ rollout: "canary", committed: secret(config) });
    await up(await next({ ...waiting, promoted: true }));
    expect(await images()).toEqual([image("2"), image("2"), image("2")]);
    await up(await next());
  });

  test("an update after the read continues a rollout that failed, although the engine forgets its errors when it reads", async () => {
    const crashing = { config: { image: image("3"), env: { MACHINES_SIMULATE: "crash" } } };
    const found = await next(crashing);
    const failed = await fleet
      .update({ id, state: found.read.state, inputs: found.news })
      .then(() => undefined, unfinishedIn);
    expect(failed).toMatchObject({ state: { rollout: "failed", committed: secret(config) } });
    [state, inputs] = [failed?.state ?? {}, found.news];
    const again = await next(crashing);
    expect([again.changes, again.read.state]).toEqual([
      true,
      expect.objectContaining({ rollout: "failed", committed: secret(config) }),
    ]);
    await up(await next());
    expect(await images()).toEqual([image("1"), image("1"), image("1")]);
    expect((await next()).changes).toBe(false);
  });
});
