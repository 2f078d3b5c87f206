// Reads generated programs with the parsers of their languages. Each starts once for many programs.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createContext, Script } from "node:vm";
import ts from "typescript";
import { leaveOut } from "../../../tools/lib/leftOut.mjs";
import { goEnvironment, goProblem, goProgram } from "../../../tools/setup/goProgram.mjs";

/** A resource as a program declares it. */
export interface Declared {
  readonly type: string;
  readonly name: string;
  readonly properties: unknown;
  readonly ignoreChanges: readonly string[];
}

/** What a program declares, or why it cannot be read. */
export interface Answer {
  readonly resources: readonly Declared[] | null;
  readonly error?: string;
}

/** Reads programs; undefined, said once, where the language is missing on this computer. */
export type Reader = (programs: readonly string[]) => readonly Answer[];

const pipe = (program: string, args: readonly string[], input: unknown): unknown =>
  JSON.parse(
    execFileSync(program, args, { input: JSON.stringify(input), encoding: "utf8", maxBuffer: 2 ** 28, stdio: "pipe" }),
  );

/** Programs in Go and YAML: by Go's own parser and formatter, and by the one that Pulumi's language host for YAML uses. */
export async function goReader(language: "go" | "yaml"): Promise<Reader | undefined> {
  const wanted = { name: "programReader", what: "the reader of programs", source: "tools/programReader" };
  const { program, reason } = await goProgram(wanted, process.env);
  if (program === undefined) {
    leaveOut(`generated programs in ${language}`, reason);
    return undefined;
  }
  return (programs) => pipe(program, [language], programs) as Answer[];
}

/** Programs in YAML and PCL, by the code of Pulumi itself, which takes long to build. */
export async function pulumiReader(language: "yaml" | "pcl"): Promise<Reader | undefined> {
  const wanted = {
    name: "program-reader",
    what: "Pulumi's readers of programs",
    source: "tools/pulumi/program-reader",
  };
  const { program, reason } = await goProgram(wanted, process.env);
  if (program === undefined) {
    leaveOut(`generated programs in ${language}, as Pulumi reads them`, reason);
    return undefined;
  }
  return (programs) => pipe(program, [language], programs) as Answer[];
}

const script = join(__dirname, "read.py");

const hasPython = (): boolean => {
  const found = spawnSync("python3", ["--version"]).status === 0;
  if (!found) leaveOut("generated programs in python", "there is no python3");
  return found;
};

/** Programs in Python, by its own parser and interpreter. */
export const pythonReader = (): Reader | undefined =>
  hasPython() ? (programs) => pipe("python3", [script, "programs"], programs) as Answer[] : undefined;

/** Programs in TypeScript, by its own compiler. */
export const typescriptReader: Reader = (programs) => programs.map(readTypescript);

function readTypescript(program: string): Answer {
  const { outputText, diagnostics = [] } = ts.transpileModule(program, {
    reportDiagnostics: true,
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.CommonJS },
  });
  const [problem] = diagnostics;
  if (problem) return { resources: null, error: ts.flattenDiagnosticMessageText(problem.messageText, " ") };
  const resources: Declared[] = [];
  const machines = new Proxy(
    {},
    {
      get: (_, type) =>
        class {
          readonly id: unknown;

          constructor(name: string, properties: unknown, { ignoreChanges = [] }: { ignoreChanges?: string[] } = {}) {
            resources.push({ type: String(type), name, properties, ignoreChanges });
            this.id = { id: `${String(type)} ${name}` };
          }
        },
    },
  );
  const setting = (key: string) => ({ setting: key });
  class Config {
    get = () => undefined;
    require = setting;
    requireSecret = setting;
  }
  const context = createContext({
    exports: {},
    require: (name: string) => (name === "@pulumi/pulumi" ? { Config } : machines),
  });
  try {
    new Script(outputText).runInContext(context);
    return { resources };
  } catch (error) {
    return { resources: null, error: String(error) };
  }
}

/** Reads literals back. */
export type LiteralReader = (literals: readonly string[]) => readonly string[];

/** Literals of TypeScript. */
export const typescriptLiterals: LiteralReader = (literals) => {
  const source = `[${literals.join(",\n")}]`;
  const { outputText } = ts.transpileModule(source, { compilerOptions: { target: ts.ScriptTarget.ES2022 } });
  return new Script(outputText).runInNewContext() as string[];
};

/** Literals of Python. */
export const pythonLiterals = (): LiteralReader | undefined =>
  hasPython() ? (literals) => pipe("python3", [script, "literals"], literals) as string[] : undefined;

/** Literals of Go, which its compiler reads. */
export async function goLiterals(): Promise<LiteralReader | undefined> {
  const problem = await goProblem(process.env);
  if (problem !== undefined) {
    leaveOut("generated literals in go", problem);
    return undefined;
  }
  return (literals) => {
    const folder = mkdtempSync(join(tmpdir(), "machines-literals-"));
    try {
      writeFileSync(join(folder, "go.mod"), "module literals\n\ngo 1.21\n");
      writeFileSync(
        join(folder, "main.go"),
        `package main\n\nimport (\n\t"encoding/json"\n\t"os"\n)\n\nfunc main() {\n\tjson.NewEncoder(os.Stdout).Encode([]string{\n${literals.map((one) => `\t\t${one},\n`).join("")}\t})\n}\n`,
      );
      const env = goEnvironment({ GOOS: "", GOARCH: "", GOFLAGS: "", ...process.env });
      const options = { cwd: folder, env, encoding: "utf8", maxBuffer: 2 ** 28 } as const;
      return JSON.parse(execFileSync("go", ["run", "."], { ...options, stdio: "pipe" })) as string[];
    } finally {
      rmSync(folder, { recursive: true });
    }
  };
}
