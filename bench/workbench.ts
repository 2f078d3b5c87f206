// A folder outside the clone with the packages installed as by a user, and the floors beside them.
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { run } from "./cli.ts";
import { Stop } from "./options.ts";

/** The folder of all measurements. */
export interface Workbench {
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  remove(): void;
}

const prefix = "pulumi-machines-bench-";
/** Folder of this repository, in which `npm run bench` starts this process. */
export const root = process.cwd();

/** Folder of one of this repository's packages; undefined if there is none of that name. */
export function packageFolder(name: string): string | undefined {
  const { workspaces } = readJson(join(root, "package.json")) as { workspaces: string[] };
  return globSync(workspaces, { cwd: root })
    .map((dir) => join(root, dir))
    .find((dir) => existsSync(join(dir, "package.json")) && nameOf(dir) === name);
}

const nameOf = (dir: string): unknown => (readJson(join(dir, "package.json")) as { name?: string }).name;
const readJson = (file: string): unknown => JSON.parse(readFileSync(file, "utf8"));

/** Packs the packages and installs them, with the repository's own version of the Pulumi SDK. */
export async function prepareWorkbench(packages: readonly string[], signal: AbortSignal): Promise<Workbench> {
  removeLeftovers();
  const dir = mkdtempSync(join(tmpdir(), `${prefix}${process.pid}-`));
  const env = environment(dir);
  const remove = (): void => rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  try {
    const packed = join(dir, "packages");
    mkdirSync(packed);
    for (const name of packages) {
      const cwd = packageFolder(name);
      if (cwd === undefined) throw new Stop(`There is no package ${name} in this repository.`);
      await run("npm", ["pack", "--loglevel=error", "--pack-destination", packed], { cwd, env, signal });
    }
    const { version } = readJson(join(root, "node_modules/@pulumi/pulumi/package.json")) as { version: string };
    const files = readdirSync(packed).map((file) => join(packed, file));
    writeFileSync(join(dir, "package.json"), JSON.stringify({ name: "bench", private: true }));
    const install = ["install", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
    await run("npm", [...install, ...files, `@pulumi/pulumi@${version}`], { cwd: dir, env, signal });
    for (const [folder, name] of [
      ["dynamic", "machines-floor"],
      ["plugin", "machines-floor-plugin"],
    ] as const) {
      cpSync(join(root, "bench/floor", folder), join(dir, "node_modules", name), { recursive: true });
      const properties = Object.fromEntries(["App", "Machine"].map((type) => [type, declaredBy(folder, type)]));
      writeFileSync(join(dir, "node_modules", name, "properties.json"), JSON.stringify(properties));
    }
    cpSync(join(root, "bench/floor/policy"), join(dir, "node_modules/policy-floor"), { recursive: true });
    return { dir, env, signal, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** The names of the properties that the real class of a type declares. Those of the plugin also declare what has a default. */
function declaredBy(binding: "dynamic" | "plugin", type: string): readonly string[] {
  const { resources } = readJson(join(root, "provider/schema.json")) as {
    resources: Record<string, { properties: object; inputProperties: Record<string, { default?: unknown }> }>;
  };
  const { properties, inputProperties } = resources[`machines:index:${type}`] ?? {
    properties: {},
    inputProperties: {},
  };
  return Object.keys(properties).filter((name) => binding === "plugin" || inputProperties[name]?.default === undefined);
}

/** The user's Pulumi settings are kept, because they are meant to have an effect. A login is not. */
function environment(dir: string): NodeJS.ProcessEnv {
  const { PULUMI_ACCESS_TOKEN: _, PULUMI_STACK: __, PULUMI_CONFIG_PASSPHRASE_FILE: ___, ...rest } = process.env;
  return {
    ...Object.fromEntries(Object.entries(rest).filter(([name]) => !name.startsWith("MACHINES_"))),
    PULUMI_HOME: join(dir, ".pulumi-home"),
    PULUMI_CONFIG_PASSPHRASE: "bench",
    PULUMI_SKIP_UPDATE_CHECK: "true",
    PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
    // The floor watches nothing; `--watched` measures what it costs.
    MACHINES_MIN_HEALTHY_SECONDS: "0",
  };
}

/** Files left by a killed run. */
function removeLeftovers(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = Number(new RegExp(`^${prefix}(\\d+)-`).exec(basename(name))?.[1]);
    if (pid > 0 && !isAlive(pid)) rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
