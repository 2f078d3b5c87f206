// Check over gRPC: unknown values, failures, generated names, and the amount of data it can process.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { drive, urnOf, type Driver } from "../support/driver.ts";
import { isThorough } from "../support/extent.mts";
import { startPlugin, type Plugin } from "../support/plugin.ts";
import { Output, Reference, secret, toStruct, unknown, unknownTypes, type Properties } from "../support/properties.ts";
import { thoroughTest } from "../support/thorough.ts";

const image = "registry.example.com/web:1";

describe("check", () => {
  let plugin: Plugin;
  beforeAll(async () => (plugin = await startPlugin()));
  afterAll(() => plugin.close());

  const of = (type: string, name = "web"): Driver => drive(plugin.client, urnOf(type, name));
  const reasons = async (type: string, news: Properties, olds: Properties = {}) =>
    (await of(type).check(news, { olds })).failures.map(({ reason }) => reason);

  describe("unknown values", () => {
    const places: readonly [string, (value: unknown) => Properties, (inputs: Properties) => unknown][] = [
      ["a text", (value) => ({ app: value }), ({ app }) => app],
      ["a number", (value) => ({ app: "a", sizeGb: value }), ({ sizeGb }) => sizeGb],
      ["a boolean", (value) => ({ app: "a", encrypted: value }), ({ encrypted }) => encrypted],
    ];
    test.each(unknownTypes)(
      "any kind of unknown (%s) is accepted and returned as the kind that SDKs know",
      async (type) => {
        for (const [, news, found] of places) {
          const { inputs, failures } = await of("Volume").check(news(unknown(type)));
          expect(failures).toEqual([]);
          expect(found(inputs)).toEqual(unknown());
        }
        const deep = {
          image: unknown(type),
          env: { A: unknown(type) },
          guest: { memoryMb: unknown(type) },
          services: [
            { protocol: unknown(type), internalPort: unknown(type), ports: unknown(type), autostart: unknown(type) },
          ],
          checks: unknown(type),
          stopConfig: unknown(type),
          extra: { anything: unknown(type) },
        };
        const { inputs, failures } = await of("Machine").check({ app: "a", config: deep });
        expect(failures).toEqual([]);
        expect(inputs["config"]).toEqual({
          image: unknown(),
          env: { A: unknown() },
          guest: { memoryMb: unknown() },
          services: [
            {
              protocol: unknown(),
              internalPort: unknown(),
              ports: unknown(),
              autostart: unknown(),
            },
          ],
          checks: unknown(),
          stopConfig: unknown(),
          extra: { anything: unknown() },
        });
        expect((await of("Machine").check({ app: "a", config: unknown(type) })).inputs).toMatchObject({
          config: unknown(),
        });
      },
    );

    test("an unknown secret or output keeps its mark", async () => {
      const output = new Output(undefined, { secret: true, dependencies: ["urn:1"] });
      const { inputs, failures } = await of("Volume").check({ app: secret(unknown()), region: output });
      expect(failures).toEqual([]);
      expect(inputs).toMatchObject({ app: secret(unknown()), region: output });
    });

    test("a rule is applied once the values it needs are known, other rules at once", async () => {
      const config = {
        image,
        guest: { cpus: unknown(), memoryMb: 100 },
        mounts: [{ volume: "v", path: "data" }],
      };
      expect(await reasons("Machine", { app: "a", config })).toEqual([
        'config.mounts[0].path: got "data"; must be an absolute path',
      ]);
    });

    test("a list of versions is unknown while one of them is, and secret if one of them is", async () => {
      const version = async (minSecretsVersion: unknown) =>
        (await of("Machine").checked({ app: "a", config: { image }, minSecretsVersion }))["minSecretsVersion"];
      expect(await version([1, unknown()])).toEqual(unknown());
      expect(await version([1, new Output(7), 3])).toBe(7);
      expect(await version([1, secret(7)])).toEqual(secret(7));
      expect(await version(secret([1, 7]))).toEqual(secret(7));
    });

    test("a reference to a resource becomes its id, or unknown", async () => {
      const other = urnOf("App", "other");
      expect((await of("Volume").check({ app: new Reference(other, "the-app") })).inputs["app"]).toBe("the-app");
      for (const reference of [new Reference(other), new Reference(other, ""), new Reference(other, unknown())])
        expect((await of("Volume").check({ app: reference })).inputs["app"]).toEqual(unknown());
    });
  });

  test("null equals an omitted value at any depth, because some languages send it", async () => {
    const services = [{ protocol: "tcp", internalPort: 80, ports: null, checks: [{ type: "tcp", port: null }] }];
    const machine = of("Machine");
    const inputs = await machine.checked({
      app: "a",
      region: null,
      state: secret(null),
      config: { image, env: null, guest: { cpus: null }, services, stopConfig: null },
    });
    expect(Object.keys(inputs)).not.toContain("region");
    const plain = { image, services: [{ protocol: "tcp", internalPort: 80, checks: [{ type: "tcp" }] }] };
    const state = { ...(await machine.checked({ app: "a", name: inputs["name"], config: plain })), machineId: "m" };
    expect(await machine.diff({ state, inputs })).toMatchObject({ changes: false });
    expect(await reasons("Machine", { app: null, config: { image, env: { A: null } } })).toEqual([
      expect.stringMatching(/^app: is required/),
      "config.env.A: is required",
    ]);
  });

  describe("failures", () => {
    test("do not name a property, because the engine would print its value; the path is part of the reason", async () => {
      const { failures } = await of("Machine").check({
        app: "A",
        confg: 1,
        config: { image, env: { "A.B": 1 }, services: [{ protocol: "tcp", internalPort: 0 }] },
      });
      expect(failures).toEqual([
        { property: "", reason: "confg: there is no such property; did you mean config?" },
        { property: "", reason: expect.stringMatching(/^app: got "A"; must be 1 to 62/) as unknown },
        { property: "", reason: expect.stringMatching(/^config\.env\["A\.B"\]: got a number; /) as unknown },
        { property: "", reason: expect.stringMatching(/^config\.services\[0\]\.internalPort: got 0; /) as unknown },
      ]);
    });

    test("the failures of a check include refused changes (R3, R9)", async () => {
      const olds = await of("Volume").checked({ app: "a", region: "ams", sizeGb: 5 });
      expect(await reasons("Volume", { app: "a", region: "fra", sizeGb: 5 }, olds)).toEqual([
        expect.stringMatching(/^region: .*set allowDataLoss/),
      ]);
      expect(await reasons("Volume", { app: "a", region: unknown(), sizeGb: 5 }, olds)).toEqual([]);
    });

    test.each<[string, string, Properties]>([
      ["at the top", "Machine", { app: "a", region: secret("CANARY"), config: { image } }],
      ["longer than a quotation", "Machine", { app: "a", region: secret("CANARY-".repeat(40)), config: { image } }],
      // In an object that is marked as a whole, a plain word is none (F56).
      ["as a whole object", "Machine", { app: "a", config: secret({ image, size: "CANARY-1" }) }],
      ["in an object", "Machine", { app: "a", config: { image, size: secret("CANARY") } }],
      ["in a list", "Machine", { app: "a", config: { image, files: [{ guestPath: secret("CANARY") }] } }],
      [
        "in a list's item's list",
        "Machine",
        { app: "a", config: { image, services: secret([{ protocol: "CANARY" }]) } },
      ],
      ["in a map", "Machine", { app: "a", config: { image, metadata: { "pulumi-x": secret("CANARY") } } }],
      ["a number", "Machine", { app: "a", config: { image, guest: { cpus: secret(73_519) } } }],
      ["inside an output", "Machine", { app: "a", region: new Output("CANARY", { secret: true }), config: { image } }],
    ])("a secret is never quoted: %s", async (_where, type, news) => {
      const { failures } = await of(type).check(news);
      expect(failures).not.toEqual([]);
      expect(JSON.stringify(failures)).not.toMatch(/CANARY|73519/);
    });
  });

  describe("names", () => {
    const nameOf = async (type: string, name: string, options: Parameters<Driver["check"]>[1] = {}) =>
      (await of(type, name).check(type === "App" ? {} : { app: "a", config: { image } }, options)).inputs["name"];

    test("a generated name consists of the resource's name, reduced to valid characters, and a random suffix", async () => {
      const names = await Promise.all(Array.from({ length: 20 }, () => nameOf("App", "My Web.App")));
      for (const name of names) expect(name).toMatch(/^my-web-app-[0-9a-f]{7}$/);
      expect(new Set(names).size).toBe(20);
    });

    test("follow from the seed, so that a plan is executed with the names it showed", async () => {
      const name = await nameOf("App", "web", { seed: "seed" });
      expect(await nameOf("App", "web", { seed: "seed" })).toBe(name);
      expect(await nameOf("App", "web", { seed: "other" })).not.toBe(name);
      // One seed for two resources of one name still generates two names.
      const parented = drive(plugin.client, "urn:pulumi:dev::project::my:index:Site$machines:index:App::web");
      expect((await parented.check({}, { seed: "seed" })).inputs["name"]).not.toBe(name);
      const again = await startPlugin();
      try {
        const { inputs } = await drive(again.client, urnOf("App", "web")).check({}, { seed: "seed" });
        expect(inputs["name"]).toBe(name);
      } finally {
        await again.close();
      }
    });

    test("proposed by the engine are adjusted, those it prescribes are used unchanged", async () => {
      const long = "A_Name.".repeat(20);
      expect(await nameOf("App", "web", { autonaming: { mode: "propose", name: long } })).toBe(
        "a-name-".repeat(9).slice(0, 62),
      );
      expect(await nameOf("App", "web", { autonaming: { mode: "enforce", name: "exactly-this" } })).toBe(
        "exactly-this",
      );
      const { inputs, failures } = await of("App").check({}, { autonaming: { mode: "enforce", name: "Not Allowed" } });
      expect(inputs["name"]).toBe("Not Allowed");
      expect(failures).toEqual([
        { property: "", reason: expect.stringMatching(/^name: got "Not Allowed"/) as unknown },
      ]);
    });

    test("names that the engine disabled must be given", async () => {
      const off = { autonaming: { mode: "disable" } } as const;
      expect((await of("App").check({}, off)).failures).toEqual([
        { property: "", reason: expect.stringMatching(/^name: is required, because pulumi:autonaming/) as unknown },
      ]);
      expect((await of("App").check({ name: "given" }, off)).failures).toEqual([]);
    });

    test("names are kept, whatever the engine proposes later", async () => {
      const olds = await of("App").checked({});
      for (const autonaming of [
        undefined,
        { mode: "propose", name: "other" },
        { mode: "enforce", name: "other" },
        { mode: "disable" },
      ] as const) {
        const options = autonaming ? { olds, autonaming } : { olds };
        const { inputs, failures } = await of("App").check({}, options);
        expect(failures).toEqual([]);
        expect(inputs["name"]).toBe(olds["name"]);
      }
      const chosen = await of("App").checked({ name: "chosen" });
      expect((await of("App").check({}, { olds: chosen })).inputs["name"]).toBe("chosen");
    });

    test("names that were generated from a secret stay secret when the program omits them", async () => {
      const olds = await of("App").checked({ name: secret("chosen") });
      expect((await of("App").check({}, { olds })).inputs["name"]).toEqual(secret("chosen"));
    });
  });

  describe("load", () => {
    const checks = isThorough ? 5000 : 1000;
    test(`${checks} checks succeed in a heap too small for leaked memory`, async () => {
      const small = await startPlugin({ env: { NODE_OPTIONS: "--max-old-space-size=40 --max-semi-space-size=4" } });
      try {
        const config = {
          image,
          env: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`V${i}`, `value ${i}`])),
        };
        let next = 0;
        const some = async (): Promise<void> => {
          while (next < checks) {
            const machine = drive(small.client, urnOf("Machine", `m${next++}`));
            expect((await machine.check({ app: "a", config })).failures).toEqual([]);
          }
        };
        await Promise.all(Array.from({ length: 16 }, some));
      } finally {
        await small.close();
      }
    });

    thoroughTest("a configuration of 8 MB passes check, diff and preview", async () => {
      const env = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`V${i}`, secret(String(i).repeat(2 ** 20))]));
      const machine = of("Machine", "big");
      const inputs = await machine.checked({ app: "a", config: { image, env } });
      expect(inputs["config"]).toMatchObject({ env });
      // Nothing is requested: the name is given, and no region is chosen.
      const args = toStruct({ endpoint: "http://127.0.0.1:9", token: "t" });
      await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
      expect((await machine.previewCreate(inputs)).state["config"]).toEqual(inputs["config"]);
      const config = { image, env: { ...env, V8: "small" } };
      expect(await machine.diff({ state: { ...inputs, machineId: "m" }, inputs: { ...inputs, config } })).toMatchObject(
        {
          detailed: { "config.env.V8": "add" },
        },
      );
    });
  });
});
