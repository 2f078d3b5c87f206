// Checks that the SDKs of Pulumi's generators compile, together with the programs of their READMEs, the examples, and those in the
// descriptions of the package schema; those in Java are in test/generated/programs.test.ts. A
// check whose language is missing is skipped with the reason.
import fs from "node:fs";
import path from "node:path";
import { dotnetProblem, dotnetSettings, isWithoutPackages } from "../setup/dotnet.mjs";
import { goEnvironment, goProblem, isOffline } from "../setup/goProgram.mjs";
import { inPythonEnvironment, pythonEnvironment } from "../setup/python.mjs";
import { bin, cache, inRoot, tsc } from "./paths.mjs";
import { quiet } from "./process.mjs";
import { schemaExamples } from "./schemaExamples.mjs";

const GO_SDK = "sdk/go/machines";

/** By name; each returns its result (`code`, `output`) or why it was skipped (`reason`). */
export const sdkChecks = {
  "SDK for Go": checkGo,
  "SDK for Python": checkPython,
  "SDK for C#": checkDotnet,
  "SDK of the plugin": checkPlugin,
};

async function checkGo(env) {
  const reason = await goProblem(env);
  if (reason !== undefined) return { reason };
  const sdk = inRoot(GO_SDK);
  const mod = fs.readFileSync(path.join(sdk, "go.mod"), "utf8");
  const [, module] = /^module (\S+)$/m.exec(mod) ?? [];
  const [version] = /^go \S+$/m.exec(mod) ?? [];
  const program = scratch("go", {
    "go.mod": `module hello\n\n${version}\n\nrequire ${module} v0.0.0\n\nreplace ${module} => ${JSON.stringify(sdk)}\n`,
    "go.sum": fs.readFileSync(path.join(sdk, "go.sum"), "utf8"),
    "main.go": codeOf(`${GO_SDK}/README.md`, "go"),
    ...programs("go", (type) => `types/${type.toLowerCase()}/main.go`),
  });
  // Without its folder in what is compiled, another clone finds it in Go's cache.
  const goEnv = { ...goEnvironment(env), GOFLAGS: "-trimpath" };
  const go = (cwd, ...args) => quiet("go", args, { cwd, env: goEnv, alive: "still compiling the Go SDK" });
  const { code, output } = await inTurn([
    () => go(sdk, "vet", "./..."),
    () => go(sdk, "build", "./..."),
    () => go(program, "vet", "-mod=mod", "./..."), // go adds indirect requirements itself
    ...examplesWith("go.mod").map((dir) => () => go(dir, "vet", "./...")),
  ]);
  if (code !== 0 && isOffline(output))
    return { reason: "its Go modules cannot be downloaded: check the network and GOPROXY" };
  return { code, output };
}

async function checkPython(env) {
  const { dir, reason } = await pythonEnvironment(env);
  if (dir === undefined) return { reason };
  const files = programs("python", (type) => `types/example_${type.toLowerCase()}.py`);
  const program = scratch("python", { "__main__.py": codeOf("sdk/python/README.md", "python"), ...files });
  const config = ["--config-file", inRoot("tools/python/mypy.ini"), "--cache-dir", path.join(cache, "mypy")];
  const mypy = (...args) =>
    quiet(path.join(dir, "bin/mypy"), [...config, ...args], { cwd: inRoot("."), env: inPythonEnvironment(dir, env) });
  const ofTypes = Object.keys(files).map((file) => path.join(program, file));
  // All other programs are called __main__, and two of one name cannot be checked together.
  const mains = [program, ...examplesWith("__main__.py")].map((at) => path.join(at, "__main__.py"));
  return inTurn([
    () => mypy("-p", "pulumi_machines"),
    ...mains.map((file) => () => mypy(file)),
    () => mypy(...ofTypes),
  ]);
}

/** The program of the README, and with it a copy of the SDK, because a build writes into the folders. */
async function checkDotnet(env) {
  const reason = await dotnetProblem(env);
  if (reason !== undefined) return { reason };
  const [project, program] = ["xml", "csharp"].map((language) => codeOf("sdk/dotnet/README.md", language));
  const dir = scratch("dotnet", {
    "hello.csproj": project.replace("../pulumi-machines/sdk/dotnet/", "../sdk-dotnet/"),
    "Program.cs": program,
    ...programs("csharp", (type) => `types/${type}.cs`, asMethod),
  });
  const sdk = path.join(path.dirname(dir), "sdk-dotnet");
  fs.rmSync(sdk, { recursive: true, force: true });
  fs.cpSync(inRoot("sdk/dotnet"), sdk, { recursive: true });
  const options = { cwd: dir, env: { ...env, ...dotnetSettings }, alive: "still compiling the SDK for C#" };
  const { code, output } = await quiet("dotnet", ["build", "--nologo"], options);
  if (code !== 0 && isWithoutPackages(output))
    return { reason: "its NuGet packages cannot be downloaded: check the network and NuGet's sources" };
  return { code, output };
}

/** The SDK itself is compiled by the build. */
async function checkPlugin(env) {
  const tsconfig = {
    extends: inRoot("sdk/nodejs-plugin/tsconfig.json"),
    compilerOptions: { noEmit: true, rootDir: ".", noUnusedLocals: false },
  };
  const program = scratch("plugin", {
    "tsconfig.json": JSON.stringify({ ...tsconfig, include: ["**/*.ts"], exclude: [] }),
    "index.ts": codeOf("sdk/nodejs-plugin/README.md", "ts"),
    "docs.ts": snippets("docs/bindings.md", "docs/import.md"),
    ...guidePrograms(),
    ...programs("typescript", (type) => `types/${type}.ts`),
  });
  return inTurn([
    () => quiet("node", [tsc, "-p", program], { cwd: inRoot("."), env }),
    () => quiet(path.join(bin, "publint"), ["run", "sdk/nodejs-plugin", "--strict"], { cwd: inRoot("."), env }),
  ]);
}

/** In sequence, up to the first that fails. */
async function inTurn(steps) {
  for (const step of steps) {
    const result = await step();
    if (result.code !== 0) return result;
  }
  return { code: 0, output: "" };
}

/** A folder with these files; other files in it are kept, except for programs of types. */
function scratch(name, files) {
  const dir = path.join(cache, "readme", name);
  fs.rmSync(path.join(dir, "types"), { recursive: true, force: true });
  for (const [file, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(dir, file)), { recursive: true });
    fs.writeFileSync(path.join(dir, file), text);
  }
  return dir;
}

/** The programs of the package schema in a language as files. */
const programs = (language, file, change = (code) => code) =>
  Object.fromEntries(Object.entries(schemaExamples(language)).map(([type, code]) => [file(type), change(code, type)]));

/** A program in C# as a method of a class: a project has only one with statements outside of classes. */
function asMethod(code, type) {
  const usings = code.match(/^using [^(]*;\n/gm).join("");
  return `${usings}using System.Threading.Tasks;\n\nstatic class Example${type}\n{\n    public static async Task<int> Run()\n    {\n${code.slice(code.lastIndexOf(usings) + usings.length)}    }\n}\n`;
}

/** The code blocks of a language in a document. */
function blocksOf(file, language) {
  const blocks = fs.readFileSync(inRoot(file), "utf8").matchAll(/^```(\w+)\n(.*?)^```$/gms);
  return [...blocks].flatMap(([, found, code]) => (found === language ? [code] : []));
}

const codeOf = (file, language) => blocksOf(file, language).join("\n");

/** The TypeScript of documents whose blocks are parts of programs; all omit the same declarations. */
function snippets(...files) {
  const start = `import * as pulumi from "@pulumi/pulumi";\nimport * as machines from "pulumi-machines-plugin";\n
export const config = new pulumi.Config();\n`;
  const parts = files.flatMap((file) => blocksOf(file, "ts"));
  return start + parts.map((code, i) => `export function part${i}() {\n${code}}\n`).join("");
}

/** The complete programs of the guides: blocks that begin with an import. */
function guidePrograms() {
  const guides = fs
    .readdirSync(inRoot("docs"))
    .filter((file) => file.endsWith(".md") && file !== "adding-a-resource.md");
  const programs = guides.flatMap((file) =>
    blocksOf(path.join("docs", file), "ts")
      .filter((code) => /^(?:\/\/.*\n)*import \* as pulumi /.test(code))
      .map((code, i) => [`${path.basename(file, ".md")}${i}.ts`, code]),
  );
  return Object.fromEntries(programs);
}

const examplesWith = (file) =>
  fs
    .readdirSync(inRoot("examples"))
    .map((name) => inRoot("examples", name))
    .filter((dir) => fs.existsSync(path.join(dir, file)));
