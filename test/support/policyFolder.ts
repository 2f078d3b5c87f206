// Runs policy packs from their folder, for tests whose language host is too old for that.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Stack } from "./stack.ts";

/**
 * Makes the CLI run packs from their folder. A current language host runs the same in the pack's folder; for a runtime
 * without a host the engine runs an analyzer with the runtime's name.
 * @returns the environment for it; the pack's runtime has to be `folder`, see {@link runFromFolder}
 */
export function packsFromFolders(stack: Stack, installed: string): Record<string, string> {
  const path = join(stack.dir, "path");
  mkdirSync(path, { recursive: true });
  const run = join(installed, "node_modules/@pulumi/pulumi/cmd/run-policy-pack");
  writeFileSync(join(path, "pulumi-analyzer-policy-folder"), `#!/bin/sh\nexec node ${run} "$@"\n`, { mode: 0o755 });
  return { PATH: `${path}:${stack.env["PATH"]}`, PULUMI_IGNORE_AMBIENT_PLUGINS: "false" };
}

/** Sets the runtime of a pack for {@link packsFromFolders}. */
export function runFromFolder(folder: string): void {
  const file = join(folder, "PulumiPolicy.yaml");
  writeFileSync(file, readFileSync(file, "utf8").replace("runtime: nodejs", "runtime: folder"));
}
