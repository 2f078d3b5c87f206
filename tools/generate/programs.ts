// The examples of the resource types: a program in Pulumi's configuration language for each, written in every language by Pulumi's own
// generators. The package schema has them in its descriptions, as the Pulumi Registry takes it.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execFileSync } from "node:child_process";
import { Stop } from "../lib/process.mjs";
import { examplesBegin, examplesIn } from "../lib/schemaExamples.mjs";
import { schemaFor } from "./languageSchemas.ts";
import { languages } from "./packageInfo.ts";
import type { PackageSpec, ResourceSpec } from "./schema.ts";

/** Folder of the programs, one for each resource type under its name. */
export const programsDir = "examples/types";

/** The languages of the examples, in the order of the registry's chooser. `fence` is that of a block of code. */
export const programLanguages = [
  { fence: "typescript", name: "TypeScript", generator: "nodejs" },
  { fence: "python", name: "Python", generator: "python" },
  { fence: "csharp", name: "C#", generator: "dotnet" },
  { fence: "go", name: "Go", generator: "go" },
  { fence: "yaml", name: "YAML", generator: "yaml" },
  { fence: "java", name: "Java", generator: "java" },
] as const;

type Fence = (typeof programLanguages)[number]["fence"];
/** A language by the name of its generator. */
export type ProgramLanguage = (typeof programLanguages)[number]["generator"];

/** The name of a language in a block of code. */
export function fenceOf(language: ProgramLanguage): Fence {
  const found = programLanguages.find(({ generator }) => generator === language);
  if (found === undefined) throw new Error(`programs are not written in ${language}`);
  return found.fence;
}

/** Programs in the languages that are there, by the type that they show. */
export type Programs = Readonly<Record<string, Readonly<Partial<Record<Fence, string>>>>>;

/** The path of the program of a type. */
export const programPath = (type: string): string => `${programsDir}/${type}.pp`;

/** The types that have a program. */
export const typesWithProgram = (root: string): string[] =>
  readdirSync(join(root, programsDir)).flatMap((file) => (file.endsWith(".pp") ? [file.slice(0, -".pp".length)] : []));

const nameOf = (token: string): string => token.slice(token.lastIndexOf(":") + 1);
const sourceOf = (type: string): string => readFileSync(programPath(type), "utf8");

/** What a program says about itself: the comment at its beginning. */
const aboutOf = (source: string): string => /^# (.+)\n/.exec(source)?.[1] ?? "";

/** The programs in one language. `host` is its language host, for a language that sdk-generator does not write. */
export function programsIn(generator: string, language: ProgramLanguage, schema: PackageSpec, host?: string): Programs {
  const fence = fenceOf(language);
  const dir = mkdtempSync(join(tmpdir(), "pulumi-machines-programs-"));
  try {
    const out = join(dir, "out");
    mkdirSync(out);
    writeFileSync(join(dir, "schema.json"), JSON.stringify(schemaFor[language](schema)));
    const more = host === undefined ? [] : [`-${language}-host`, host];
    const args = ["-programs", programsDir, `-${language}`, out, ...more, join(dir, "schema.json")];
    try {
      execFileSync(generator, args, { stdio: ["ignore", "pipe", "inherit"] });
    } catch {
      throw new Stop(`Pulumi's generators refuse the programs in ${programsDir}, for what they say above.`);
    }
    return Object.fromEntries(
      readdirSync(out).map((type) => {
        const [file = "", ...others] = readdirSync(join(out, type));
        if (others.length > 0) throw new Error(`${programPath(type)} has several files in ${language}`);
        return [type, { [fence]: finished[fence](readFileSync(join(out, type, file), "utf8"), sourceOf(type)) }];
      }),
    );
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The text without the comment of the program, which is the title of the example, and without spaces at the ends of lines. */
function withoutAbout(text: string, source: string): string {
  const about = aboutOf(source);
  const lines = text.split("\n").filter((line) => !["//", "#"].some((mark) => line.trim() === `${mark} ${about}`));
  return lines
    .map((line) => line.trimEnd())
    .join("\n")
    .trim();
}

/** Whether the text of a program uses an imported name. */
const isUsed = (name: string, code: string): boolean => new RegExp(`\\b${name}\\b`).test(code);

/**
 * What Pulumi's generator for Java leaves out: it takes our inputs for those of a package of Pulumi's, does not import those of inner
 * objects, names its class after a type of ours, and gives an output to an input that takes one value or a list.
 */
function finishedJava(text: string, source: string): string {
  const own = `import ${languages.java.basePackage}.machines`;
  const [head = "", imports = "", code = ""] = withoutAbout(text, source)
    .replaceAll("import com.pulumi.machines.", `${own}.`)
    .replace("public class App {", "public class Main {")
    .replace("App::stack", "Main::stack")
    .replaceAll(
      /(?<=\.minSecretsVersion\()(\w+\.\w+\(\))(?=\))/g,
      "$1.applyValue(Either::<Integer, List<Integer>>ofLeft)",
    )
    .replace(/^(?=import com\.pulumi\.core\.Output;)/m, "import com.pulumi.core.Either;\n")
    .split(/^((?:import .*\n)+)/m);
  const inputs = [...code.matchAll(/\b(\w+Args)\.builder\(/g)].map(([, name = ""]) => name);
  const known = new Set([...imports.matchAll(/\.(\w+);$/gm)].map(([, name = ""]) => name));
  const inner = [...new Set(inputs)].filter((name) => !known.has(name)).map((name) => `${own}.inputs.${name};`);
  const lines = imports
    .trim()
    .split("\n")
    .filter((line) => isUsed(/(\w+);$/.exec(line)?.[1] ?? "", code));
  return `${head}${[...lines, ...inner].toSorted().join("\n")}\n${code}`;
}

/** YAML of today: the generator still writes an old key, and does not know secret settings. */
const finishedYaml = (text: string, source: string): string =>
  [...source.matchAll(/^config "(\w+)" "\w+" \{\n\s+secret\s*= true\n/gm)].reduce(
    (before, [, name = ""]) =>
      before.replace(new RegExp(`(^ {2}${name}:\\n {4}type: \\w+\\n)`, "m"), "$1    secret: true\n"),
    withoutAbout(text, source).replace(/^configuration:$/m, "config:"),
  );

const finished: Readonly<Record<Fence, (text: string, source: string) => string>> = {
  typescript: withoutAbout,
  python: withoutAbout,
  go: withoutAbout,
  csharp: withoutAbout,
  java: finishedJava,
  yaml: finishedYaml,
};

/** The programs of both; those of the later ones count. */
export const mergedPrograms = (...all: readonly Programs[]): Programs =>
  Object.fromEntries(
    [...new Set(all.flatMap((programs) => Object.keys(programs)))].map((type) => [
      type,
      Object.assign({}, ...all.map((programs) => programs[type] ?? {})) as Programs[string],
    ]),
  );

/** The resource with its example at the end of its description. */
function withProgram(resource: ResourceSpec, type: string, code: Programs[string]): ResourceSpec {
  const title = aboutOf(sourceOf(type)).replace(/\.$/, "");
  const blocks = programLanguages.flatMap(({ fence }) =>
    code[fence] === undefined ? [] : [`\`\`\`${fence}\n${code[fence]}\n\`\`\`\n`],
  );
  const lines = [
    `${examplesBegin}\n## Example Usage\n{{% example %}}\n### ${title}\n`,
    ...blocks,
    "{{% /example %}}\n{{% /examples %}}",
  ];
  return { ...resource, description: `${resource.description}\n\n${lines.join("\n")}` };
}

/** The schema with the programs of its resources. */
export const withPrograms = (schema: PackageSpec, programs: Programs): PackageSpec => ({
  ...schema,
  resources: Object.fromEntries(
    Object.entries(schema.resources).map(([token, resource]) => {
      const code = programs[nameOf(token)];
      const isShown = code !== undefined && existsSync(programPath(nameOf(token)));
      return [token, isShown ? withProgram(resource, nameOf(token), code) : resource];
    }),
  ),
});

/** The programs in the descriptions of a schema. */
export const programsOf = (schema: Pick<PackageSpec, "resources">): Programs =>
  Object.fromEntries(
    Object.entries(schema.resources).flatMap(([token, { description }]) => {
      const code = examplesIn(description);
      return Object.keys(code).length === 0 ? [] : [[nameOf(token), code]];
    }),
  );
