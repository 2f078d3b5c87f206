// What programs in a language need to run: the environment, and the files beside the program.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { withLock } from "../../tools/lib/lock.mjs";
import { quiet } from "../../tools/lib/process.mjs";
import { findHost, languageHost } from "../../tools/setup/languageHosts.mjs";
import { dotnetProblem, dotnetSettings, isWithoutPackages } from "../../tools/setup/dotnet.mjs";
import { mavenRepository, repositoryOption } from "../../tools/setup/maven.mjs";
import { inPythonEnvironment, pythonEnvironment } from "../../tools/setup/python.mjs";
import { goEnvironment, goProblem, isOffline } from "../../tools/setup/goProgram.mjs";

const GO_SDK = "github.com/pulumi-machines/pulumi-machines/sdk/go/machines";

/** A language for programs. */
export interface Runtime {
  /** Its name in Pulumi.yaml. */
  readonly yaml: string;
  /** The program's file. */
  readonly main: string;
  /** The example's other files, beside its program and its Pulumi.yaml. */
  readonly files: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Prepares a project's folder to run programs. */
  prepare(dir: string, project: string): void;
}

/** A runtime, or the reason why its programs cannot run here. */
export type Found =
  | { readonly runtime: Runtime; readonly reason?: undefined }
  | { readonly runtime?: undefined; readonly reason: string };

const tsconfig = {
  compilerOptions: {
    target: "es2022",
    module: "nodenext",
    moduleResolution: "nodenext",
    types: ["node"],
    strict: true,
    skipLibCheck: true,
    noEmit: true,
  },
};

/** TypeScript on Node.js, with the packages installed in the parent folder. */
export const nodejs: Runtime = {
  yaml: "nodejs",
  main: "index.ts",
  files: ["tsconfig.json"],
  env: {},
  prepare(dir, project) {
    writeFileSync(join(dir, "package.json"), JSON.stringify({ name: project, private: true, main: "index.ts" }));
    writeFileSync(join(dir, "tsconfig.json"), JSON.stringify(tsconfig));
  },
};

/** The runtime that a Pulumi.yaml names. A language may be missing on this computer; what is skipped is printed. */
export async function findRuntime(yaml: string, installed: string): Promise<Found> {
  const [, name = ""] = /^runtime:(?:\s+name:)? *(\w+)/m.exec(yaml) ?? [];
  if (name === "nodejs") return { runtime: nodejs };
  const finds: Readonly<Record<string, () => Promise<Found>>> = {
    python: () => findPython(installed),
    go: findGo,
    java: () => findJava(installed),
    dotnet: () => findDotnet(installed),
    yaml: findYaml,
  };
  const found = await (finds[name]?.() ?? Promise.reject(new Error(`no runtime is called ${name}`)));
  if (found.reason !== undefined) {
    console.warn(`Programs in ${name} are not run: ${found.reason}.`);
    if (name === "dotnet") leaveOut("programs in C#", found.reason);
  }
  return found;
}

/** Python, with the packages of the example's requirements.txt in a virtual environment in `installed`. */
async function findPython(installed: string): Promise<Found> {
  const base = await pythonEnvironment(process.env);
  const reason = base.reason ?? withoutHost("python");
  if (base.dir === undefined || reason !== undefined) return { reason: reason ?? "" };
  const venv = join(installed, "venv");
  const { dir } = base;
  // Another test file may be installing it.
  await withLock(`${venv}.lock`, "installing the SDK for Python", () => {
    if (!existsSync(venv)) install(dir, venv, installed);
  });
  const runtime: Runtime = {
    yaml: "\n  name: python\n  options:\n    virtualenv: venv",
    main: "__main__.py",
    files: ["requirements.txt"],
    env: { PYTHONDONTWRITEBYTECODE: "1" },
    prepare: (dir) => symlinkSync(venv, join(dir, "venv")),
  };
  return { runtime };
}

/** Go, with the SDK of the clone. */
async function findGo(): Promise<Found> {
  const reason = (await goProblem(process.env)) ?? withoutHost("go");
  if (reason !== undefined) return { reason };
  const unset = { GOOS: "", GOARCH: "", GOFLAGS: "" };
  // Linking without symbols, as every run does, is faster.
  const env = { ...goEnvironment(unset), ...unset, GOFLAGS: "-ldflags=-s" };
  // Common imports are compiled once, which can take minutes: longer than a test's timeout.
  const { code, output } = await quiet("go", ["build", GO_SDK], {
    cwd: "examples/quickstart-go",
    env: { ...process.env, ...env },
    alive: "still compiling the SDKs for Go",
  });
  if (code !== 0 && isOffline(output))
    return { reason: "its modules cannot be downloaded: check the network and GOPROXY" };
  const runtime: Runtime = {
    yaml: "go",
    main: "main.go",
    files: ["go.mod", "go.sum"],
    env,
    prepare(dir) {
      for (const file of ["go.mod", "go.sum"]) writeFileSync(join(dir, file), elsewhere("quickstart-go", file));
    },
  };
  return { runtime };
}

/** Text of an example's file for a folder beside the installed packages. */
export const elsewhere = (example: string, file: string): string =>
  readFileSync(join("examples", example, file), "utf8")
    .replaceAll("../../sdk/nodejs-plugin/", "../node_modules/pulumi-machines-plugin/")
    .replaceAll("../../sdk/dotnet/", "../sdk-dotnet/")
    .replaceAll("../../", `${process.cwd()}/`);

/** A virtual environment on top of another: nothing is downloaded, and installations affect only this run. */
function install(base: string, venv: string, installed: string): void {
  const env = inPythonEnvironment(venv, { PYTHONHOME: "", PYTHONPATH: "", ...process.env });
  const run = (python: string, ...args: string[]): string =>
    execFileSync(join(python, "bin/python"), args, { cwd: installed, env, encoding: "utf8", stdio: "pipe" });
  const packages = "import sysconfig; print(sysconfig.get_path('purelib'))";
  run(base, "-m", "venv", "--without-pip", venv);
  writeFileSync(join(run(venv, "-c", packages).trim(), "base.pth"), run(base, "-c", packages));
  const sdk = join(installed, "sdk-python"); // a copy, because the build writes into it
  cpSync("sdk/python", sdk, { recursive: true });
  const requirements = elsewhere("quickstart-python", "requirements.txt").replace(
    join(process.cwd(), "sdk/python"),
    sdk,
  );
  writeFileSync(join(installed, "requirements.txt"), requirements);
  run(venv, "-m", "pip", "install", "--no-index", "--no-build-isolation", "-r", "requirements.txt");
}

/** Java with Maven, and the SDK of the clone in a local repository in `installed`. */
async function findJava(installed: string): Promise<Found> {
  const base = await mavenRepository(process.env);
  if (base.dir === undefined) return { reason: base.reason };
  const host = await languageHost("java", process.env);
  if (host.dir === undefined) return { reason: host.reason };
  const repository = join(installed, "maven");
  const { dir } = base;
  await withLock(`${repository}.lock`, "installing the SDK for Java", async () => {
    if (existsSync(repository)) return;
    const unfinished = `${repository}.tmp`;
    cpSync(dir, unfinished, { recursive: true });
    const sdk = join(installed, "sdk-java"); // a copy, because the build writes into it
    cpSync("sdk/java", sdk, { recursive: true });
    const { code, output } = await quiet("mvn", ["--batch-mode", repositoryOption(unfinished), "install"], {
      cwd: sdk,
      alive: "still compiling the SDK for Java",
    });
    if (code !== 0) throw new Error(output);
    renameSync(unfinished, repository);
  });
  const main = "src/main/java/hello/App.java";
  const runtime: Runtime = {
    yaml: "java",
    main,
    files: ["pom.xml"],
    env: { PATH: withHost(host.dir), MAVEN_OPTS: `${process.env["MAVEN_OPTS"] ?? ""} ${repositoryOption(repository)}` },
    prepare(dir) {
      mkdirSync(dirname(join(dir, main)), { recursive: true });
      writeFileSync(join(dir, "pom.xml"), elsewhere("quickstart-java", "pom.xml"));
    },
  };
  return { runtime };
}

/** C#, with a copy of the clone's SDK in `installed`, which is compiled once. */
async function findDotnet(installed: string): Promise<Found> {
  const problem = await dotnetProblem(process.env);
  if (problem !== undefined) return { reason: problem };
  const host = await languageHost("dotnet", process.env);
  if (host.dir === undefined) return { reason: host.reason };
  const sdk = join(installed, "sdk-dotnet");
  const env = { PATH: withHost(host.dir), ...dotnetSettings };
  const reason = await withLock(`${sdk}.lock`, "compiling the SDK for C#", async () => {
    if (!existsSync(sdk)) cpSync("sdk/dotnet", sdk, { recursive: true });
    const options = { cwd: sdk, env: { ...process.env, ...env }, alive: "still compiling the SDK for C#" };
    const { code, output } = await quiet("dotnet", ["build", "--nologo"], options);
    if (code !== 0 && isWithoutPackages(output))
      return "its NuGet packages cannot be downloaded: check the network and NuGet's sources";
    if (code !== 0) throw new Error(output);
    return undefined;
  });
  if (reason !== undefined) return { reason };
  const project = "quickstart-csharp.csproj";
  const runtime: Runtime = {
    yaml: "dotnet",
    main: "Program.cs",
    files: [project],
    env,
    prepare: (dir) => writeFileSync(join(dir, project), elsewhere("quickstart-csharp", project)),
  };
  return { runtime };
}

/** YAML, which needs only its language host. */
async function findYaml(): Promise<Found> {
  const host = await languageHost("yaml", process.env);
  if (host.dir === undefined) return { reason: host.reason };
  return {
    runtime: {
      yaml: "yaml",
      main: "Main.yaml",
      files: [],
      env: { PATH: withHost(host.dir) },
      prepare: () => undefined,
    },
  };
}

const withHost = (dir: string): string => [process.env["PATH"], dir].join(delimiter);

/** Why the Pulumi CLI lacks a language host, if it does: some distributions package them separately. */
const withoutHost = (language: string): string | undefined =>
  findHost(language, process.env) === undefined
    ? `pulumi-language-${language} is neither beside pulumi nor on PATH`
    : undefined;
