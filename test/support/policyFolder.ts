// Policy packs run from their folder, in tests whose language host is too old for it.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Stack } from "./stack.ts";

/**
 * Has the CLI run packs from their folder. What a current language host runs is this, in the pack's folder; for a runtime
 * without a host the engine runs an analyzer that is called by it.
 * @returns the environment for it; the pack's runtime has to be `folder`, see {@link runFromFolder}
 */
export function packsFromFolders(stack: Stack, installed: string): Record<string, string> {
  const path = join(stack.dir, "path");
  mkdirSync(path, { recursive: true });
  const run = join(installed, "node_modules/@pulumi/pulumi/cmd/run-policy-pack");
  writeFileSync(join(path, "pulumi-analyzer-policy-folder"), `#!/bin/sh\nexec node ${run} "$@"\n`, { mode: 0o755 });
  return { PATH: `${path}:${stack.env["PATH"]}`, PULUMI_IGNORE_AMBIENT_PLUGINS: "false" };
}

/** Gives a pack the runtime of {@link packsFromFolders}. */
export function runFromFolder(folder: string): void {
  const file = join(folder, "PulumiPolicy.yaml");
  writeFileSync(file, readFileSync(file, "utf8").replace("runtime: nodejs", "runtime: folder"));
}
