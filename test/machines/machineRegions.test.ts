// A Machine whose region has no capacity, in both bindings: where it is created, without drift, and the warnings.
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { ask, contextKey, questionsOf } from "../../provider/dynamic/index.ts";
import type { Values } from "../../provider/core/resource.ts";
import { makeApp, makeVolume } from "../support/around.ts";
import { bind, bindings, type Bound } from "../support/binding.ts";
import { drive, urnOf } from "../support/driver.ts";
import { startEngine, startPlugin, type FakeEngine, type Plugin } from "../support/plugin.ts";
import { toStruct, unknown, type Properties } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

const config = { image: "registry.example.com/web:1", guest: { cpus: 2, memoryMb: 512 } };
const given = { app: "app", region: "ams", fallbackRegions: ["lhr", "fra"], config };
const full = { ams: 0, lhr: 0, gru: { total: 10, shared: 0, performance: 10 } };

describe.each(bindings)("fallbackRegions of a Machine, $name binding", ({ start }) => {
  let service: TestService;
  let machine: Bound;
  let close: () => Promise<void>;
  beforeAll(async () => {
    service = await startService({ capacity: full });
    ({ bound: machine, close } = await start("Machine", service));
    await makeApp(service, "app");
  });
  afterAll(async () => {
    await close();
    await service.close();
  });
  const checked = async (news: Values, olds: Values = {}) => {
    const { inputs, failures } = await machine.check(olds, news);
    expect(failures).toEqual([]);
    return inputs;
  };

  test("the Machine is created in the first region with capacity, without drift", async () => {
    const inputs = await checked({ ...given, __context: { name: "placed" } });
    const { id, state } = await machine.create(inputs);
    expect(state).toMatchObject({ region: "ams", placedRegion: "fra", state: "started" });
    const found = await machine.read(id, state);
    expect(found).toMatchObject({ state, inputs });
    expect(await machine.diff(id, found?.state ?? {}, inputs)).toBe("same");
    // Other changes, or another order, cause no drift either.
    const next = await checked({ ...inputs, config: { ...config, env: { A: "1" } }, fallbackRegions: ["fra"] }, inputs);
    expect(await machine.diff(id, state, next)).toBe("update");
    const after = await machine.update(id, state, next);
    expect(after).toMatchObject({ region: "ams", placedRegion: "fra" });
    // If its region is removed from the list, it stays there, also after a refresh.
    const without = await checked({ ...next, fallbackRegions: ["lhr"] }, next);
    const kept = await machine.update(id, after, without);
    expect(kept).toMatchObject({ region: "ams", placedRegion: "fra", fallbackRegions: ["lhr"] });
    expect(await machine.diff(id, (await machine.read(id, kept))?.state ?? {}, without)).toBe("same");
    expect(await machine.diff(id, kept, await checked({ ...without, region: "lhr" }, without))).not.toBe("same");
    await machine.delete(id, kept);
  });

  test("a Machine in an unlisted region shows drift", async () => {
    const inputs = await checked({ ...given, region: "fra", fallbackRegions: ["lhr"] });
    const { id, state } = await machine.create(inputs);
    service.fail({
      operation: "machines.list",
      when: "after",
      rewrite: (body) => (body as Values[]).map((one) => ({ ...one, region: "gru" })),
    });
    expect((await machine.read(id, state))?.state).toMatchObject({ region: "gru", placedRegion: "gru" });
    await machine.delete(id, state);
  });

  test("the list requires a first region, and a Machine without a volume", async () => {
    const { region: _, ...without } = given;
    expect((await machine.check({}, without)).failures).toEqual([
      expect.stringMatching(/fallbackRegions: needs region/),
    ]);
    const mounts = [{ volume: "vol_1", path: "/data" }];
    expect((await machine.check({}, { ...given, config: { ...config, mounts } })).failures).toEqual([
      expect.stringMatching(/fallbackRegions: a Machine that mounts a volume/),
    ]);
  });

  test("an import writes the region that the Machine runs in", async () => {
    const { id, state } = await machine.create(await checked({ ...given, __context: { name: "imported" } }));
    expect((await machine.read(id, {}))?.inputs).toMatchObject({ region: "fra" });
    await machine.delete(id, state);
  });
});

describe("warnings", () => {
  let service: TestService;
  let engine: FakeEngine;
  let plugin: Plugin;
  beforeAll(async () => {
    service = await startService({ capacity: full });
    engine = await startEngine();
    plugin = await startPlugin({ args: [engine.address] });
    const args = toStruct({ endpoint: service.url, token: service.token, retries: 0 });
    await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
    await makeApp(service, "app");
  });
  afterAll(async () => {
    await plugin.close();
    engine.close();
    await service.close();
  });
  beforeEach(() => void engine.logs.splice(0));
  const warnings = () => engine.logs.filter(({ severity }) => severity === "warning").map(({ message }) => message);

  /** What the dynamic binding says in its own preview: requested in the program, decided by check. */
  const dynamicWarnings = async (inputs: Properties, olds: Values = {}): Promise<string[]> => {
    const { said, failures } = await dynamicCheck(inputs, olds);
    expect(failures).toEqual([]);
    return said;
  };
  const dynamicCheck = async (inputs: Properties, olds: Values = {}) => {
    const settings: Record<string, string> = { endpoint: service.url, token: service.token };
    const get = (key: string) => settings[key];
    const said: string[] = [];
    const findings = await Promise.all(
      questionsOf("Machine")
        .map(({ needs }, i) => ({ needs, i }))
        .filter(({ needs }) => needs.every((need) => inputs[need] !== undefined))
        .map(({ i }) => ask("Machine", i, inputs, "owner", get, (message) => said.push(message))),
    );
    const spy = vi.spyOn(console, "error").mockImplementation((message: string) => void said.push(message));
    try {
      const checked = await bind("Machine", service).check(olds, {
        ...inputs,
        [contextKey]: { findings: findings.filter((one) => one !== null) },
      });
      return { said, failures: checked.failures };
    } finally {
      spy.mockRestore();
    }
  };

  test.each<[string, Properties, RegExp | undefined]>([
    [
      "the first has no capacity",
      given,
      /^Machine region: there is no room .* in ams now; it would be created in fra$/,
    ],
    [
      "none has capacity",
      { ...given, fallbackRegions: ["lhr"] },
      /no room for such a Machine in ams, lhr now; choose another/,
    ],
    [
      "the only one has no capacity",
      { ...given, fallbackRegions: undefined },
      /no room for such a Machine in ams now; choose/,
    ],
    [
      "there is capacity for another kind of CPU",
      { ...given, region: "gru", fallbackRegions: [] },
      /no room .* in gru now/,
    ],
    [
      "there is capacity for this kind of CPU",
      { ...given, region: "gru", fallbackRegions: [], config: { image: config.image, size: "performance-1x" } },
      undefined,
    ],
    ["there is capacity", { ...given, region: "fra" }, undefined],
  ])("in the preview of a create, in both bindings: %s", async (_what, news, expected) => {
    const program = Object.fromEntries(Object.entries(news).filter(([, value]) => value !== undefined));
    const machine = drive(plugin.client, urnOf("Machine", "asked"));
    const inputs = await machine.checked(program);
    const before = service.requests.length;
    expect((await machine.previewCreate(inputs)).state).toMatchObject({ region: news["region"] });
    // Only reads were sent.
    const sent = service.requests.slice(before).map(({ operation }) => operation);
    expect(sent.filter((operation) => operation !== "platform.placements" && operation !== "platform.regions")).toEqual(
      [],
    );
    const expectedWarnings = expected === undefined ? [] : [expect.stringMatching(expected) as unknown];
    await expect.poll(warnings).toEqual(expectedWarnings);
    expect(await dynamicWarnings(program)).toEqual(expectedWarnings);
    // An existing Machine already has its place.
    expect(await dynamicWarnings(program, inputs)).toEqual([]);
  });

  test("only the size has to be known for a warning", async () => {
    const machine = drive(plugin.client, urnOf("Machine", "sized"));
    const vague = { ...given, config: { ...config, env: unknown() } };
    await machine.previewCreate(await machine.checked(vague));
    await expect.poll(warnings).toHaveLength(1);
    engine.logs.splice(0);
    const before = service.requests.length;
    await machine.previewCreate(await machine.checked({ ...given, config: { ...config, guest: unknown() } }));
    expect(service.requests.slice(before).map(({ operation }) => operation)).not.toContain("platform.placements");
    expect(warnings()).toEqual([]);
  });

  test("a listed region that does not exist is refused by name", async () => {
    const machine = drive(plugin.client, urnOf("Machine", "typo"));
    const inputs = await machine.checked({ ...given, fallbackRegions: ["fra", "lhrr"] });
    await expect(machine.previewCreate(inputs)).rejects.toThrow(
      /fallbackRegions: there is no region "lhrr"; did you mean "lhr"/,
    );
  });

  test("a wrong region is one error in both bindings, also for a Machine that mounts a volume", async () => {
    const volume = await makeVolume(service, "app", "ams");
    const news = { app: "app", region: "xyz", config: { ...config, mounts: [{ volume, path: "/data" }] } };
    const machine = drive(plugin.client, urnOf("Machine", "nowhere"));
    const error = String(await machine.previewCreate(await machine.checked(news)).catch((thrown: unknown) => thrown));
    expect(error.match(/region: /g)).toEqual(["region: "]);
    expect(error).toContain('region: there is no region "xyz"; did you mean "yyz"?');
    const { failures } = await dynamicCheck(news);
    expect(failures).toEqual([expect.stringMatching(/^region: there is no region "xyz"/)]);
    expect((await dynamicCheck({ ...news, region: "fra" })).failures).toEqual([
      expect.stringMatching(/^region: got "fra", but the volume .* is in "ams"/),
    ]);
  });

  test("a list without the region in which the Machine runs causes a warning, in preview and update", async () => {
    // The engine shows a message about one resource once, so each case has its own.
    const [asked, machine] = ["asked-moved", "moved"].map((name) => drive(plugin.client, urnOf("Machine", name)));
    if (!asked || !machine) return;
    const inputs = await machine.checked(given);
    const { id, state } = await machine.create(inputs);
    engine.logs.splice(0);
    const says = [expect.stringMatching(/^Machine: it runs in fra, .*stays there/) as unknown];
    const next = await machine.checked({ ...given, fallbackRegions: ["lhr"] }, inputs);
    const before = service.requests.length;
    await asked.previewUpdate({ id, oldInputs: inputs, state, inputs: next });
    await expect.poll(warnings).toEqual(says);
    engine.logs.splice(0);
    await machine.update({ id, oldInputs: inputs, state, inputs: next });
    await expect.poll(warnings).toEqual(says);
    expect(service.requests.slice(before).filter(({ operation }) => operation?.startsWith("machines."))).toEqual([]);
    // Removing another region causes no warning.
    engine.logs.splice(0);
    await machine.update({
      id,
      oldInputs: inputs,
      state,
      inputs: await machine.checked({ ...given, fallbackRegions: ["fra"] }, inputs),
    });
    expect(warnings()).toEqual([]);
  });
});
