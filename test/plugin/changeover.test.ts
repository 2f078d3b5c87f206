// Stacks of the dynamic binding whose program switches to the plugin: the plugin accepts their states unchanged.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Values } from "../../provider/core/resource.ts";
import { makeApp, makeVolume } from "../support/around.ts";
import { bind } from "../support/binding.ts";
import { drive, urnOf } from "../support/driver.ts";
import { startPlugin, type Plugin } from "../support/plugin.ts";
import { revealed, toStruct, type Properties } from "../support/properties.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1";

describe("switching from the dynamic binding", () => {
  let service: TestService;
  let plugin: Plugin;
  beforeAll(async () => {
    service = await startService();
    plugin = await startPlugin();
    await configure(plugin);
    await makeApp(service, "app");
  });
  afterAll(async () => {
    await plugin.close();
    await service.close();
  });

  const configure = ({ client }: Plugin) => {
    const args = toStruct({ endpoint: service.url, token: service.token });
    return client.configure(new proto.ConfigureRequest().setArgs(args));
  };

  const given: Readonly<Record<string, () => Promise<{ news: Properties; change: Properties }>>> = {
    App: () => Promise.resolve({ news: {}, change: { forceDestroy: true } }),
    Volume: () => Promise.resolve({ news: { app: "app", region: "ams" }, change: { snapshotRetention: 9 } }),
    Machine: async () => ({
      news: {
        app: "app",
        config: {
          image,
          env: { A: "1" },
          mounts: [{ volume: await makeVolume(service, "app", "ams"), path: "/data" }],
        },
      },
      change: { cordoned: true },
    }),
  };

  test.each(Object.keys(given))("%s: nothing changes, and all operations continue to work", async (type) => {
    const { news, change } = (await given[type]?.()) ?? { news: {}, change: {} };
    const dynamic = bind(type, service);
    const context = { owner: "0123456789abcdef", name: "web", timeouts: { create: "5m" } };
    // As in the engine: the dynamic binding's host adds its own keys to inputs and state.
    const reference = { __provider: 'exports.handler=()=>require("pulumi-machines/dynamic").provider("x");' };
    const olds = { ...(await dynamic.check({}, { ...news, __context: context })).inputs, ...reference };
    const made = await dynamic.create(olds);
    const state = { ...made.state, ...reference };

    const resource = drive(plugin.client, urnOf(type, "web"));
    const inputs = await resource.checked(news, olds);
    const none = { changes: false, detailed: {} };
    expect(await resource.diff({ id: made.id, oldInputs: olds, state, inputs })).toMatchObject(none);
    const found = await resource.read(made.id, { state, inputs: olds });
    expect(
      await resource.diff({ id: made.id, oldInputs: found?.inputs ?? {}, state: found?.state ?? {}, inputs }),
    ).toMatchObject(none);

    const next = await resource.checked({ ...news, ...change }, olds);
    const updated = await resource.update({ id: made.id, oldInputs: olds, state, inputs: next });
    expect(updated).toMatchObject(change);
    expect(updated).not.toHaveProperty("__provider");
    expect(await resource.diff({ id: made.id, oldInputs: next, state: updated, inputs: next })).toMatchObject(none);
    // And back: the engine updates the reference of the dynamic binding's host in the state, and nothing is sent.
    const back = { ...(await dynamic.check(olds, { ...news, ...change, __context: context })).inputs, ...reference };
    const latest = revealed(updated) as Values;
    const before = service.requests.length;
    expect(await dynamic.diff(made.id, latest, back)).not.toMatch(/replace/);
    expect(await dynamic.update(made.id, latest, back)).toMatchObject(change);
    expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
    // A deletion happens in another run, whose state may still be the old one.
    const later = await startPlugin();
    try {
      await configure(later);
      const gone = drive(later.client, urnOf(type, "web"));
      await gone.delete({ id: made.id, state, inputs: olds });
      expect(await gone.read(made.id, { state, inputs: olds })).toBeUndefined();
    } finally {
      await later.close();
    }
  });
});
