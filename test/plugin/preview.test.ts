// Previews over gRPC: their results match the later update, they only send reads, and problems that the service reports are
// shown before any change.
import fc from "fast-check";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isObject } from "../../api/schema.ts";
import { ask, contextKey, questionsOf } from "../../provider/dynamic/index.ts";
import { resources } from "../../provider/registry.ts";
import { arbitraryOf } from "../support/arbitrary.ts";
import { makeApp, makeMachine, makeVolume } from "../support/around.ts";
import { bind } from "../support/binding.ts";
import { drive, urnOf, type Driver } from "../support/driver.ts";
import { startEngine, startPlugin, unfinishedIn, type FakeEngine, type Plugin } from "../support/plugin.ts";
import { brokenPromises, secret, toStruct, unknown, Unknown, type Properties } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1";

describe("preview", () => {
  let service: TestService;
  let engine: FakeEngine;
  let plugin: Plugin;
  beforeAll(async () => {
    service = await startService();
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

  const of = (type: string, name = "web"): Driver => drive(plugin.client, urnOf(type, name));
  /** The requests that some work sent. */
  const sent = async (work: () => Promise<unknown>): Promise<string[]> => {
    const before = service.requests.length;
    await work();
    return service.requests.slice(before).map(({ method, path }) => `${method} ${path}`);
  };

  describe("of a create", () => {
    // With an id, its dependents would be looked up and not found.
    test("the preview of a create returns the inputs, and no id, because there is none yet", async () => {
      const app = of("App");
      const inputs = await app.checked({ name: "given", network: "blue" });
      expect(
        await sent(async () => {
          expect(await app.previewCreate(inputs)).toEqual({
            id: "",
            state: {
              name: "given",
              network: "blue",
              forceDestroy: false,
              organization: unknown(),
              appId: unknown(),
              httpUrl: unknown(),
              httpsUrl: unknown(),
              __context: { left: ["organization"] },
            },
          });
        }),
      ).toEqual(["GET /v1/platform/regions", "GET /v1/apps/given"]);
    });

    test("the preview of a create returns no id if a part of it is random or chosen by the service", async () => {
      const made = await of("App").previewCreate(await of("App").checked({}));
      expect(made).toMatchObject({ id: "", state: { name: unknown() } });
      const machine = await of("Machine").previewCreate(await of("Machine").checked({ app: "app", config: { image } }));
      expect(machine).toMatchObject({ id: "", state: { app: "app", machineId: unknown(), version: unknown() } });
    });

    test("an unknown part of an input is unknown in the output, at the same path", async () => {
      const machine = of("Machine");
      const news = {
        app: unknown(),
        region: unknown(),
        cordoned: unknown(),
        config: {
          image,
          env: { A: unknown(), B: "known" },
          services: unknown(),
          guest: { cpus: unknown() },
        },
      };
      const inputs = await machine.checked(news);
      expect(
        await sent(async () => {
          const { id, state } = await machine.previewCreate(inputs);
          expect(id).toBe("");
          expect(state).toMatchObject(news);
        }),
      ).toEqual([]);
    });
  });

  describe("of an update", () => {
    test("the preview of an update knows everything that the change does not affect", async () => {
      const machine = of("Machine", "moving");
      const inputs = await machine.checked({ app: "app", config: { image } });
      const { id, state } = await machine.create(inputs);
      const unknowns = async (change: Properties) => {
        const next = await machine.checked({ app: "app", config: { image }, ...change }, inputs);
        const previewed = await machine.previewUpdate({ id, oldInputs: inputs, state, inputs: next });
        return Object.keys(previewed)
          .filter((name) => previewed[name] instanceof Unknown)
          .sort();
      };
      expect(await unknowns({ forceDestroy: true })).toEqual([]);
      expect(await unknowns({ cordoned: true })).toEqual(["updatedAt"]);
      expect(await unknowns({ state: "stopped" })).toEqual(["updatedAt"]);
      expect(await unknowns({ config: { image, metadata: { a: "1" } } })).toEqual(["updatedAt"]);
      for (const live of [
        { memoryLimitMb: 200 },
        { restart: { triggers: { a: "1" } } },
        { reload: { triggers: { a: "1" } } },
      ])
        expect(await unknowns(live)).toEqual(["updatedAt"]);
      expect(await unknowns({ onUpdateFailure: "rollback", recreate: true })).toEqual([]);
      expect(await unknowns({ minSecretsVersion: 1 })).toEqual(["imageRef", "state", "updatedAt", "version"]);
      for (const env of [{ A: "1" }, unknown()])
        expect(await unknowns({ config: { image, env } })).toEqual(["imageRef", "state", "updatedAt", "version"]);
      for (const other of ["registry.example.com/other:2", unknown()])
        expect(await unknowns({ config: { image: other } })).toEqual(["imageRef", "state", "updatedAt", "version"]);
    });

    test("after a failure it promises nothing that the repair may change", async () => {
      const machine = of("Machine", "unfinished");
      const inputs = await machine.checked({ app: "app", config: { image, env: { MACHINES_SIMULATE: "crash" } } });
      const failure = unfinishedIn(await machine.create(inputs).catch((error: unknown) => error));
      expect(failure).toBeDefined();
      const previewed = await machine.previewUpdate({ id: failure?.id ?? "", state: failure?.state ?? {}, inputs });
      expect(previewed).toMatchObject({ state: unknown(), version: unknown(), machineId: failure?.state["machineId"] });
    });
  });

  describe("results match the update", () => {
    const config = resources["Machine"]?.inputFields["config"];
    if (!config) throw new Error("a Machine has no config");
    const programs = fc.record(
      {
        config: arbitraryOf(config).map((value) => {
          // Other tests cover types that need other objects or another strictness.
          const { mounts: _, volumes: _v, standbys: _s, extra: _e, ...rest } = value as Properties;
          return rest;
        }),
        state: fc.constantFrom("started", "stopped", "suspended"),
        cordoned: fc.boolean(),
        waitForChecks: fc.boolean(),
      },
      { requiredKeys: ["config"] },
    );

    /** Marks parts of it as secret at random. */
    const marked = (program: Properties, chance: number): Properties => {
      let state = chance % 233_280;
      const mark = (value: unknown): unknown => {
        state = (state * 9301 + 49_297) % 233_280;
        if (state % 8 === 0) return secret(value);
        if (Array.isArray(value)) return value.map(mark);
        return isObject(value)
          ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, mark(inner)]))
          : value;
      };
      return Object.fromEntries(Object.entries(program).map(([name, value]) => [name, mark(value)]));
    };

    test("whatever the Machine inputs and their changes are, including secrets", async () => {
      let [count, made, changed] = [0, 0, 0];
      const life = async (first: Properties, second: Properties): Promise<void> => {
        const machine = of("Machine", `random-${++count}`);
        const { inputs, failures } = await machine.check({ app: "app", region: "ams", ...first });
        if (failures.length > 0) return;
        const previewed = await machine.previewCreate(inputs);
        const real = await machine.create(inputs).catch((error: unknown) => {
          // A refused or failed update broke no promise, because the preview made none.
          if (unfinishedIn(error) || /answered 4\d\d/.test(String(error))) return undefined;
          throw error;
        });
        if (!real) return;
        made++;
        expect(brokenPromises(previewed.state, real.state)).toEqual([]);
        const next = await machine.check({ app: "app", region: "ams", ...second }, { olds: inputs });
        if (next.failures.length > 0) return;
        const change = { id: real.id, oldInputs: inputs, state: real.state, inputs: next.inputs };
        const diff = await machine.diff(change);
        if (!diff.changes || diff.replaces.length > 0) return;
        const previewedUpdate = await machine.previewUpdate(change);
        const updated = await machine.update(change).catch((error: unknown) => {
          if (unfinishedIn(error) || /answered 4\d\d/.test(String(error))) return undefined;
          throw error;
        });
        if (!updated) return;
        changed++;
        expect(brokenPromises(previewedUpdate, updated)).toEqual([]);
        expect((await machine.diff({ ...change, state: updated, oldInputs: next.inputs })).changes).toBe(false);
      };
      const lives = fc.tuple(programs, programs, fc.boolean(), fc.nat()).map(([first, other, keeps, chance]) => {
        const kept = keeps ? { ...first.config, ...other.config } : other.config;
        return [marked(first, chance), marked({ ...other, config: kept }, chance + 1)] as const;
      });
      await fc.assert(
        fc.asyncProperty(lives, ([first, second]) => life(first, second)),
        { numRuns: 150, seed: 1 },
      );
      expect([made, changed].every((number) => number > 10)).toBe(true);
    });
  });

  describe("checks with the service", () => {
    /** What the dynamic binding reports for the same inputs in its own preview. */
    const dynamicReasons = async (type: string, inputs: Properties): Promise<string[]> => {
      const settings: Record<string, string> = { endpoint: service.url, token: service.token };
      const answers = await Promise.all(
        questionsOf(type)
          .map((question, i) => ({ question, i }))
          .filter(({ question }) => question.needs.every((need) => inputs[need] !== undefined))
          .map(({ i }) =>
            ask(
              type,
              i,
              inputs,
              "owner",
              (key) => settings[key],
              () => undefined,
            ),
          ),
      );
      const findings = answers.filter((answer) => answer !== null);
      return (await bind(type, service).check({}, { ...inputs, [contextKey]: { findings } })).failures;
    };

    test.each<[string, string, () => Promise<Properties>]>([
      [
        "a region that does not exist",
        "Machine",
        () => Promise.resolve({ app: "app", region: "amss", config: { image } }),
      ],
      ["a volume's region", "Volume", () => Promise.resolve({ app: "app", region: "xyz" })],
      [
        "a mounted volume of another region",
        "Machine",
        async () => {
          const volume = await makeVolume(service, "app", "ams");
          return { app: "app", region: "fra", config: { image, mounts: [{ volume, path: "/data" }] } };
        },
      ],
      ["a taken App name", "App", () => Promise.resolve({ name: "app" })],
      [
        "a taken Machine name, in a region that does not exist",
        "Machine",
        async () => {
          await makeMachine(service, "app", { name: "theirs", config: { image } });
          return { app: "app", name: "theirs", region: "xyz", config: { image } };
        },
      ],
    ])("a preview reports %s with the same text as the dynamic binding", async (_what, type, given) => {
      const news = await given();
      const inputs = await of(type).checked(news);
      const reasons = await dynamicReasons(type, news);
      expect(reasons).not.toEqual([]);
      const error = (await of(type)
        .previewCreate(inputs)
        .catch((refused: unknown) => refused)) as { details?: string };
      expect(error.details?.split("; ").length).toBeGreaterThanOrEqual(reasons.length);
      for (const reason of reasons) expect(error.details).toContain(reason);
    });

    test("a change to a region that does not exist is reported as that, and not as a move", async () => {
      const volume = of("Volume", "misspelt");
      const olds = await volume.checked({ app: "app", region: "ams" });
      const problems = async (region: string): Promise<string[]> =>
        (await volume.check({ app: "app", region }, { olds })).failures.map(({ reason }) => reason);
      expect(await problems("amss")).toEqual([
        expect.stringMatching(/^region: there is no region "amss"; did you mean "ams"\?/),
      ]);
      expect(await problems("fra")).toEqual([expect.stringMatching(/^region: changing it replaces the Volume/)]);
    });

    test("only known and new values are checked; a real create is not", async () => {
      const machine = of("Machine", "asking");
      const news = { app: "app", name: "mine", region: "ams", config: { image } };
      const inputs = await machine.checked(news);
      const { id, state } = await machine.create(inputs);
      const next = await machine.checked({ ...news, config: { image, env: { A: "1" } } }, inputs);
      expect(await sent(() => machine.previewUpdate({ id, oldInputs: inputs, state, inputs: next }))).toEqual([]);
      const later = await of("Machine", "later").checked({ ...news, name: unknown(), region: unknown() });
      expect(await sent(() => of("Machine", "later").previewCreate(later))).toEqual([]);
    });

    test("secret parts of the answer are not shown", async () => {
      const inputs = await of("App").checked({ name: secret("app") });
      const error = await of("App")
        .previewCreate(inputs)
        .catch((refused: unknown) => String(refused));
      expect(error).toMatch(/name: the name \[secret\] is taken/);
    });

    test("and warns if one question is not answered", async () => {
      service.fail({ operation: "apps.get", when: "before", status: 503, body: { error: "not now" } });
      const urn = urnOf("App", "unasked");
      const app = drive(plugin.client, urn);
      const { state } = await app.previewCreate(await app.checked({ name: "unasked" }));
      expect(state["name"]).toBe("unasked");
      await expect
        .poll(() => engine.logs.filter((log) => log.urn === urn))
        .toEqual([
          {
            severity: "warning",
            urn,
            message: expect.stringMatching(
              /^App name: the service did not answer this preview's question: .*503.*not now/,
            ) as unknown,
            ephemeral: false,
          },
        ]);
    });
  });
});
