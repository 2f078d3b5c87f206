import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { fieldOf } from "../../api/schema.ts";
import { check, problemsOf } from "../../provider/core/check.ts";
import { fieldsOf, type Values } from "../../provider/core/resource.ts";
import { UNKNOWN } from "../../provider/core/values.ts";
import { Run } from "../../provider/core/run.ts";
import { resources } from "../../provider/registry.ts";
import { noIntents } from "../support/jumpingClient.ts";
import { arbitraryOf } from "../support/arbitrary.ts";

let chance = 0;
const random = (characters: number): string => (chance++).toString(16).padStart(characters, "0");
const begun = { op: "1", endpoint: "http://localhost", place: "volumes of App a", name: "begun-1234567" };
const run = (type: string, news: Values, olds: Values = {}) => {
  const resource = resources[type];
  if (!resource) throw new Error(`no resource ${type}`);
  return check(resource, olds, news, {
    randomHex: random,
    run: {
      journal: { find: (owner = "") => (owner === "cut-off" ? { ...begun, owner } : undefined) },
      nameInState: (owner) => (owner === "replaced" ? "fixed" : undefined),
      inputsInState: (owner) => (owner === "moved" ? { name: "fixed", organization: "before" } : {}),
      lossByParent: () => undefined,
    },
  });
};
const machine = (config: Values, rest: Values = {}) =>
  run("Machine", { app: "a", config: { image: "x", ...config }, ...rest }).problems;

describe("check", () => {
  test("fills defaults and makes a name that fits", () => {
    const { inputs, problems } = run("Volume", { app: "a", __context: { name: "My Data!" } });
    expect(problems).toEqual([]);
    expect(inputs).toMatchObject({
      name: "my_data",
      sizeGb: 3,
      encrypted: true,
      snapshotRetention: 5,
      autoBackupEnabled: true,
      allowDataLoss: false,
    });
    expect(inputs["__context"]).toEqual({ autonamed: true, left: ["region"] });
    expect(
      run("Volume", { app: "a", name: "d", region: "ams", __context: { timeouts: {} } }).inputs,
    ).not.toHaveProperty("__context");
  });

  test("a generated name ends by chance, is kept while none is given, and is made anew for a replacement", () => {
    const first = run("App", { __context: { name: "web" } }).inputs;
    expect(first["name"]).toMatch(/^web-[0-9a-f]{7}$/);
    expect(run("App", { __context: { name: "web" } }, first).inputs["name"]).toBe(first["name"]);
    expect(run("App", { __context: { name: "web" } }).inputs["name"]).not.toBe(first["name"]);
    expect(run("App", { name: "fixed" }, first).inputs["name"]).toBe("fixed");
    // Taking a chosen name out of the program is no wish for another App.
    const fixed = run("App", { name: "fixed" }).inputs;
    expect(run("App", { __context: { name: "web" } }, fixed).inputs["name"]).toBe("fixed");
  });

  test("the names of a map are held to their own limits, also beside values not known yet", () => {
    const fields = fieldsOf(z.object({ map: z.record(z.string().regex(/^[a-z]+$/, "must be letters"), z.string()) }));
    expect(problemsOf(fields, { map: { fine: "x", "NOT FINE": UNKNOWN } }).problems).toEqual([
      { path: ["map", "NOT FINE"], message: "the name must be letters" },
    ]);
  });

  test("a problem that says what it is about is told while other inputs are not known", () => {
    const [first] = Object.values(resources);
    if (!first) throw new Error("no resource");
    const inputs = z.object({ a: z.string(), b: z.string(), c: z.string() });
    const validate = () => [
      { path: ["a"], message: "is wrong", about: ["a"] },
      { path: ["a"], message: "does not fit b", about: ["a", "b"] },
      { path: ["a"], message: "does not fit the rest" },
    ];
    const resource = { ...first, autoname: undefined, inputs, inputFields: fieldsOf(inputs), validate };
    const around = { randomHex: random, run: new Run(() => noIntents) };
    const told = (news: Values) => check(resource, {}, { a: "x", b: "x", c: "x", ...news }, around).problems;
    expect(told({})).toHaveLength(3);
    expect(told({ c: UNKNOWN })).toEqual(["a: is wrong", "a: does not fit b"]);
    expect(told({ b: UNKNOWN })).toEqual(["a: is wrong"]);
  });

  test("an interrupted create is tried again under the name it was begun with", () => {
    expect(run("App", { __context: { name: "web", owner: "cut-off" } }).inputs["name"]).toBe("begun-1234567");
    expect(run("App", { name: "fixed", __context: { owner: "cut-off" } }).inputs["name"]).toBe("fixed");
  });

  test("a long or odd resource name still gives a valid name", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), fc.constantFrom("App", "Machine", "Volume"), (name, type) => {
        const args = type === "Machine" ? { app: "a", config: { image: "x" } } : type === "Volume" ? { app: "a" } : {};
        expect(run(type, { ...args, __context: { name } }).problems).toEqual([]);
      }),
    );
  });

  test("unknown properties at any depth are refused with the nearest name", () => {
    expect(run("Volume", { app: "a", sizeGB: 3 }).problems).toEqual([
      "sizeGB: there is no such property; did you mean sizeGb?",
    ]);
    expect(machine({ services: [{ protocol: "tcp", internal_port: 80, internalPort: 80 }] })).toEqual([
      "config.services[0].internal_port: there is no such property; did you mean internalPort?",
    ]);
    expect(machine({ memory: 1 })[0]).toMatch(/^config.memory: there is no such property/);
    expect(run("App", JSON.parse('{"__proto__x":1,"constructor":1}') as Values).problems[0]).toMatch(
      /^constructor: there is no such property/,
    );
  });

  test("wrong types name the property, what it got and what is allowed", () => {
    expect(run("Volume", { app: "a", sizeGb: "3" }).problems[0]).toMatch(/^sizeGb: got "3"; .*number/);
    expect(run("Volume", { app: "a", sizeGb: 501 }).problems[0]).toMatch(/^sizeGb: got 501; .*500/);
    expect(machine({ services: { protocol: "tcp" } })).toEqual(["config.services: got an object; must be a list"]);
    expect(machine({ env: ["A"] })).toEqual(["config.env: got a list; must be a map"]);
    expect(run("Machine", { app: "a" }).problems[0]).toMatch(/^config: is required/);
    expect(machine({ guest: 5 })[0]).toMatch(/^config.guest: got a number; must be an object with cpuKind, cpus/);
  });

  test("values that may be secret are never quoted", () => {
    const canary = "s3cr3t-canary";
    const problems = [
      ...machine({ env: { A: [canary], B: { x: canary } } }),
      ...machine({ files: [{ guestPath: "relative", rawValue: [canary] }] }),
      ...machine({ extra: canary }),
      ...machine({ processes: [{ env: canary }] }),
    ];
    expect(problems.length).toBeGreaterThanOrEqual(5);
    expect(problems.join("\n")).not.toContain(canary);
  });

  test.each<[string, Values, RegExp]>([
    [
      "memory below the least for the CPUs",
      { guest: { cpus: 4, memoryMb: 512 } },
      /^config.guest.memoryMb: got 512; minimum required 1024 MiB/,
    ],
    [
      "memory above the most",
      { guest: { cpus: 1, memoryMb: 4096 } },
      /^config.guest.memoryMb: got 4096; cannot exceed 2048 MiB/,
    ],
    [
      "memory between the steps",
      { guest: { cpus: 1, memoryMb: 300 } },
      /^config.guest.memoryMb: got 300; must be a multiple of 256 MiB/,
    ],
    [
      "a CPU count that is not sold",
      { guest: { cpus: 3 } },
      /^config.guest.cpus: got 3; shared CPUs come in 1, 2, 4, 6, 8/,
    ],
    [
      "two mounts",
      {
        mounts: [
          { volume: "v", path: "/a" },
          { volume: "w", path: "/b" },
        ],
      },
      /^config.mounts: a Machine mounts at most one volume/,
    ],
    [
      "a mount path that is not absolute",
      { mounts: [{ volume: "v", path: "data" }] },
      /^config.mounts\[0\].path: got "data"; must be an absolute path/,
    ],
    [
      "a port out of range",
      { services: [{ protocol: "tcp", internalPort: 70000 }] },
      /^config.services\[0\].internalPort: got 70000/,
    ],
    [
      "a duration that is none",
      { stopConfig: { timeout: "soon" } },
      /^config.stopConfig.timeout: got "soon"; must be a duration/,
    ],
    ["size with guest", { size: "shared-cpu-1x", guest: { cpus: 1 } }, /^config.size: is exclusive with guest/],
    ["a key of the provider", { metadata: { "pulumi-op": "x" } }, /^config.metadata\["pulumi-op"\]/],
    ["an empty metadata value", { metadata: { a: "" } }, /^config.metadata.a: an empty value removes a key/],
    ["an unknown signal", { stopConfig: { signal: "SIGFOO" } }, /^config.stopConfig.signal: got "SIGFOO"/],
  ])("%s is refused", (_, config, message) => expect(machine(config)[0]).toMatch(message));

  test.each(["", "UPPER", "under_score", "x".repeat(63), "dot.dot"])("%j is no App name", (name) => {
    expect(run("App", { name }).problems[0]).toMatch(/^name: got/);
  });

  test.each(["UPPER", "dash-ed", "x".repeat(31)])("%j is no volume name", (name) =>
    expect(run("Volume", { app: "a", name }).problems[0]).toMatch(/^name: got/),
  );

  test("a rule that spans fields waits until all of them are known", () => {
    expect(machine({ guest: { cpus: UNKNOWN, memoryMb: 4096 } })).toEqual([]);
    expect(machine({ guest: { cpuKind: UNKNOWN, memoryMb: 4096 } })).toEqual([]);
    expect(machine({ mounts: [{ volume: "v", path: "/a", extendThresholdPercent: 80, addSizeGb: UNKNOWN }] })).toEqual(
      [],
    );
    expect(machine({ image: UNKNOWN, guest: { memoryMb: 4096 } })[0]).toMatch(/memoryMb/);
  });

  test("a job cannot be kept suspended, extra cannot set what has a name, an App is no path", () => {
    expect(machine({ restart: { policy: "no" } }, { state: "suspended" })[0]).toMatch(/^state: /);
    expect(machine({ extra: { restart: { policy: "no" } } })).toEqual([
      "config.extra.restart.policy: is a field this version knows: set it in config itself",
    ]);
    expect(machine({ extra: { services: [{}, { new_one: 1 }], brand_new: true } })).toEqual([]);
    expect(run("Volume", { app: "org/app" }).problems[0]).toMatch(/^app: got "org\/app"/);
  });

  test("what is not known yet passes everywhere", () => {
    for (const [type, resource] of Object.entries(resources)) {
      const unknown = Object.fromEntries(Object.keys(resource.inputFields).map((name) => [name, UNKNOWN]));
      expect(run(type, unknown).problems).toEqual([]);
    }
    expect(
      machine({
        image: UNKNOWN,
        services: UNKNOWN,
        guest: { cpus: UNKNOWN, memoryMb: UNKNOWN },
        mounts: [{ volume: UNKNOWN, path: "/a" }],
      }),
    ).toEqual([]);
  });

  test("every value the schema allows is accepted and checked inputs check the same again", () => {
    for (const type of ["App", "Volume"]) {
      const resource = resources[type];
      if (!resource) throw new Error(type);
      fc.assert(
        fc.property(arbitraryOf(fieldOf(resource.inputs)), (values) => {
          const { inputs, problems } = run(type, values as Values);
          expect(problems).toEqual([]);
          expect(run(type, values as Values, inputs).inputs).toEqual(inputs);
        }),
      );
    }
  });
});

describe("refusals (R3, R9)", () => {
  const old = { app: "a", name: "data", region: "ams", sizeGb: 10, encrypted: true, fstype: "ext4" };

  test("a volume never shrinks, and grows freely", () => {
    expect(run("Volume", { ...old, sizeGb: 5 }, old).problems[0]).toMatch(
      /^sizeGb: got 5, which is less than the 10 GB/,
    );
    expect(run("Volume", { ...old, sizeGb: 20 }, old).problems).toEqual([]);
  });

  test.each<[string, unknown]>([
    ["region", "fra"],
    ["name", "other"],
    ["app", "b"],
    ["encrypted", false],
    ["fstype", "raw"],
  ])("a changed %s would lose data and is refused unless allowDataLoss", (name, value) => {
    expect(run("Volume", { ...old, [name]: value }, old).problems[0]).toContain("allowDataLoss: true");
    expect(run("Volume", { ...old, [name]: value, allowDataLoss: true }, old).problems).toEqual([]);
  });

  test("an unknown value and the same App by reference are no such change", () => {
    expect(run("Volume", { ...old, app: UNKNOWN }, old).problems).toEqual([]);
    expect(run("Volume", { ...old, region: undefined }, old).problems).toEqual([]);
  });
});

describe("what the service said at preview", () => {
  const findings = [{ property: "name", message: "the name is taken" }, null, UNKNOWN];

  test("counts for what is new or changed, and only there", () => {
    expect(run("App", { name: "taken", __context: { findings } }).problems).toEqual(["name: the name is taken"]);
    expect(run("App", { name: "taken", __context: { findings } }, { name: "taken" }).problems).toEqual([]);
    expect(run("App", { name: "taken", __context: { findings } }, { name: "before" }).problems).toEqual([
      "name: the name is taken",
    ]);
  });

  test("is no objection to a replacement that keeps the name of what it replaces", () => {
    const own = [{ property: "name", message: "the name is taken" }];
    expect(run("App", { name: "fixed", __context: { owner: "replaced", findings: own } }).problems).toEqual([]);
    expect(run("App", { name: "fixed", __context: { owner: "other", findings: own } }).problems).toHaveLength(1);
  });

  test("is no objection to a replacement where it is about an input that stays", () => {
    const __context = { owner: "moved", findings: [{ property: "organization", message: "there is none" }] };
    expect(run("App", { name: "fixed", organization: "before", __context }).problems).toEqual([]);
    expect(run("App", { name: "fixed", organization: "after", __context }).problems).toHaveLength(1);
  });

  test("is not kept", () => {
    expect(JSON.stringify(run("App", { name: "x", __context: { findings, owner: "o" } }).inputs)).not.toContain(
      "findings",
    );
  });
});
