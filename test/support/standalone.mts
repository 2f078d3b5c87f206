// The plugin's standalone executable: built once per run, if anything has changed since the last one.
import { execFileSync } from "node:child_process";
import { join } from "node:path";

const platform = `linux-${process.arch === "arm64" ? "arm64" : "amd64"}`;
const folder = join(import.meta.dirname, "../../node_modules/.cache/pulumi-machines/standalone", platform);

/** Its path; undefined where there is none. */
export const standalone = process.platform === "linux" ? join(folder, "plugin/pulumi-resource-machines") : undefined;

/** Builds it. */
export function setup(): void {
  execFileSync(process.execPath, ["tools/setup/standalone.mjs", platform], { stdio: "pipe" });
}
