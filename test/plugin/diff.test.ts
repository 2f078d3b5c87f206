// Diffs over gRPC: exact paths and kinds, replacements, ignored changes. The driver checks in every answer that details,
// diffs and replaces agree, and that `changes` is set.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { drive, urnOf, type Driver } from "../support/driver.ts";
import { startPlugin, type Plugin } from "../support/plugin.ts";
import { secret, unknown, unknownTypes, type Properties } from "../support/properties.ts";

const image = "registry.example.com/web:1";
const none = { changes: false, diffs: [], replaces: [], deleteBeforeReplace: false, detailed: {} };

describe("diff", () => {
  let plugin: Plugin;
  let machine: Driver;
  let volume: Driver;
  beforeAll(async () => {
    plugin = await startPlugin();
    machine = drive(plugin.client, urnOf("Machine", "web"));
    volume = drive(plugin.client, urnOf("Volume", "data"));
  });
  afterAll(() => plugin.close());

  /** The diff from one program to another, with the state of the first one. */
  const between = async (
    before: Properties,
    after: Properties,
    { ignoreChanges = [], of = machine, made = {} }: { ignoreChanges?: string[]; of?: Driver; made?: Properties } = {},
  ) => {
    const old = await of.checked(before);
    const { inputs, failures } = await of.check(after, { olds: old });
    expect(failures).toEqual([]);
    const outputs = of === machine ? { machineId: "m", version: "v", state: "started" } : { volumeId: "v" };
    return of.diff({ oldInputs: old, state: { ...old, ...outputs, ...made }, inputs, ignoreChanges });
  };
  const configured = (before: Properties, after: Properties, ignoreChanges: string[] = []) =>
    between({ app: "a", config: { image, ...before } }, { app: "a", config: { image, ...after } }, { ignoreChanges });

  test("the same program is no change", async () => {
    expect(await configured({ env: { A: "1" } }, { env: { A: "1" } })).toEqual(none);
  });

  test("an equivalent spelling is no change, nor is adding or removing a default (R2)", async () => {
    expect(
      await configured(
        {
          stopConfig: { timeout: "60s" },
          services: [{ protocol: "tcp", internalPort: 1, autostop: "stop" }],
          guest: {},
        },
        { stopConfig: { timeout: "1m0s" }, services: [{ protocol: "tcp", internalPort: 1, autostop: true }] },
      ),
    ).toEqual(none);
    expect(await configured({ guest: { cpus: 1, cpuKind: "shared" }, autoDestroy: false }, {})).toEqual(none);
    expect(await between({ app: "a", region: "ams" }, { app: "a", region: "ams", sizeGb: 3 }, { of: volume })).toEqual(
      none,
    );
    const mounted = (volume: string) => ({ mounts: [{ volume, path: "/data" }] });
    expect(await configured(mounted("a/v1"), mounted("v1"))).toEqual(none);
  });

  test("every kind of change is reported at its own path", async () => {
    const found = await configured(
      {
        env: { "A.B": "1", gone: "x", 'qu"ote': "1", "space d": "1" },
        services: [
          { protocol: "tcp", internalPort: 80, ports: [{ port: 80 }] },
          { protocol: "tcp", internalPort: 81 },
        ],
        metadata: { role: "web" },
      },
      {
        env: { "A.B": "2", added: "x", 'qu"ote': "2", "space d": "2" },
        services: [{ protocol: "tcp", internalPort: 90, ports: [{ port: 80, forceHttps: true }] }],
        guest: { memoryMb: 512 },
        metadata: { role: "web" },
      },
    );
    expect(found).toEqual({
      ...none,
      changes: true,
      diffs: ["config"],
      detailed: {
        'config.env["A.B"]': "update",
        "config.env.gone": "delete",
        "config.env.added": "add",
        'config.env["qu\\"ote"]': "update",
        'config.env["space d"]': "update",
        "config.services[0].internalPort": "update",
        "config.services[0].ports[0].forceHttps": "add",
        "config.services[1]": "delete",
        "config.guest": "add",
      },
    });
  });

  test("a key with a backslash is escaped like the engine's paths: only quotes are escaped", async () => {
    const { detailed } = await configured({ env: { "C:\\dir": "1" } }, { env: { "C:\\dir": "2" } });
    expect(detailed).toEqual({ 'config.env["C:\\dir"]': "update" });
  });

  test("an input that causes replacement is reported at its path, whether added, removed or changed", async () => {
    const mounts = [{ volume: "v1", path: "/data" }];
    expect(await configured({ mounts }, { mounts: [{ volume: "v2", path: "/data" }] })).toEqual({
      changes: true,
      diffs: ["config"],
      replaces: ["config"],
      deleteBeforeReplace: false,
      detailed: { "config.mounts[0].volume": "update-replace" },
    });
    expect(await configured({}, { mounts })).toMatchObject({ detailed: { "config.mounts": "add-replace" } });
    expect(await configured({ mounts }, {})).toMatchObject({ detailed: { "config.mounts": "delete-replace" } });
    expect(await configured({ mounts }, { mounts: [{ volume: "v1", path: "/other" }] })).toMatchObject({
      replaces: [],
      detailed: { "config.mounts[0].path": "update" },
    });
    expect(
      await between({ app: "a", config: { image }, cordoned: true }, { app: "b", config: { image, env: { A: "1" } } }),
    ).toEqual({
      changes: true,
      diffs: expect.arrayContaining(["app", "config", "cordoned"]) as unknown,
      replaces: ["app"],
      deleteBeforeReplace: false,
      detailed: { app: "update-replace", "config.env": "add", cordoned: "update" },
    });
  });

  test("a given name is kept, so the old one is deleted first; a generated name is generated again (R4)", async () => {
    const lossy = { app: "a", allowDataLoss: true };
    for (const [name, first] of [
      [{ name: "fixed" }, true],
      [{}, false],
    ] as const) {
      const found = await between(
        { app: "a", region: "ams", config: { image }, ...name },
        { app: "a", region: "fra", config: { image }, ...name },
      );
      expect(found).toMatchObject({ replaces: ["region"], deleteBeforeReplace: first });
    }
    // Several volumes may have one name.
    expect(
      await between({ ...lossy, name: "v", region: "ams" }, { ...lossy, name: "v", region: "fra" }, { of: volume }),
    ).toMatchObject({
      replaces: ["region"],
      deleteBeforeReplace: false,
    });
  });

  test("an unchanged mounted volume means that the old one is deleted first (R4)", async () => {
    const config = { image, mounts: [{ volume: "a/v1", path: "/data" }] };
    expect(await between({ app: "a", region: "ams", config }, { app: "a", region: "fra", config })).toMatchObject({
      replaces: ["region"],
      deleteBeforeReplace: true,
    });
  });

  test("a value that the program left to the service makes no difference (R1)", async () => {
    const made = { region: "ams" };
    expect(await between({ app: "a" }, { app: "a" }, { of: volume, made })).toEqual(none);
    expect(await between({ app: "a" }, { app: "a", region: "ams" }, { of: volume, made })).toEqual(none);
  });

  test("a volume that the service placed is not replaced silently (R9)", async () => {
    const made = { region: "ams" };
    const moving = between({ app: "a" }, { app: "a", region: "fra" }, { of: volume, made });
    await expect(moving).rejects.toThrow(/^.*region: changing it replaces the Volume and destroys its data/);
    expect(
      await between({ app: "a" }, { app: "a", region: "fra", allowDataLoss: true }, { of: volume, made }),
    ).toMatchObject({ replaces: ["region"] });
  });

  test.each(unknownTypes)("an unknown value changes something and replaces nothing (%s)", async (type) => {
    const later = unknown(type);
    const known = { app: "a", name: "n", region: "ams", config: { image, mounts: [{ volume: "v", path: "/d" }] } };
    for (const [after, path] of [
      [{ ...known, app: later }, "app"],
      [{ ...known, region: later }, "region"],
      [{ ...known, config: later }, "config"],
      [{ ...known, config: { image, mounts: later } }, "config.mounts"],
      [{ ...known, config: { image, mounts: [{ volume: later, path: "/d" }] } }, "config.mounts[0].volume"],
    ] as const)
      expect(await between(known, after)).toEqual({
        ...none,
        changes: true,
        diffs: [path.split(".")[0]],
        deleteBeforeReplace: expect.any(Boolean) as unknown,
        detailed: { [path]: "update" },
      });
  });

  test("an unknown value adds nothing to another replacement", async () => {
    const found = await between(
      { app: "a", region: "ams", config: { image } },
      { app: unknown(), region: "fra", config: { image } },
    );
    expect(found).toMatchObject({ replaces: ["region"], detailed: { app: "update", region: "update-replace" } });
  });

  describe("ignoreChanges", () => {
    const before = {
      env: { "A.B": "1", C: "1" },
      services: [
        { protocol: "tcp", internalPort: 80, minMachinesRunning: 1 },
        { protocol: "tcp", internalPort: 81, minMachinesRunning: 1 },
      ],
    };
    const after = {
      env: { "A.B": "2", C: "2" },
      services: [
        { protocol: "tcp", internalPort: 90, minMachinesRunning: 2 },
        { protocol: "tcp", internalPort: 91, minMachinesRunning: 2 },
      ],
    };
    const ports = ["config.services[0].internalPort", "config.services[1].internalPort"];
    const counts = ["config.services[0].minMachinesRunning", "config.services[1].minMachinesRunning"];
    const all = ['config.env["A.B"]', "config.env.C", ...ports, ...counts];
    test.each<[string[], string[]]>([
      [["config"], []],
      [["config.env"], [...ports, ...counts]],
      [['config.env["A.B"]'], ["config.env.C", ...ports, ...counts]],
      [['config["env"].C'], ['config.env["A.B"]', ...ports, ...counts]],
      [['["config"]["env"]["C"]'], ['config.env["A.B"]', ...ports, ...counts]],
      [["config.services[*].internalPort"], ['config.env["A.B"]', "config.env.C", ...counts]],
      [['config.services["*"].internalPort'], ['config.env["A.B"]', "config.env.C", ...counts]],
      [["config.services[1]"], ['config.env["A.B"]', "config.env.C", ports[0] ?? "", counts[0] ?? ""]],
      [["config.env[*]", "config.services"], []],
      [["config.env.A.B", "name", "config.services[7]"], all],
    ])("%j", async (ignoreChanges, left) => {
      const { detailed, changes, diffs } = await configured(before, after, ignoreChanges);
      expect(Object.keys(detailed).sort()).toEqual([...left].sort());
      expect([changes, diffs]).toEqual(left.length > 0 ? [true, ["config"]] : [false, []]);
    });

    test("ignoreChanges of a key with quotes, a backslash, or other characters is obeyed", async () => {
      const env = { 'qu"ote': "1", "C:\\dir": "1", "\\x": "1", "a]b": "1" };
      const changed = Object.fromEntries(Object.keys(env).map((name) => [name, "2"]));
      const paths = ['config.env["qu\\"ote"]', 'config.env["C:\\dir"]', 'config.env["\\x"]', 'config.env["a]b"]'];
      expect((await configured({ env }, { env: changed }, paths)).detailed).toEqual({});
    });

    test("ignoreChanges of a part keeps its parent when all of that was added or removed", async () => {
      const { detailed } = await configured({}, { env: { A: "1", B: "1" } }, ["config.env.A"]);
      expect(detailed).toEqual({ "config.env": "add" });
    });

    test("ignoreChanges of the cause of a replacement cancels the replacement", async () => {
      const found = await between(
        { app: "a", name: "n", region: "ams", config: { image } },
        { app: "a", name: "n", region: "fra", config: { image, env: { A: "1" } } },
        { ignoreChanges: ["region"] },
      );
      expect(found).toMatchObject({
        changes: true,
        diffs: ["config"],
        replaces: [],
        detailed: { "config.env": "add" },
      });
    });
  });

  test("replaceOnChanges alone also determines the order of a replacement (R4)", async () => {
    const change = (name: Properties) =>
      between({ app: "a", config: { image }, ...name }, { app: "a", config: { image, env: { A: "1" } }, ...name });
    expect(await change({ name: "fixed" })).toMatchObject({ replaces: [], deleteBeforeReplace: true });
    expect(await change({})).toMatchObject({ replaces: [], deleteBeforeReplace: false });
  });

  test("steps that failed after the last change remain to be done, though no input changed", async () => {
    const inputs = await machine.checked({ app: "a", config: { image } });
    const context = inputs["__context"] as Properties;
    const state = { ...inputs, machineId: "m", state: "stopped", __context: { ...context, unfinished: true } };
    expect(await machine.diff({ state, inputs })).toEqual({ ...none, changes: true });
  });

  test("marking a value secret is a change, so that the state encrypts it", async () => {
    const inputs = await machine.checked({ app: "a", config: { image, env: { A: "1", B: "2" }, files: [] } });
    const state = { ...inputs, machineId: "m", state: "started" };
    const next = await machine.checked({ app: "a", config: { image, env: { A: secret("1"), B: "2" } } }, inputs);
    expect(await machine.diff({ oldInputs: inputs, state, inputs: next })).toEqual({
      ...none,
      changes: true,
      diffs: ["config"],
      detailed: { "config.env.A": "update" },
    });
    const after = { ...next, machineId: "m", state: "started" };
    expect(await machine.diff({ oldInputs: next, state: after, inputs: next })).toEqual(none);
  });

  test("a refresh's diff has the opposite direction, and refuses nothing (R3)", async () => {
    const refreshed = drive(plugin.client, urnOf("Volume", "refreshed"));
    const asked = await refreshed.checked({ app: "a", sizeGb: 3 });
    const grown = { ...asked, sizeGb: 9, volumeId: "v" };
    expect(await refreshed.diff({ oldInputs: { ...asked, sizeGb: 9 }, state: grown, inputs: asked })).toMatchObject({
      detailed: { sizeGb: "update" },
    });
  });

  test("a refused change never quotes a secret", async () => {
    const inputs = await volume.checked({ app: "a", sizeGb: secret(473) });
    const smaller = await volume.checked({ app: "a", sizeGb: secret(471) }, inputs);
    const error = await volume
      .diff({ oldInputs: inputs, state: { ...inputs, volumeId: "v" }, inputs: smaller })
      .catch((thrown: unknown) => thrown);
    expect(String(error)).toMatch(/sizeGb: got .*never shrinks/);
    expect(String(error)).not.toMatch(/47\d/);
  });

  test("a change to or from an explicit default is neither a removal nor an addition", async () => {
    const fresh = drive(plugin.client, urnOf("Volume", "fresh"));
    const three = await fresh.checked({ app: "a", sizeGb: 3 });
    const four = await fresh.checked({ app: "a", sizeGb: 4 });
    const state = { ...three, volumeId: "v" };
    expect((await fresh.diff({ oldInputs: three, state, inputs: four })).detailed).toEqual({ sizeGb: "update" });
    const back = { oldInputs: four, state: { ...state, ...four }, inputs: three };
    expect((await fresh.diff(back)).detailed).toEqual({ sizeGb: "update" });
  });
});
