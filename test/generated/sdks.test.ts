// The SDKs that Pulumi's generators write: the features we rely on. Other checks compile them.
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as pulumi from "@pulumi/pulumi";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { javaSources } from "../../tools/generate/javaSdk.ts";
import { pulumiSdks } from "../../tools/generate/pulumiSdks.ts";
import { programsOf, withPrograms } from "../../tools/generate/programs.ts";
import { packageSchema, type PackageSpec } from "../../tools/generate/schema.ts";
import { pythonEnvironment } from "../../tools/setup/python.mjs";
import { sdkGenerator } from "../../tools/setup/goProgram.mjs";
import { thoroughTest } from "../support/thorough.ts";

const text = (path: string): string => readFileSync(path, "utf8");
const json = (path: string): Record<string, unknown> => JSON.parse(text(path)) as Record<string, unknown>;
const { version, engines } = json("sdk/nodejs/package.json") as { version: string; engines: unknown };
/** With the examples, as the SDKs are generated from it. */
const whole = withPrograms(
  packageSchema(version),
  programsOf(json("provider/schema.json") as Pick<PackageSpec, "resources">),
);
const javaPackage = "sdk/java/src/main/java/io/github/pulumimachines/machines";
const javaResources = javaPackage.replace("/java/io", "/resources/io");
const plugin = { resource: true, name: "machines", version, server: packageSchema(version)["pluginDownloadURL"] };

describe("every SDK", () => {
  test("every SDK has the version of this repository and requires the plugin of that version", () => {
    expect(json("sdk/nodejs-plugin/package.json")).toMatchObject({ version, pulumi: plugin });
    expect(json("sdk/python/pulumi_machines/pulumi-plugin.json")).toEqual(plugin);
    expect(json("sdk/go/machines/pulumi-plugin.json")).toEqual(plugin);
    expect(json(`${javaResources}/plugin.json`)).toEqual(plugin);
    expect(json("sdk/dotnet/pulumi-plugin.json")).toEqual(plugin);
    for (const file of [`${javaResources}/version.txt`, "sdk/dotnet/version.txt"]) expect(text(file)).toBe(version);
    expect(text("sdk/dotnet/PulumiMachines.Machines.csproj")).toContain(`<Version>${version}</Version>`);
    expect(text("sdk/java/pom.xml")).toContain(`<version>${version}</version>`);
    expect(text("sdk/python/pyproject.toml")).toContain(`version = "${version}"`);
    expect(text("sdk/go/machines/internal/pulumiUtilities.go")).toContain(`semver.MustParse("${version}")`);
  });

  test("every SDK has a class for every resource", () => {
    for (const [token, { isComponent }] of Object.entries(packageSchema(version).resources)) {
      // For Node.js, components are classes of the package.
      const ofNode = isComponent ? `export { ${token.split(":").at(-1)},` : `"${token}"`;
      expect(text("sdk/nodejs-plugin/index.ts")).toContain(ofNode);
      expect(text("sdk/python/pulumi_machines/__init__.py")).toContain(`"${token}"`);
      expect(text("sdk/go/machines/init.go")).toContain(`"${token}"`);
      const name = token.slice(token.lastIndexOf(":") + 1);
      expect(text(`${javaPackage}/${name}.java`)).toContain(`"${token}"`);
      expect(text(`sdk/dotnet/${name}.cs`)).toContain(`[MachinesResourceType("${token}")]`);
    }
  });

  // Go finds the module by its path, and Pulumi looks for the plugin at the module's root.
  test("for Go is its own module, at its import path", () => {
    const [, module] = /^module (\S+)$/m.exec(text("sdk/go/machines/go.mod")) ?? [];
    expect(module).toMatch(/\/sdk\/go\/machines$/);
    expect(text("sdk/go/machines/app.go")).toContain(`"${module}/internal"`);
  });

  test("every SDK copies nothing from the environment into a provider's inputs", () => {
    expect(text("sdk/nodejs-plugin/provider.ts")).not.toContain("getEnv");
    expect(text("sdk/python/pulumi_machines/provider.py")).not.toContain("get_env");
    expect(text("sdk/go/machines/provider.go")).not.toContain("GetEnvOrDefault");
    expect(text(`${javaPackage}/ProviderArgs.java`)).not.toContain("env(");
    expect(text("sdk/dotnet/Provider.cs")).not.toContain("GetEnv");
  });

  // C# refuses a member with the name of its class, and the generator writes one. No .NET may be there to say so.
  test("for C# has no member with the name of its class", () => {
    const files = readdirSync("sdk/dotnet", { recursive: true, encoding: "utf8" }).filter((file) =>
      file.endsWith(".cs"),
    );
    expect(files.length).toBeGreaterThan(150);
    for (const file of files) {
      for (const [, name = "", body = ""] of text(join("sdk/dotnet", file)).matchAll(
        /^ {4}public (?:sealed |static |partial )*class (\w+)[^{]*\{\n(.*?)^ {4}\}/gms,
      ))
        expect(body, file).not.toMatch(
          new RegExp(`^ {8}public (?:readonly )?[\\w.<>?,\\[\\] ]+ ${name}(?: \\{|;)`, "m"),
        );
    }
  });

  // Its project file takes every source below its folder, and the two files that the code reads from the assembly.
  test("for C# has a project file that names only files that are there", () => {
    const project = text("sdk/dotnet/PulumiMachines.Machines.csproj");
    const open: string[] = [];
    for (const [, closes, name = "", ends] of project.matchAll(/<(\/?)(\w+)[^>]*?(\/?)>/g)) {
      if (closes) expect(open.pop()).toBe(name);
      else if (!ends) open.push(name);
    }
    expect(open).toEqual([]);
    const included = [...project.matchAll(/<(?:None|EmbeddedResource) Include="(.*?)"/g)].map(([, file]) => file);
    expect(new Set(included)).toEqual(new Set(["version.txt", "pulumi-plugin.json"]));
  });

  // The SDK would convert the text into an enum member, and fail for an unknown text.
  test("for Python accepts and returns text for enums that the service may extend", () => {
    const enums = Object.entries(packageSchema(version).types).filter(([, type]) => type.enum);
    const [outputs, inputs] = [
      text("sdk/python/pulumi_machines/outputs.py"),
      text("sdk/python/pulumi_machines/_inputs.py"),
    ];
    for (const [token] of enums) {
      const name = token.slice(token.lastIndexOf(":") + 1);
      expect(outputs).not.toMatch(new RegExp(`-> .*'${name}'`));
      expect(inputs).not.toMatch(new RegExp(`(?<!_builtins\\.str, )'${name}'\\]`));
    }
  });

  // The language host for Java is built in minutes, so `npm run check` compares only a hash of the schema.
  thoroughTest("for Java is what Pulumi's generator writes", async () => {
    const { files } = await javaSources(whole, process.env);
    if (files === undefined) return;
    expect(Object.keys(files).length).toBeGreaterThan(300);
    expect(Object.entries(files).filter(([path, content]) => text(path) !== content)).toEqual([]);
  });

  test("every SDK is generated deterministically, and matches the committed files", async () => {
    // Without a PATH there is no Go to build the generator: only one that the checks have built is used.
    const { program } = await sdkGenerator({ ...process.env, PATH: "" });
    if (program === undefined) return;
    const files = pulumiSdks(program, whole, engines);
    expect(pulumiSdks(program, whole, engines)).toEqual(files);
    const stale = Object.entries(files).filter(([path, content]) => text(path) !== content);
    expect(stale.map(([path]) => path)).toEqual([]);
    expect(readdirSync("sdk/go/machines").filter((name) => name.endsWith(".go")).length).toBeGreaterThan(5);
  });
});

test("the classes of the plugin's SDK register the declared inputs and outputs", async () => {
  const registered: pulumi.runtime.MockResourceArgs[] = [];
  await pulumi.runtime.setMocks({
    newResource: (args) => {
      registered.push(args);
      return { id: `${args.name}-id`, state: args.inputs as Record<string, unknown> };
    },
    call: ({ inputs }) => inputs as Record<string, unknown>,
  });
  const machines = await import("pulumi-machines-plugin");
  const provider = new machines.Provider("there", { endpoint: "https://there.example.com", token: "t0p" });
  const app = new machines.App("hello", {}, { provider });
  const volume = new machines.Volume("data", { app: app.id, region: "ams" });
  const size = await new Promise((resolve) => volume.sizeGb.apply(resolve));

  expect(size).toBe(3);
  expect(registered.map(({ type }) => type).sort()).toEqual([
    "machines:index:App",
    "machines:index:Volume",
    "pulumi:providers:machines",
  ]);
  const inputsOf = (name: string) =>
    (registered.find((one) => one.name === name)?.inputs ?? {}) as Record<string, unknown>;
  expect(inputsOf("data")).toMatchObject({ app: "hello-id", region: "ams", fstype: "ext4" });
  expect(inputsOf("there")).toMatchObject({ endpoint: "https://there.example.com" });
  expect(inputsOf("there")["organization"]).toBeUndefined(); // only the given inputs

  // Unknown inputs must reach the provider, which refuses them with the nearest name.
  const misspelt = { app: "hello", regoin: "ams", currentSizeGb: 1, __own: 1 };
  const wrong = new machines.Volume("wrong", misspelt);
  await new Promise((resolve) => wrong.id.apply(resolve));
  expect(inputsOf("wrong")).toMatchObject({ app: "hello", regoin: "ams", currentSizeGb: 1 });
  expect(Object.keys(inputsOf("wrong"))).not.toContain("__own");
  const nothing = {} as ConstructorParameters<typeof machines.Volume>[1];
  expect(() => new machines.Volume("nothing", nothing)).toThrow("Missing required property 'app'");
});

describe("without the tools of a language", () => {
  let empty = "";
  let before: string | undefined;
  beforeAll(async () => {
    empty = await mkdtemp(join(tmpdir(), "pulumi-machines-nothing-"));
    before = process.env["XDG_CACHE_HOME"];
    process.env["XDG_CACHE_HOME"] = empty;
  });
  afterAll(async () => {
    if (before === undefined) delete process.env["XDG_CACHE_HOME"];
    else process.env["XDG_CACHE_HOME"] = before;
    await rm(empty, { recursive: true, force: true });
  });

  test("the reason is printed instead of a failure", async () => {
    const env = { ...process.env, PATH: empty };
    expect(await sdkGenerator(env)).toEqual({ reason: expect.stringMatching(/needs Go 1\.\d+ or newer/) as string });
    expect(await pythonEnvironment(env)).toEqual({
      reason: expect.stringMatching(/needs Python 3\.\d+ or newer/) as string,
    });
  });
});
