// sdk/python, sdk/go, sdk/dotnet and sdk/nodejs-plugin: the output of Pulumi's own generators for the package schema, and all our
// changes to it.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { Stop } from "../lib/process.mjs";
import { withoutExamples } from "../lib/schemaExamples.mjs";
import { functionHandingOn, handingOn, handOnHelper } from "./handOn.ts";
import { schemaFor } from "./languageSchemas.ts";
import { programsOf, withPrograms } from "./programs.ts";
import { openValues, packageSchema, type PackageSpec, type Property } from "./schema.ts";
import { camel, nameOf } from "./sdk.ts";

/** Directories of the SDKs; generated files begin with a banner. */
export const pulumiSdkDirs = ["sdk/python", "sdk/go", "sdk/dotnet", "sdk/nodejs-plugin"];

const plugin = "sdk/nodejs-plugin";
const dotnetProject = "sdk/dotnet/PulumiMachines.Machines.csproj";
const copied = (from: string): string =>
  `// *** Copied by \`npm run generate\` from ${from}: do not edit. ***\n${readFileSync(from, "utf8")}`;

/** A file of the other SDK for Node.js, for the one on the plugin. */
const copiedOfNode = (file: string): Record<string, string> => ({
  [`${plugin}/${file}`]: copied(`sdk/nodejs/${file}`)
    .replace('"../../provider/dynamic/index.ts"', '"./releaseRules"')
    .replaceAll(/(from "\.\/\w+)\.ts"/g, '$1"'),
});

/** Files of the SDKs by path. `generator` is the path of the program tools/pulumi/sdk-generator. */
export function pulumiSdks(generator: string, schema: PackageSpec, engines: unknown): Record<string, string> {
  const python = generate(generator, schemaFor.python(schema), ["python"]);
  const go = generate(generator, schemaFor.go(schema), ["go"]);
  const { "dotnet/logo.png": _, ...dotnet } = generate(generator, schemaFor.dotnet(schema), ["dotnet"]);
  const ofNode = withPrograms(packageSchema(String(schema["version"]), {}), programsOf(schema));
  const nodejs = generate(generator, ofNode, ["nodejs"]);
  // Our own READMEs replace these, because they have more content.
  delete python["python/pulumi_machines/README.md"];
  delete nodejs["nodejs/README.md"];
  delete dotnet["dotnet/README.md"];
  // For a package that is compiled and published in its own folder; ours is compiled by this repository's build.
  delete nodejs["nodejs/tsconfig.json"];
  delete nodejs["nodejs/.gitignore"];
  const opened = openingEnums(schema);
  const files = Object.entries({ ...python, ...go, ...dotnet, ...nodejs }).map(([path, text]) => [
    `sdk/${path.replace(/^nodejs\//, "nodejs-plugin/")}`,
    path.startsWith("nodejs/") ? opened(text) : text,
  ]);
  const sdks = Object.fromEntries(files) as Record<string, string>;
  return {
    ...sdks,
    ...changed(sdks, ["provider"], handingOn),
    ...changed(sdks, Object.keys(ofNode.resources), (text, token) =>
      describingNew(handingOn(text), schema.resources[token]?.description ?? ""),
    ),
    ...describedInGo(sdks, schema),
    [dotnetProject]: withoutIcon(sdks[dotnetProject]),
    ...changed(sdks, Object.keys(ofNode.functions), functionHandingOn),
    // Written by hand for the other binding; these are the same files.
    ...copiedOfNode("release.ts"),
    ...copiedOfNode("releaseArgs.ts"),
    [`${plugin}/releaseRules.ts`]: copied("provider/releases/rules.ts"),
    [`${plugin}/index.ts`]: `${sdks[`${plugin}/index.ts`]}\nexport { Release, ReleaseRecord } from "./release";\nexport { ReleaseArgs, ReleaseSource } from "./releaseArgs";\n`,
    [`${plugin}/package.json`]: packageJson(sdks[`${plugin}/package.json`] ?? "{}", engines),
    // After compilation, the file is one directory further down than package.json.
    [`${plugin}/utilities.ts`]:
      replaced(sdks[`${plugin}/utilities.ts`], "require('./package.json')", "require('../package.json')") +
      handOnHelper,
  };
}

/** The project file of the SDK for .NET, without the logo that the generator downloads: NuGet takes no SVG. */
const withoutIcon = (text: string | undefined): string => {
  const withoutName = replaced(text, "    <PackageIcon>logo.png</PackageIcon>\n", "");
  return replaced(withoutName, /  <ItemGroup>\n    <None Include="logo\.png">.*?<\/ItemGroup>\n\n/s, "");
};

/** The files of the tokens in the SDK for Node.js, changed. */
const changed = (
  sdks: Readonly<Record<string, string>>,
  tokens: readonly string[],
  change: (text: string, token: string) => string,
): Record<string, string> =>
  Object.fromEntries(
    tokens.map((token) => {
      const path = `${plugin}/${camel(nameOf(token))}.ts`;
      return [path, change(sdks[path] ?? "", token)];
    }),
  );

/** Every property of the resources and types, by name. */
const propertiesOf = (schema: PackageSpec): [string, Property][] => [
  ...Object.values(schema.types).flatMap(({ properties = {} }) => Object.entries(properties)),
  ...Object.values(schema.resources).flatMap(({ inputProperties }) => Object.entries(inputProperties)),
];

/** Writes inputs that take more than the values of today so that editors complete these values, in TypeScript. */
function openingEnums(schema: PackageSpec): (text: string) => string {
  const known = propertiesOf(schema).flatMap(([, { items, ...property }]) =>
    [property, items ?? {}].flatMap((one) =>
      one[openValues] || one.oneOf ? [one, ...(one.oneOf ?? [])].flatMap(({ $ref }) => ($ref ? nameOf($ref) : [])) : [],
    ),
  );
  const enums = [...new Set(known)].filter((name) => schema.types[`machines:index:${name}`]?.enum);
  const names = new RegExp(`(?:string \\| )?\\benums\\.(${enums.join("|")})\\b(\\[\\])?`, "g");
  // Of text or a boolean, the generator knows no values.
  const texts = propertiesOf(schema).flatMap(([name, { oneOf = [] }]) =>
    oneOf.flatMap((one) => (one[openValues] && !one.$ref ? [{ name, values: one[openValues] }] : [])),
  );
  return (text) =>
    texts.reduce(
      (before, { name, values }) =>
        before.replaceAll(
          new RegExp(`(?<=\\b${name}\\??: [^;]*?)\\bstring\\b`, "g"),
          `${values.map((value) => JSON.stringify(value)).join(" | ")} | (string & {})`,
        ),
      text.replaceAll(names, (_, name: string, list = "") =>
        list === "" ? `enums.${name} | (string & {})` : `(enums.${name} | (string & {}))[]`,
      ),
    );
}

/** Editors show the example at the class. */
const paragraphs = (description: string): string[] =>
  withoutExamples(description)
    .split("\n")
    .filter((line) => line !== "");

/** A class whose constructor is described as the class is: editors show the constructor's text at `new`. */
const describingNew = (text: string, description: string): string =>
  replaced(
    text,
    / \* Create a \w+ resource with the given unique name, arguments, and options\.\n/,
    paragraphs(description)
      .map((line) => ` * ${line}\n`)
      .join("     "),
  );

/** The files of the resources in the SDK for Go, whose constructors are described as the types are. */
const describedInGo = (sdks: Readonly<Record<string, string>>, schema: PackageSpec): Record<string, string> =>
  Object.fromEntries(
    Object.entries(schema.resources).map(([token, { description }]) => {
      const path = `sdk/go/machines/${camel(nameOf(token))}.go`;
      const lines = paragraphs(description).map((line) => `//\n// ${line}\n`);
      const begin = /(?<=\/\/ New\w+ registers a new resource with the given unique name, arguments, and options\.\n)/;
      return [path, replaced(sdks[path], begin, lines.join(""))];
    }),
  );

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

function replaced(text = "", old: string | RegExp, next: string): string {
  const changed = text.replace(old, () => next);
  if (changed === text) throw new Error(`Pulumi's generator no longer writes ${String(old)}; see what it writes now`);
  return changed;
}
