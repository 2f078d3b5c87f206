import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { fieldOf } from "../../api/schema.ts";
import { checkInputs, problemsOf } from "../../provider/core/check.ts";
import { fieldsOf, type UsedAlone, type Values } from "../../provider/core/resource.ts";
import { UNKNOWN } from "../../provider/core/values.ts";
import { Run } from "../../provider/core/run/run.ts";
import { resources } from "../../provider/registry.ts";
import { noIntents } from "../support/jumpingClient.ts";
import { arbitraryOf } from "../support/arbitrary.ts";

let chance = 0;
const random = (characters: number): string => (chance++).toString(16).padStart(characters, "0");
const begun = { op: "1", endpoint: "http://localhost", place: "volumes of App a", name: "begun-1234567" };
const run = (type: string, news: Values, olds: Values = {}) => {
  const resource = resources[type];
  if (!resource) throw new Error(`no resource ${type}`);
  return checkInputs(resource, olds, news, {
    randomHex: random,
    run: {
      journal: { find: (owner = "") => (owner === "cut-off" ? { ...begun, owner } : undefined) },
      problems: { isFirst: () => true },
      guards: { dataLossByParent: () => undefined },
      program: {
        nameInState: (owner: string) => (owner === "replaced" ? "fixed" : undefined),
        inputsInState: (owner: string) => (owner === "moved" ? { name: "fixed", organization: "before" } : {}),
        of: (owner: string) => (owner === "data" ? { inputs: { region: "ams" } } : undefined),
        otherUserOf: ({ id, source }: UsedAlone) =>
          id === "a/vol_1" || source?.owner === "shared" ? { name: "first", isInState: false } : undefined,
      },
    } as unknown as Run,
  });
};
const machine = (config: Values, rest: Values = {}) =>
  run("Machine", { app: "a", config: { image: "x", ...config }, ...rest }).problems;

describe("check", () => {
  test("a change to a region that does not exist is reported as that, and not as a move", () => {
    const olds = { app: "a", name: "data", region: "ams", sizeGb: 1 };
    const moved = (...findings: readonly Values[]) =>
      run("Volume", { ...olds, region: "amss", __context: { findings } }, olds).problems;
    expect(moved()).toEqual([expect.stringMatching(/^region: changing it replaces the Volume/)]);
    expect(moved({ property: "region", message: "there is none" })).toEqual(["region: there is none"]);
  });

  test("an input gets one error, although the service and the program have several about it", () => {
    const wrong = { property: "region", message: "there is none" };
    const elsewhere = { property: "region", message: "its volume is in ams" };
    const room = { property: "region", message: "there is no room", isWarning: true };
    const sources = { "config.mounts.0.volume": { owner: "data", name: "data" } };
    const problemsOf = (region: string, findings: readonly Values[], more: Values = {}) =>
      machine(
        { mounts: [{ volume: UNKNOWN, path: "/data" }] },
        { region, ...more, __context: { name: "web", sources, findings } },
      );
    // The program alone knows the region of a new volume.
    expect(problemsOf("xyz", [])).toEqual([expect.stringContaining('must be "ams"')]);
    expect(problemsOf("xyz", [wrong, elsewhere, room])).toEqual(["region: there is none"]);
    // Nothing has to be asked about a text that is no region.
    expect(problemsOf("XYZ", [wrong])).toEqual([expect.stringMatching(/^region: got "XYZ"; must be a region code/)]);
    // The same problem of another input is the same problem.
    const fallback = { property: "fallbackRegions", message: "there is none" };
    const given = { app: "a", region: "xyz", fallbackRegions: ["xyz"], config: { image: "x" } };
    expect(run("Machine", { ...given, __context: { findings: [wrong, fallback] } }).problems).toEqual([
      "region: there is none",
    ]);
    expect(
      run("Machine", { ...given, __context: { findings: [{ ...fallback, message: "there is no xya" }, wrong] } })
        .problems,
    ).toHaveLength(2);
  });

  test("the value of an imported secret may be left out, because the import could not read it", () => {
    const imported = { app: "a", name: "KEY" };
    expect(run("Secret", imported, imported).problems).toEqual([]);
    expect(run("Secret", imported).problems[0]).toMatch(/^value: is required/);
    expect(run("Secret", imported, { ...imported, value: "x" }).problems[0]).toMatch(/^value: is required/);
    expect(run("Secret", { ...imported, value: 1 }, imported).problems[0]).toMatch(/^value: got a number/);
  });

  test("a volume that another Machine of the program mounts is refused, also by its bare id", () => {
    const mounting = (volume: string) => machine({ mounts: [{ volume, path: "/data" }] });
    const problem =
      'config.mounts[0].volume: volume a/vol_1 is for one Machine, but "first" and this one of this program use it; declare a second volume for this one';
    expect(mounting("a/vol_1")).toEqual([problem]);
    expect(mounting("vol_1")).toEqual([problem]);
    expect(mounting("a/vol_2")).toEqual([]);
    expect(mounting(UNKNOWN)).toEqual([]);
  });

  test("a new volume is recognized by the resource that declares it", () => {
    const mounting = (owner: string, region?: string) =>
      machine(
        { mounts: [{ volume: UNKNOWN, path: "/data" }] },
        { region, __context: { name: "web", sources: { "config.mounts.0.volume": { owner, name: "data" } } } },
      );
    expect(mounting("shared")).toEqual([
      'config.mounts[0].volume: volume "data" is for one Machine, but "first" and "web" of this program use it; declare a second volume for "web"',
    ]);
    expect(mounting("data", "iad")).toEqual([
      'region: got "iad"; must be "ams", the region of volume "data" of this program',
    ]);
    expect(mounting("data", "ams")).toEqual([]);
    expect(mounting("data")).toEqual([]);
    expect(mounting("other", "iad")).toEqual([]);
  });

  test("the message asks for a second volume for the Machine that does not mount this one in the state", () => {
    const mounting = { app: "a", config: { image: "x", mounts: [{ volume: "vol_1", path: "/data" }] } };
    const named = { ...mounting, __context: { name: "mine" } };
    expect(run("Machine", named).problems).toEqual([
      expect.stringMatching(/but "first" and "mine" of this program use it; declare a second volume for "mine"$/),
    ]);
    // The engine checked the new Machine first.
    expect(run("Machine", named, mounting).problems).toEqual([
      expect.stringMatching(/but "mine" and "first" of this program use it; declare a second volume for "first"$/),
    ]);
  });

  test("fills defaults and generates a valid name", () => {
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

  test("a generated name has a random suffix, is kept while none is given, and is generated again for a replacement", () => {
    const first = run("App", { __context: { name: "web" } }).inputs;
    expect(first["name"]).toMatch(/^web-[0-9a-f]{7}$/);
    expect(run("App", { __context: { name: "web" } }, first).inputs["name"]).toBe(first["name"]);
    expect(run("App", { __context: { name: "web" } }).inputs["name"]).not.toBe(first["name"]);
    expect(run("App", { name: "fixed" }, first).inputs["name"]).toBe("fixed");
    // Removing an explicit name from the program does not request another App.
    const fixed = run("App", { name: "fixed" }).inputs;
    expect(run("App", { __context: { name: "web" } }, fixed).inputs["name"]).toBe("fixed");
  });

  test("the names in a map must obey their own limits, even beside unknown values", () => {
    const fields = fieldsOf(z.object({ map: z.record(z.string().regex(/^[a-z]+$/, "must be letters"), z.string()) }));
    expect(problemsOf(fields, { map: { fine: "x", "NOT FINE": UNKNOWN } }).problems).toEqual([
      { path: ["map", "NOT FINE"], message: "the name must be letters" },
    ]);
  });

  test("a problem with one input is reported while other inputs are unknown", () => {
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
    const problemsWith = (news: Values) =>
      checkInputs(resource, {}, { a: "x", b: "x", c: "x", ...news }, around).problems;
    expect(problemsWith({})).toHaveLength(3);
    expect(problemsWith({ c: UNKNOWN })).toEqual(["a: is wrong", "a: does not fit b"]);
    expect(problemsWith({ b: UNKNOWN })).toEqual(["a: is wrong"]);
  });

  test("an interrupted create is retried with its original name", () => {
    expect(run("App", { __context: { name: "web", owner: "cut-off" } }).inputs["name"]).toBe("begun-1234567");
    expect(run("App", { name: "fixed", __context: { owner: "cut-off" } }).inputs["name"]).toBe("fixed");
  });

  test("a long or unusual resource name still results in a valid name", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), fc.constantFrom("App", "Machine", "Volume"), (name, type) => {
        const args = type === "Machine" ? { app: "a", config: { image: "x" } } : type === "Volume" ? { app: "a" } : {};
        expect(run(type, { ...args, __context: { name } }).problems).toEqual([]);
      }),
    );
  });

  test("the greatest version of a list counts, as one number", () => {
    const version = (given: unknown) => {
      const { inputs, problems } = run("Machine", { app: "a", config: { image: "x" }, minSecretsVersion: given });
      return problems.length > 0 ? problems : inputs["minSecretsVersion"];
    };
    expect([version(3), version([3]), version([2, 7, 3]), version([0])]).toEqual([3, 3, 7, 0]);
    // Nothing to see is the same as no input, and null is the same as no version.
    expect([version([]), version([null]), version([4, null])]).toEqual([undefined, undefined, 4]);
    expect([version(UNKNOWN), version([9, UNKNOWN])]).toEqual([UNKNOWN, UNKNOWN]);
    expect(version([1, "2", -1])).toEqual([
      'minSecretsVersion[1]: got "2"; must be a whole number, at least 0',
      "minSecretsVersion[2]: got -1; must be a whole number, at least 0",
    ]);
    expect(version("2")).toEqual([
      'minSecretsVersion: got "2"; must be a whole number, at least 0, or a list of such numbers',
    ]);
  });

  test("a value that is new to this version is for the service to judge, with a warning", () => {
    const resource = resources["Machine"];
    if (!resource) throw new Error("no Machine");
    const warned = (config: Values): unknown => {
      const told: string[] = [];
      const around = { randomHex: random, run: new Run(() => noIntents), warn: (text: string) => void told.push(text) };
      const { problems } = checkInputs(
        resource,
        {},
        { app: "a", name: "m", config: { image: "x", ...config } },
        around,
      );
      return [problems, told];
    };
    const services = (more: Values) => ({ services: [{ protocol: "tcp", internalPort: 80, ...more }] });
    expect(warned({ schedule: "yearly" })).toEqual([
      [],
      [
        'Machine config.schedule: got "yearly", which is not among the values that this version knows (hourly, daily, weekly, monthly); the service decides',
      ],
    ]);
    expect(warned(services({ autostop: "supend", ports: [{ handlers: ["http", "h3"] }] }))).toEqual([
      [],
      [
        'Machine config.services[0].ports[0].handlers[1]: got "h3", which is not among the values that this version knows (http, tls, tcp, pg_tls, proxy_proto); the service decides',
        'Machine config.services[0].autostop: got "supend", which is not among the values that this version knows (off, stop, suspend); the service decides; did you mean "suspend"?',
      ],
    ]);
    expect(warned({ ...services({ autostop: true }), schedule: "daily", guest: { gpuKind: "b200" } })).toEqual([
      [],
      [],
    ]);
    expect(warned({ schedule: "" })).toEqual([[expect.stringMatching(/^config.schedule: got ""; must be one of/)], []]);
    expect(warned({ schedule: 5 })).toEqual([[expect.stringMatching(/^config.schedule: got 5; must be one of/)], []]);
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

  test("wrong types name the property, the given value and the allowed values", () => {
    expect(run("Volume", { app: "a", sizeGb: "3" }).problems[0]).toMatch(/^sizeGb: got "3"; .*number/);
    expect(run("Volume", { app: "a", sizeGb: 501 }).problems[0]).toMatch(/^sizeGb: got 501; .*500/);
    expect(machine({ services: { protocol: "tcp" } })).toEqual(["config.services: got an object; must be a list"]);
    expect(machine({ env: ["A"] })).toEqual(["config.env: got a list; must be a map"]);
    expect(run("Machine", { app: "a" }).problems[0]).toMatch(/^config: is required/);
    expect(machine({ guest: 5 })[0]).toMatch(/^config.guest: got a number; must be an object with cpuKind, cpus/);
  });

  test("an image that is none is named with its form, also where the rest is not known yet", () => {
    const form = 'must be an image such as "registry.example.com/web:v3" or "web@sha256:…"; it has no spaces';
    expect(machine({ image: "hello world", env: { A: UNKNOWN } })).toEqual([
      `config.image: got "hello world"; ${form}`,
    ]);
    expect(machine({ containers: [{ name: "side", image: "a b" }, UNKNOWN] })).toEqual([
      `config.containers[0].image: got "a b"; ${form}`,
    ]);
    expect(machine({ volumes: [{ name: "v", image: "a b" }] })).toEqual([
      `config.volumes[0].image: got "a b"; ${form}`,
    ]);
    expect(machine({ files: [{ guestPath: "/f", imageConfig: "a b" }] })).toEqual([
      `config.files[0].imageConfig: got "a b"; ${form}`,
    ]);
    expect(machine({ image: UNKNOWN })).toEqual([]);
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
      "too little memory for the CPUs",
      { guest: { cpus: 4, memoryMb: 512 } },
      /^config.guest.memoryMb: got 512; minimum required 1024 MiB/,
    ],
    [
      "too much memory",
      { guest: { cpus: 1, memoryMb: 4096 } },
      /^config.guest.memoryMb: got 4096; cannot exceed 2048 MiB/,
    ],
    [
      "memory between the allowed steps",
      { guest: { cpus: 1, memoryMb: 300 } },
      /^config.guest.memoryMb: got 300; must be a multiple of 256 MiB/,
    ],
    [
      "an unsupported CPU count",
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
      "a relative mount path",
      { mounts: [{ volume: "v", path: "data" }] },
      /^config.mounts\[0\].path: got "data"; must be an absolute path/,
    ],
    [
      "a port out of range",
      { services: [{ protocol: "tcp", internalPort: 70000 }] },
      /^config.services\[0\].internalPort: got 70000/,
    ],
    [
      "an invalid duration",
      { stopConfig: { timeout: "soon" } },
      /^config.stopConfig.timeout: got "soon"; must be a duration/,
    ],
    ["size with guest", { size: "shared-cpu-1x", guest: { cpus: 1 } }, /^config.size: is exclusive with guest/],
    ["a key of the provider", { metadata: { "pulumi-op": "x" } }, /^config.metadata\["pulumi-op"\]/],
    ["an empty metadata value", { metadata: { a: "" } }, /^config.metadata.a: an empty value removes a key/],
    ["an unknown signal", { stopConfig: { signal: "SIGFOO" } }, /^config.stopConfig.signal: got "SIGFOO"/],
  ])("%s is refused", (_, config, message) => expect(machine(config)[0]).toMatch(message));

  test.each(["", "UPPER", "under_score", "x".repeat(63), "dot.dot"])("%j is not a valid App name", (name) => {
    expect(run("App", { name }).problems[0]).toMatch(/^name: got/);
  });

  test.each(["UPPER", "dash-ed", "x".repeat(31)])("%j is not a valid volume name", (name) =>
    expect(run("Volume", { app: "a", name }).problems[0]).toMatch(/^name: got/),
  );

  test("a rule about several fields is applied once all of them are known", () => {
    expect(machine({ guest: { cpus: UNKNOWN, memoryMb: 4096 } })).toEqual([]);
    expect(machine({ guest: { cpuKind: UNKNOWN, memoryMb: 4096 } })).toEqual([]);
    expect(machine({ mounts: [{ volume: "v", path: "/a", extendThresholdPercent: 80, addSizeGb: UNKNOWN }] })).toEqual(
      [],
    );
    expect(machine({ image: UNKNOWN, guest: { memoryMb: 4096 } })[0]).toMatch(/memoryMb/);
  });

  test("a job cannot stay suspended, extra cannot set modelled fields, an App is not a path", () => {
    expect(machine({ autoDestroy: true }, { state: "suspended" })[0]).toMatch(/^state: /);
    expect(machine({ extra: { restart: { policy: "no" } } })).toEqual([
      "config.extra.restart.policy: is a field this version knows: set it in config itself",
    ]);
    expect(machine({ extra: { services: [{}, { new_one: 1 }], brand_new: true } })).toEqual([]);
    expect(run("Volume", { app: "org/app" }).problems[0]).toMatch(/^app: got "org\/app"/);
  });

  test("unknown values are accepted everywhere", () => {
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

  test("every value that the schema allows is accepted, and checking checked inputs changes nothing", () => {
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

  test("an unknown value, or a reference to the same App, is no such change", () => {
    expect(run("Volume", { ...old, app: UNKNOWN }, old).problems).toEqual([]);
    expect(run("Volume", { ...old, region: undefined }, old).problems).toEqual([]);
  });
});

describe("problems that the service reported at preview", () => {
  const findings = [{ property: "name", message: "the name is taken" }, null, UNKNOWN];

  test("problems that the service reported at preview apply only to new or changed inputs", () => {
    expect(run("App", { name: "taken", __context: { findings } }).problems).toEqual(["name: the name is taken"]);
    expect(run("App", { name: "taken", __context: { findings } }, { name: "taken" }).problems).toEqual([]);
    expect(run("App", { name: "taken", __context: { findings } }, { name: "before" }).problems).toEqual([
      "name: the name is taken",
    ]);
  });

  test("problems of the whole service apply to unchanged resources too", () => {
    const whole = [{ property: "", message: "answered 401" }];
    expect(run("App", { name: "same", __context: { findings: whole } }, { name: "same" }).problems).toEqual([
      expect.stringContaining("answered 401"),
    ]);
  });

  test("do not block a replacement that keeps the name of the replaced resource", () => {
    const own = [{ property: "name", message: "the name is taken" }];
    expect(run("App", { name: "fixed", __context: { owner: "replaced", findings: own } }).problems).toEqual([]);
    expect(run("App", { name: "fixed", __context: { owner: "other", findings: own } }).problems).toHaveLength(1);
  });

  test("do not block a replacement if they concern an unchanged input", () => {
    const __context = { owner: "moved", findings: [{ property: "organization", message: "there is none" }] };
    expect(run("App", { name: "fixed", organization: "before", __context }).problems).toEqual([]);
    expect(run("App", { name: "fixed", organization: "after", __context }).problems).toHaveLength(1);
  });

  test("problems that the service reported at preview are not saved", () => {
    expect(JSON.stringify(run("App", { name: "x", __context: { findings, owner: "o" } }).inputs)).not.toContain(
      "findings",
    );
  });
});
