// Messages name properties as the program's language spells them.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runtimeOf } from "../../provider/plugin/language.ts";
import { fieldsOf, spelled } from "../../provider/plugin/spelling.ts";
import { components, functions, resources } from "../../provider/registry.ts";
import { packageSchema } from "../../tools/generate/schema.ts";
import { drive, urnOf } from "../support/driver.ts";
import { startPlugin } from "../support/plugin.ts";
import { toStruct, type Properties } from "../support/properties.ts";

const machine = { ...resources["Machine"]?.outputFields, ...resources["Machine"]?.inputFields };
const image = "registry.example.com/web:1";

describe("a message", () => {
  test.each([
    ["minSecretsVersion: got 1.5; must be a whole number", "min_secrets_version: got 1.5; must be a whole number"],
    ["config.guest.memoryMb: got 1", "config.guest.memory_mb: got 1"],
    ["config.services[0].ports[1].forceHttps: got 1", "config.services[0].ports[1].force_https: got 1"],
    // Keys of maps are the user's.
    ["config.env.memoryMb: got 1", "config.env.memoryMb: got 1"],
    ['config.metadata["minSecrets.Version"]: x', 'config.metadata["minSecrets.Version"]: x'],
    ["config.checks.aliveCheck.gracePeriod: x", "config.checks.aliveCheck.grace_period: x"],
    ["config.extra.memoryMb: x", "config.extra.memoryMb: x"],
    // So are values.
    ['config.image: got "memoryMb \\" forceHttps"; x', 'config.image: got "memoryMb \\" forceHttps"; x'],
    ["there is no such property; did you mean memoryMb?", "there is no such property; did you mean memory_mb?"],
    ["must be an object with cpuKind, cpus, memoryMb", "must be an object with cpu_kind, cpus, memory_mb"],
    ["set forceDestroy: true and run up", "set force_destroy=True and run up"],
    ["leave it out, with recreate: true", "leave it out, with recreate=True"],
    ["customTimeouts allow more", "custom_timeouts allow more"],
    ["machines.acquireLease answered 409", "machines.acquireLease answered 409"],
    ["pulumi config set machines:requestTimeoutSeconds", "pulumi config set machines:requestTimeoutSeconds"],
    [
      "no answer from GET https://example.com/v1/apps/minSecrets",
      "no answer from GET https://example.com/v1/apps/minSecrets",
    ],
  ])("a message spells properties as Python does: %s", (text, expected) => {
    expect(spelled("python", machine, text)).toBe(expected);
    for (const other of ["nodejs", "java", "yaml", undefined, "constructor"])
      expect(spelled(other, machine, text)).toBe(text);
  });

  test.each([
    ["config.guest.memoryMb: got 1", "Config.Guest.MemoryMb: got 1"],
    ["config.env.memoryMb: got 1", "Config.Env.memoryMb: got 1"],
    ["region: there is no region; app: is required", "Region: there is no region; App: is required"],
    ["Machine region: x", "Machine Region: x"],
    ["the region of the app", "the region of the app"],
    ["set forceDestroy: true", "set ForceDestroy: true"],
  ])("a message spells properties as Go does: %s", (text, expected) => {
    expect(spelled("go", machine, text)).toBe(expected);
    expect(spelled("dotnet", machine, text)).toBe(expected);
  });

  test("a message about a function has the name of the function", () => {
    const { inputFields = {} } = functions["getApp"] ?? {};
    expect(spelled("python", inputFields, "getApp: nam: x")).toBe("get_app: nam: x");
    expect(spelled("go", inputFields, "getApp: name: x")).toBe("LookupApp: Name: x");
    expect(spelled("go", inputFields, "getRegions: x")).toBe("GetRegions: x");
  });
});

describe("the SDK has every property that a message may name", () => {
  const schema = packageSchema("0.0.0");
  const text = (folder: string, pattern: RegExp): string =>
    readdirSync(folder)
      .filter((name) => pattern.test(name))
      .map((name) => readFileSync(join(folder, name), "utf8"))
      .join("\n");
  const all = [functions, resources, components].flatMap((registry) => Object.values(registry));
  const subjects = all.map(({ outputFields, inputFields }) => ({ ...outputFields, ...inputFields }));

  test("the Python SDK has every property that a message may name", () => {
    const sdk = text("sdk/python/pulumi_machines", /\.py$/);
    // A name that is a word of Python has an underscore at its end.
    const attributes = new Set([...sdk.matchAll(/^ +def (\w+?)_?\(self\)/gm)].map(([, name]) => name));
    const names = Object.entries(schema.types).flatMap(([, { properties = {} }]) => Object.keys(properties));
    const spellings = (name: string) => subjects.map((fields) => spelled("python", fields, `x ${name}`).slice(2));
    const missing = [...new Set(names)].filter((name) => !spellings(name).some((python) => attributes.has(python)));
    expect(missing).toEqual([]);
    for (const { name, inputFields } of Object.values(resources))
      for (const property of Object.keys(inputFields))
        expect(attributes, name).toContain(spelled("python", inputFields, `${property}: x`).split(":")[0]);
  });

  test("the Go SDK has every property that a message may name", () => {
    const sdk = text("sdk/go/machines", /\.go$/);
    const missing = Object.entries(schema.resources).flatMap(([, { properties }]) =>
      Object.keys(properties).filter((name) => {
        const fields = subjects.find((one) => Object.hasOwn(one, name)) ?? {};
        const go = spelled("go", fields, `${name}: x`).split(":")[0] ?? "";
        return !new RegExp(`^\\t${go} .*pulumi:"${name}"`, "m").test(sdk);
      }),
    );
    expect(missing).toEqual([]);
    const functionNames = Object.keys(functions).map((name) => spelled("go", {}, name));
    expect(functionNames.filter((name) => !sdk.includes(`\nfunc ${name}(`))).toEqual([]);
  });
});

test("what a request is about is read from its URN or its token", () => {
  expect(Object.keys(fieldsOf({ getUrn: () => urnOf("Volume", "data") }))).toContain("sizeGb");
  expect(Object.keys(fieldsOf({ getTok: () => "machines:index:getApp" }))).toContain("name");
  expect(Object.keys(fieldsOf({ getType: () => "machines:index:Release" }))).toContain("pinned");
  expect(fieldsOf({ getUrn: () => "urn:pulumi:s::p::pulumi:providers:machines::default" })).toEqual({});
  expect(fieldsOf({})).toEqual({});
});

describe("the runtime of a project", () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "machines-project-"))));
  afterEach(() => rmSync(folder, { recursive: true }));

  test.each([
    ["Pulumi.yaml", "name: shop\nruntime: python\n", "python"],
    ["Pulumi.yml", "name: shop\nruntime:\n  name: go\n  options: { binary: x }\n", "go"],
    ["Pulumi.json", '{"name":"shop","runtime":{"name":"dotnet"}}', "dotnet"],
    ["Pulumi.yaml", "name: go-shop\nruntime: nodejs\n", "nodejs"],
    ["Pulumi.yaml", "name: shop\nruntime: nodejs\n", undefined],
    ["Pulumi.yaml", "name: shop\n", undefined],
    ["Pulumi.yaml", "runtime: [python", undefined],
    ["Pulumi.yaml", "", undefined],
  ])("the runtime of a project is found: %s: %j", async (name, text, expected) => {
    writeFileSync(join(folder, name), text);
    const inside = join(folder, "src", "main");
    mkdirSync(inside, { recursive: true });
    expect([await runtimeOf(folder), await runtimeOf(inside)]).toEqual([expected, expected]);
  });
});

describe.each([
  ["python", "min_secrets_version", "config.guest.memory_mb", "force_https", "get_volume: app"],
  ["go", "MinSecretsVersion", "Config.Guest.MemoryMb", "ForceHttps", "LookupVolume: App"],
  ["yaml", "minSecretsVersion", "config.guest.memoryMb", "forceHttps", "getVolume: app"],
  [undefined, "minSecretsVersion", "config.guest.memoryMb", "forceHttps", "getVolume: app"],
])("the plugin in a project of %s", (runtime, version, memory, https, lookup) => {
  test("the plugin says what is wrong in its names", async () => {
    const project = runtime === undefined ? {} : { project: `name: shop\nruntime: ${runtime}\n` };
    const plugin = await startPlugin(project);
    try {
      const reasons = async (news: Properties) =>
        (await drive(plugin.client, urnOf("Machine", "web")).check(news)).failures.map(({ reason }) => reason);
      expect(await reasons({ app: "a", minSecretsVersion: "3", config: { image } })).toEqual([
        `${version}: got "3"; must be a whole number, at least 0, or a list of such numbers`,
      ]);
      expect(await reasons({ app: "a", config: { image, guest: { cpus: 1, memoryMb: 300 } } })).toEqual([
        `${memory}: got 300; must be a multiple of 256 MiB`,
      ]);
      const services = [{ protocol: "tcp", internalPort: 80, ports: [{ forceHttp: true }] }];
      expect((await reasons({ app: "a", config: { image, services } }))[0]).toMatch(`did you mean ${https}?`);
      const args = toStruct({ endpoint: "http://127.0.0.1:9", token: "t" });
      await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
      const request = new proto.InvokeRequest().setTok("machines:index:getVolume").setArgs(toStruct({ volume: "v" }));
      await expect(plugin.client.invoke(request)).rejects.toThrow(`${lookup}: is required`);
    } finally {
      await plugin.close();
    }
  });
});
