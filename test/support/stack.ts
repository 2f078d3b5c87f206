// A Pulumi project with one stack, driven by the real CLI, with its own backend.
import { spawn, type ChildProcessByStdio } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { ModuleKind, ScriptTarget, transpileModule } from "typescript";
import { allOr } from "./extent.mts";
import { elsewhere, nodejs, type Runtime } from "./runtimes.ts";
import { vault } from "./vault.ts";

/** The result of a CLI run. */
export interface Ran {
  readonly code: number;
  /** Standard output and error in order. */
  readonly output: string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Options of a CLI run. */
export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** The command that runs instead. */
  readonly command?: string;
  /** Whether to omit the arguments that every run of the CLI gets. */
  readonly plain?: boolean;
  /** Whether it gets a process group of its own, so that a test can signal it like a terminal. */
  readonly ownGroup?: boolean;
}

/** A running CLI. */
export interface Running {
  readonly pid: number;
  readonly ended: Promise<Ran>;
  /** Standard output and error so far. */
  said(): string;
}

/** A step of a preview. */
export interface Step {
  readonly op: string;
  readonly name: string;
  readonly id: string | undefined;
  /** Paths of the changed properties. */
  readonly changes: readonly string[];
  readonly newOutputs: Readonly<Record<string, unknown>>;
}

/** A resource in the exported state. */
export interface StateOf {
  /** Its type, as the engine has it. */
  readonly type: string;
  readonly id: string;
  readonly inputs: Record<string, unknown>;
  readonly outputs: Record<string, unknown>;
  readonly initErrors?: readonly string[];
}

/** A resource in the backend's file. */
export interface InCheckpoint extends StateOf {
  readonly urn: string;
  readonly custom: boolean;
  readonly created: string;
  readonly modified: string;
  /** Whether its deletion is pending. */
  readonly delete?: boolean;
  /** URN of the resource that it is a part of. */
  readonly viewOf?: string;
}

/** The runtime of a program that was compiled before: Pulumi does not load a compiler in each run. */
const compiledYaml = "runtime: { name: nodejs, options: { typescript: false } }\n";

const counted = { created: "+", updated: "~", deleted: "-", replaced: "+-", unchanged: "" } as const;

/** The bindings; the value is the package that programs import. */
export type Binding = "pulumi-machines" | "pulumi-machines-plugin";
/** Both of them, for tests of differences between them. */
export const bindings: readonly Binding[] = ["pulumi-machines", "pulumi-machines-plugin"];
/** For tests that are the same for both: one of them, and both in `npm run test:all`. */
export const bindingsOr = (sample: Binding): readonly Binding[] => allOr(bindings, [sample]);

/** The plugin's entry in a project's Pulumi.yaml, as in the docs. */
const pluginFrom = (folder: string): string => `plugins:
  providers:
    - name: machines
      path: ${folder}/pulumi-machines-plugin/plugin
`;

/** A project folder below `installed` with stack `dev`. */
export class Stack {
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly name: string;
  readonly runtime: Runtime;
  binding: Binding;
  #checksTypes = false;
  /** The program that was compiled last. */
  #compiled: string | undefined;

  constructor(installed: string, name: string, binding: Binding = "pulumi-machines", runtime: Runtime = nodejs) {
    this.name = name;
    this.binding = binding;
    this.runtime = runtime;
    this.dir = mkdtempSync(join(installed, `${name}-`));
    mkdirSync(join(this.dir, ".state"));
    this.env = {
      ...process.env,
      ...runtime.env,
      // Without the backend's `.attrs` files: a killed CLI can leave one empty, and no command reads the stack then.
      PULUMI_BACKEND_URL: `${this.backend}?metadata=skip`,
      PULUMI_HOME: join(this.dir, ".pulumi-home"),
      PULUMI_CONFIG_PASSPHRASE: "test",
      PULUMI_SKIP_UPDATE_CHECK: "true",
      PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
      // Every run loads the same packages, and compiles them once.
      NODE_COMPILE_CACHE: join(installed, ".compile-cache"),
    };
    this.#writeProject();
    runtime.prepare(this.dir, name);
    this.checkTypes(false);
  }

  #writeProject(): void {
    const plugin = this.binding === "pulumi-machines-plugin" ? pluginFrom("../node_modules") : "";
    writeFileSync(join(this.dir, "Pulumi.yaml"), `name: ${this.name}\nruntime: ${this.runtime.yaml}\n${plugin}`);
  }

  /** The URN of one of our resources; `within` is the type of its parent component. */
  urn(type: string, name: string, within?: string): string {
    const token =
      this.binding === "pulumi-machines" ? `pulumi-nodejs:dynamic/machines:${type}` : `machines:index:${type}`;
    return `urn:pulumi:dev::${this.name}::${within === undefined ? "" : `${within}$`}${token}::${name}`;
  }

  /**
   * Whether programs in TypeScript are type-checked and compiled by each run, like users' programs. It is slow, and most tests
   * do not need it: their programs are compiled without types, once.
   */
  checkTypes(checked = true): void {
    this.#checksTypes = checked;
  }

  /** Prepares the project for a run: of the program in TypeScript, or of its compiled form. */
  #compile(): void {
    if (this.runtime !== nodejs || !existsSync(this.#main)) return;
    const edit = (file: string, change: (text: string) => string): void => {
      const text = readFileSync(join(this.dir, file), "utf8");
      if (change(text) !== text) writeFileSync(join(this.dir, file), change(text));
    };
    const main = this.#checksTypes ? nodejs.main : "index.js";
    edit("Pulumi.yaml", (text) =>
      text.replace(/^runtime: .*\n/m, this.#checksTypes ? `runtime: ${nodejs.yaml}\n` : compiledYaml),
    );
    edit("package.json", (text) => JSON.stringify({ ...(JSON.parse(text) as object), main }));
    const program = readFileSync(this.#main, "utf8");
    if (this.#checksTypes || program === this.#compiled) return;
    this.#compiled = program;
    const compilerOptions = { module: ModuleKind.CommonJS, target: ScriptTarget.ES2022, esModuleInterop: true };
    writeFileSync(join(this.dir, main), transpileModule(program, { compilerOptions }).outputText);
  }

  /** Creates the stack and sets its configuration. */
  async init(config: Readonly<Record<string, string>>): Promise<void> {
    const { provider, env } = await vault();
    Object.assign(this.env, env);
    await this.ok("stack", "init", "dev", "--secrets-provider", provider);
    await this.set(config);
  }

  /** Sets configuration; keys that end in `token` or `Token` as secrets. */
  async set(config: Readonly<Record<string, string>>): Promise<void> {
    const settings = Object.entries(config).flatMap(([key, value]) => [
      /token$/i.test(key) ? "--secret" : "--plaintext",
      `${key}=${value}`,
    ]);
    if (settings.length > 0) await this.ok("config", "set-all", ...settings);
  }

  /** The URL of its backend, a folder. */
  get backend(): string {
    return `file://${join(this.dir, ".state")}`;
  }

  get #main(): string {
    return join(this.dir, this.runtime.main);
  }

  /** Writes the program; it imports `pulumi-machines`, in any binding. */
  program(text: string): void {
    writeFileSync(this.#main, text.replace('from "pulumi-machines"', `from "${this.binding}"`));
  }

  /** The current program. */
  read(): string {
    return readFileSync(this.#main, "utf8").replace(`from "${this.binding}"`, 'from "pulumi-machines"');
  }

  /** Switches to another binding; the program must be written again. */
  switchTo(binding: Binding): void {
    this.binding = binding;
    this.#writeProject();
  }

  /** Copies an example of the repository into the project without its package.json: the packed packages are installed. */
  example(name: string): void {
    this.checkTypes();
    const ours = ["Pulumi.yaml", this.runtime.main, ...this.runtime.files];
    for (const file of ours) writeFileSync(join(this.dir, file), elsewhere(name, file));
    if (this.binding === "pulumi-machines-plugin") {
      this.program(elsewhere(name, this.runtime.main));
      appendFileSync(join(this.dir, "Pulumi.yaml"), pluginFrom("../node_modules"));
    }
    // What the program reads.
    for (const entry of readdirSync(`examples/${name}`)) {
      if (!["package.json", "node_modules", ...ours].includes(entry))
        cpSync(`examples/${name}/${entry}`, join(this.dir, entry), { recursive: true });
    }
  }

  /** Runs the CLI. */
  run(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    return this.start(args, options).ended;
  }

  /** Starts the CLI, for tests that interfere with it while it runs. */
  start(
    args: readonly string[],
    { env, command = "pulumi", plain = false, ownGroup = false }: RunOptions = {},
  ): Running {
    this.#compile();
    const child = spawn(command, plain ? args : [...args, "--non-interactive", "--color", "never"], {
      cwd: this.dir,
      env: { ...this.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: ownGroup,
    });
    return { pid: child.pid ?? 0, ...collected(child) };
  }

  /** Runs the CLI and returns its output. @throws with the output when it fails. */
  async ok(...args: string[]): Promise<string> {
    const { code, output } = await this.run(args);
    if (code !== 0) throw new Error(`pulumi ${args.join(" ")} failed:\n${output}`);
    return output;
  }

  /** Runs the CLI, which must fail, and returns its output. */
  async fails(...args: string[]): Promise<string> {
    const { code, output } = await this.run(args);
    if (code === 0) throw new Error(`pulumi ${args.join(" ")} should have failed:\n${output}`);
    return output;
  }

  /** `pulumi up` without a preview. */
  up(): Promise<string> {
    return this.ok("up", "--yes", "--skip-preview");
  }

  /** `pulumi refresh` without a preview. */
  refresh(): Promise<string> {
    return this.ok("refresh", "--yes", "--skip-preview");
  }

  /** `pulumi destroy` without a preview. */
  destroy(): Promise<string> {
    return this.ok("destroy", "--yes", "--skip-preview");
  }

  /** The steps of `pulumi preview` by resource name, without the stack itself, and without reads before an update. */
  async preview(env: Readonly<Record<string, string>> = {}): Promise<Record<string, Step>> {
    const { code, output, stdout } = await this.run(["preview", "--json"], { env });
    if (code !== 0) throw new Error(`pulumi preview failed:\n${output}`);
    const { steps } = JSON.parse(stdout) as {
      steps: {
        op: string;
        urn: string;
        oldState?: { id?: string };
        newState?: { outputs?: Record<string, unknown> };
        detailedDiff?: Record<string, unknown>;
        diffReasons?: string[];
      }[];
    };
    const found = steps
      .filter(({ urn, op }) => !/pulumi:(pulumi:Stack|providers:)/.test(urn) && op !== "refresh")
      .map(({ op, urn, oldState, newState, detailedDiff, diffReasons }): [string, Step] => {
        const name = urn.slice(urn.lastIndexOf("::") + 2);
        return [
          name,
          {
            op,
            name,
            id: oldState?.id,
            changes: Object.keys(detailedDiff ?? {}).length > 0 ? Object.keys(detailedDiff ?? {}) : (diffReasons ?? []),
            newOutputs: newState?.outputs ?? {},
          },
        ];
      });
    return Object.fromEntries(found);
  }

  /** The managed resources in the state, by name. */
  state(): Record<string, StateOf> {
    const own = this.resources().filter(({ custom, type }) => custom && !type.startsWith("pulumi:"));
    return Object.fromEntries(
      own.map((resource) => [resource.urn.slice(resource.urn.lastIndexOf("::") + 2), resource]),
    );
  }

  /** All resources in the state, read from the backend's file, because an export takes a run of the CLI. */
  resources(of = "dev"): readonly InCheckpoint[] {
    const stacks = join(this.dir, ".state/.pulumi/stacks");
    const [project = ""] = readdirSync(stacks);
    const { checkpoint } = JSON.parse(readFileSync(join(stacks, project, `${of}.json`), "utf8")) as {
      checkpoint: { latest?: { resources?: InCheckpoint[] } };
    };
    return checkpoint.latest?.resources ?? [];
  }
}

/** The output of a process, until it exits. */
export function collected(child: ChildProcessByStdio<null, Readable, Readable>): Omit<Running, "pid"> {
  let [output, stdout, stderr] = ["", "", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    stderr += text;
  });
  const ended = new Promise<Ran>((resolve, reject) => {
    child.on("error", reject).on("close", (code) => resolve({ code: code ?? -1, output, stdout, stderr }));
  });
  return { ended, said: () => output };
}

/** The numbers that a run prints for created, updated, … resources; the stack counts as unchanged. */
export function counts(output: string): Partial<Record<keyof typeof counted, number>> {
  const summary = output.slice(output.lastIndexOf("Resources:"));
  return Object.fromEntries(
    Object.keys(counted).flatMap((word) => {
      const found = new RegExp(`(\\d+) ${word}`).exec(summary);
      return found ? [[word, Number(found[1])]] : [];
    }),
  );
}

/** What a run reports about each resource at its end, by name. */
export function errorsOf(output: string): Record<string, string> {
  const [, diagnostics = ""] = output.split(/^Diagnostics:$/m);
  const parts = diagnostics.split(/^ {2}\S+ \((.+)\):$/m).slice(1);
  return Object.fromEntries(
    parts.flatMap((name, index) => (index % 2 === 0 ? [[name, parts[index + 1]?.trim() ?? ""]] : [])),
  );
}
