// sdk/python, sdk/go and sdk/nodejs-plugin: what Pulumi's own generators make of the package schema, and everything we
// change about it.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { Stop } from "../lib/process.mjs";
import { functionHandingOn, handingOn, handOnHelper } from "./handOn.ts";
import type { PackageSpec, Property } from "./schema.ts";
import { camel, nameOf } from "./sdk.ts";

/** Directories of the SDKs; what is generated there begins with a banner. */
export const pulumiSdkDirs = ["sdk/python", "sdk/go", "sdk/nodejs-plugin"];

const plugin = "sdk/nodejs-plugin";
const releaseBanner = "// *** Copied by `npm run generate` from sdk/nodejs/release.ts: do not edit. ***\n";

/** Files of the SDKs by path. `generator` is the program of tools/pulumi/sdk-generator. */
export function pulumiSdks(generator: string, schema: PackageSpec, engines: unknown): Record<string, string> {
  const python = generate(generator, relaxed(schema), ["python"]);
  const others = generate(generator, schema, ["go", "nodejs"]);
  // What stands in these we say in READMEs of our own, which tell more.
  delete python["python/pulumi_machines/README.md"];
  delete others["nodejs/README.md"];
  // For a package that is compiled and published where it lies; ours is compiled like everything else here.
  delete others["nodejs/tsconfig.json"];
  delete others["nodejs/.gitignore"];
  const files = Object.entries({ ...python, ...others }).map(([path, text]) => [
    `sdk/${path.replace(/^nodejs\//, "nodejs-plugin/")}`,
    text,
  ]);
  const sdks = Object.fromEntries(files) as Record<string, string>;
  return {
    ...sdks,
    ...changed(sdks, ["provider", ...Object.keys(schema.resources)], handingOn),
    ...changed(sdks, Object.keys(schema.functions), functionHandingOn),
    // Written by hand for the other binding: here, the same file.
    [`${plugin}/release.ts`]: `${releaseBanner}${readFileSync("sdk/nodejs/release.ts", "utf8").replaceAll(/(from "\.\/\w+)\.ts"/g, '$1"')}`,
    [`${plugin}/index.ts`]: `${sdks[`${plugin}/index.ts`]}\nexport { Release, ReleaseArgs, ReleaseRecord, ReleaseSource } from "./release";\n`,
    [`${plugin}/package.json`]: packageJson(sdks[`${plugin}/package.json`] ?? "{}", engines),
    // Compiled, the file is one directory further down than package.json.
    [`${plugin}/utilities.ts`]:
      replaced(sdks[`${plugin}/utilities.ts`], "require('./package.json')", "require('../package.json')") +
      handOnHelper,
  };
}

/** The files of the tokens in the SDK for Node.js, changed. */
function changed(
  sdks: Readonly<Record<string, string>>,
  tokens: readonly string[],
  change: (text: string) => string,
): Record<string, string> {
  const paths = tokens.map((token) => `${plugin}/${camel(nameOf(token))}.ts`);
  return Object.fromEntries(paths.map((path) => [path, change(sdks[path] ?? "")]));
}

/** Runs the generator; the files by path below a directory for each language. */
function generate(generator: string, schema: PackageSpec, languages: readonly string[]): Record<string, string> {
  const dir = mkdtempSync(join(tmpdir(), "pulumi-machines-sdks-"));
  try {
    writeFileSync(join(dir, "schema.json"), JSON.stringify(schema));
    const out = join(dir, "out");
    mkdirSync(out);
    const targets = languages.flatMap((language) => [`-${language}`, join(out, language)]);
    try {
      execFileSync(generator, [...targets, join(dir, "schema.json")], { stdio: ["ignore", "pipe", "inherit"] });
    } catch {
      throw new Stop("Pulumi's generators refuse the package schema, for what they say above.");
    }
    const found = readdirSync(out, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const paths = found.map((entry) => join(entry.parentPath, entry.name)).sort();
    return Object.fromEntries(
      paths.map((path) => [path.slice(out.length + 1).replaceAll(sep, "/"), readFileSync(path, "utf8")]),
    );
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/**
 * The schema for Python, where plain text is good for any enum. Python programs write inputs as dictionaries of plain
 * values, which a type checker would refuse; and the SDK turns text it gets into a member of the enum, so that one value
 * we don't know, set by somebody else, would end every program that has the resource.
 */
function relaxed(schema: PackageSpec): PackageSpec {
  const relax = (property: Property): Property => {
    const inner = property.$ref?.replace("#/types/", "") ?? "";
    if (schema.types[inner]?.enum) {
      const { $ref = "", ...rest } = property;
      return { ...rest, oneOf: [{ type: "string" }, { $ref }] };
    }
    return {
      ...property,
      ...(property.items ? { items: relax(property.items) } : {}),
      ...(property.additionalProperties ? { additionalProperties: relax(property.additionalProperties) } : {}),
    };
  };
  const all = (properties: Record<string, Property>): Record<string, Property> =>
    Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, relax(property)]));
  const types = Object.entries(schema.types).map(([token, type]) => [
    token,
    type.properties ? { ...type, properties: all(type.properties) } : type,
  ]);
  const resources = Object.entries(schema.resources).map(([token, resource]) => [
    token,
    { ...resource, properties: all(resource.properties), inputProperties: all(resource.inputProperties) },
  ]);
  return {
    ...schema,
    types: Object.fromEntries(types) as PackageSpec["types"],
    resources: Object.fromEntries(resources) as PackageSpec["resources"],
  };
}

/** The generated package.json, for a package that is published compiled and with the provider's executable in it. */
function packageJson(generated: string, engines: unknown): string {
  const {
    scripts: _,
    devDependencies: __,
    pulumi,
    dependencies,
    repository,
    ...info
  } = JSON.parse(generated) as Record<string, unknown>;
  const whole = {
    ...info,
    repository: { type: "git", url: `git+${String(repository)}.git`, directory: plugin },
    files: ["dist", "plugin"],
    main: "./dist/index.js",
    types: "./dist/index.d.ts",
    bin: { "pulumi-resource-machines": "./plugin/pulumi-resource-machines" },
    dependencies,
    engines,
    pulumi,
  };
  return `${JSON.stringify(whole, null, 2)}\n`;
}

function replaced(text: string | undefined, old: string, next: string): string {
  if (!text?.includes(old)) throw new Error(`Pulumi's generator no longer writes ${old}; see what it writes now`);
  return text.replace(old, next);
}
