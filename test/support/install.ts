// Packs the packages and installs exactly these in a folder outside the clone. The tests' projects are folders in it, so Node.js finds
// the packages as in a user's project.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { userCache } from "../../tools/setup/userCache.mjs";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder with the installed packages. */
    installed: string;
  }
}

// Each project of vitest loads its own copy of this file, but all projects use one folder.
const shared = globalThis as { installedFolder?: string; installedFor?: number };

/** Gives a project the folder. The returned function removes it when no other project needs it. */
export function provideInstalled(project: TestProject): () => Promise<void> {
  const installed = (shared.installedFolder ??= install());
  shared.installedFor = (shared.installedFor ?? 0) + 1;
  project.provide("installed", installed);
  return async () => {
    shared.installedFor = (shared.installedFor ?? 1) - 1;
    if (shared.installedFor > 0) return;
    delete shared.installedFolder;
    // Asynchronous, because otherwise vitest would not notice that its last worker has ended, and report it as hanging.
    await rm(installed, { recursive: true, force: true, maxRetries: 3 });
  };
}

/** What the programs of the tests use besides our packages. */
const others = ["@pulumi/pulumi@3.270.0", "typescript@6.0.3", "@types/node@24"];

/** The folder in the user's cache for installed packages of others: one for each set of dependencies. */
function cached(): string {
  const ours = ["sdk/nodejs", "sdk/nodejs-plugin", "service", "policy"];
  const wanted = ours.map((name) => {
    const { dependencies, optionalDependencies, peerDependencies } = JSON.parse(
      readFileSync(`${name}/package.json`, "utf8"),
    ) as Record<string, unknown>;
    return { dependencies, optionalDependencies, peerDependencies };
  });
  const platform = `${process.platform}-${process.arch}`;
  const hash = createHash("sha256").update(JSON.stringify([platform, process.version, others, wanted]));
  return join(userCache("What the programs of the tests use"), `packages-${hash.digest("hex").slice(0, 12)}`);
}

function install(): string {
  try {
    execFileSync("pulumi", ["version"], { stdio: "ignore" });
  } catch {
    throw new Error("the end-to-end tests need the Pulumi CLI; `npm test` finds or builds it and puts it on PATH");
  }
  const run = (command: string, args: readonly string[], cwd: string): void => {
    try {
      execFileSync(command, args, { cwd, stdio: "pipe", encoding: "utf8" });
    } catch (error) {
      const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
      throw new Error(`${command} ${args.join(" ")} failed:\n${stdout}\n${stderr}`, { cause: error });
    }
  };
  run("node", ["tools/package.mjs"], process.cwd());
  const packages = readdirSync("packages")
    .filter((file) => file.endsWith(".tgz"))
    .map((file) => join(process.cwd(), "packages", file));
  const installed = mkdtempSync(join(tmpdir(), "pulumi-machines-e2e-"));
  writeFileSync(join(installed, "package.json"), JSON.stringify({ name: "e2e", private: true }));
  // npm corrects what has changed since the last run, in a fifth of the time that it needs for a new folder.
  const last = cached();
  if (existsSync(last)) run("cp", ["-a", last, join(installed, "node_modules")], installed);
  run("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", ...packages, ...others], installed);
  keep(join(installed, "node_modules"), last);
  return installed;
}

/** Keeps the packages of others for the next run; ours are packed again. */
function keep(modules: string, last: string): void {
  if (existsSync(last)) return;
  const unfinished = mkdtempSync(`${last}-`);
  const isOurs = (file: string): boolean =>
    /node_modules\/(pulumi-machines|machines-service|\.bin|\.package-lock)/.test(file);
  cpSync(modules, unfinished, { recursive: true, verbatimSymlinks: true, filter: (file) => !isOurs(file) });
  try {
    renameSync(unfinished, last);
  } catch {
    // Another run has kept its own meanwhile.
    rmSync(unfinished, { recursive: true });
  }
}
