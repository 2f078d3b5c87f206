// A Pulumi project with one stack: an App, and Machines in it.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { counts } from "../test/support/stack.ts";
import { run, tail, type Run } from "./cli.ts";
import { Stop } from "./options.ts";
import { root, type Workbench } from "./workbench.ts";

/** A resource in the state. */
export interface Kept {
  readonly id: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly outputs: Readonly<Record<string, unknown>>;
}

/** The parts of a project that differ between bindings, and between a floor and the real provider. */
export interface ProjectOptions {
  readonly name: string;
  /** Package the program imports. */
  readonly module: string;
  /** Folder of the provider's executable, for `plugins` in Pulumi.yaml; undefined if none is needed. */
  readonly providerFolder: string | undefined;
  readonly env?: NodeJS.ProcessEnv;
}

// A typical web server; without checks, because their number of requests depends on time.
/** The Machine of the programs. */
export const machine = {
  region: "ams",
  config: {
    image: "registry.example.com/shop:1.0.0",
    env: { GREETING: "hello", LOG_LEVEL: "info" },
    metadata: { role: "web" },
    guest: { cpuKind: "shared", cpus: 1, memoryMb: 256 },
    services: [
      {
        protocol: "tcp",
        internalPort: 8080,
        ports: [
          { port: 80, handlers: ["http"] },
          { port: 443, handlers: ["tls", "http"] },
        ],
      },
    ],
  },
};

const program = (module: string, size: number): string => `
const machines = require("${module}");
const app = new machines.App("shop");
for (let i = 0; i < ${size}; i++)
  new machines.Machine("web-" + i, { app: app.id, ...${JSON.stringify(machine)} });
`;

/** A project of the workbench. */
export class Project {
  readonly #dir: string;
  readonly #module: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #signal: AbortSignal;
  #program: (size: number) => string;

  constructor(bench: Workbench, { name, module, providerFolder, env }: ProjectOptions) {
    this.#dir = join(bench.dir, name);
    this.#module = module;
    this.#signal = bench.signal;
    this.#program = (size) => program(module, size);
    mkdirSync(this.#state, { recursive: true });
    this.#env = { ...bench.env, PULUMI_BACKEND_URL: `file://${this.#state}`, ...env };
    const plugins =
      providerFolder === undefined ? {} : { plugins: { providers: [{ name: "machines", path: providerFolder }] } };
    // JSON is valid YAML.
    writeFileSync(join(this.#dir, "Pulumi.yaml"), JSON.stringify({ name: "bench", runtime: "nodejs", ...plugins }));
    writeFileSync(join(this.#dir, "package.json"), JSON.stringify({ name: "bench", main: "index.js" }));
  }

  get #state(): string {
    return join(this.#dir, "state");
  }

  /** Where the provider runs. */
  get surroundings(): { cwd: string; env: NodeJS.ProcessEnv } {
    return { cwd: this.#dir, env: this.#env };
  }

  /** Creates the stack and sets its configuration. */
  async init(config: Readonly<Record<string, string>>): Promise<void> {
    await this.run(["stack", "init", "dev"]);
    for (const [key, value] of Object.entries(config))
      await this.run(["config", "set", ...(key.endsWith("token") ? ["--secret"] : []), key, value]);
    cpSync(this.#state, `${this.#state}-empty`, { recursive: true });
  }

  /** An empty stack, without a history, and the program for this number of Machines. */
  reset(size: number): void {
    rmSync(this.#state, { recursive: true, force: true });
    cpSync(`${this.#state}-empty`, this.#state, { recursive: true });
    this.resize(size);
  }

  /** Runs another program from now on; it needs a reset. */
  declares(text: (size: number) => string): void {
    this.#program = text;
  }

  /** Writes the program for this number of Machines, and keeps the stack. */
  resize(size: number): void {
    writeFileSync(join(this.#dir, "index.js"), this.#program(size));
  }

  /** Runs an example from now on, and returns how many resources it creates. */
  runs(example: string): number {
    const folder = join(root, "examples", example);
    const text = readFileSync(join(folder, "index.ts"), "utf8").replace(
      '"pulumi-machines"',
      JSON.stringify(this.#module),
    );
    const { outputText } = ts.transpileModule(text, { compilerOptions: { module: ts.ModuleKind.CommonJS } });
    this.#program = () => outputText;
    for (const file of readdirSync(folder).filter(
      (name) => !/^(index\.ts|tsconfig\.json|package\.json|Pulumi\.yaml|node_modules)$/.test(name),
    ))
      cpSync(join(folder, file), join(this.#dir, file));
    return outputText.match(/new machines\.\w+\(/g)?.length ?? 0;
  }

  /** Runs the CLI. @throws Stop when it fails. */
  run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Run> {
    const surroundings = { cwd: this.#dir, env: { ...this.#env, ...env }, signal: this.#signal };
    return run("pulumi", [...args, "--non-interactive", "--color", "never"], surroundings);
  }

  /** Runs an operation. @throws Stop when it fails, or does anything except the measured operation. */
  async operate(verb: "up" | "refresh" | "destroy", expected: ReturnType<typeof counts>, env?: NodeJS.ProcessEnv) {
    const done = await this.run([verb, "--yes", "--skip-preview"], env);
    const found = counts(done.output);
    const wanted = JSON.stringify(expected);
    if (JSON.stringify(found) !== wanted)
      throw new Stop(
        `${tail(done.output)}\npulumi ${verb} should have come to ${wanted}, and came to ${JSON.stringify(found)}.`,
      );
    return done;
  }

  /** One resource of each of our types in the state, by type. */
  async kept(): Promise<Record<string, Kept>> {
    const { stdout } = await this.run(["stack", "export"]);
    const { deployment } = JSON.parse(stdout) as { deployment: { resources: (Kept & { type: string })[] } };
    const found = deployment.resources.map(({ type, id, inputs, outputs }): [string, Kept] => [
      type.slice(type.lastIndexOf(":") + 1),
      { id, inputs, outputs },
    ]);
    return Object.fromEntries(found.filter(([type]) => type === "App" || type === "Machine"));
  }

  /** Bytes of the stack's state on the disk. */
  stateBytes(): number {
    const files = readdirSync(join(this.#state, ".pulumi/stacks"), { recursive: true, withFileTypes: true });
    return files
      .filter(({ name }) => name === "dev.json")
      .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
  }
}
