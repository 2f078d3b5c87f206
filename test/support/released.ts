// The plugin as users of other languages install it: from the release archive, on a computer without Node.js.
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { isExecutable } from "../../tools/lib/paths.mjs";
import type { Stack } from "./stack.ts";

/**
 * Installs the archive of this computer into Pulumi's own folder, in place of the plugin in the project's packages.
 * @param without commands that are not on PATH either
 */
export async function installReleased(stack: Stack, ...without: string[]): Promise<{ readonly version: string }> {
  // The clone's own plugin is on the PATH of npm scripts. The language hosts on PATH are needed.
  const { PATH = "" } = stack.env;
  stack.env["PATH"] = pathWithout(["pulumi-resource-machines", ...without], PATH, join(stack.dir, ".bin"));
  const project = join(stack.dir, "Pulumi.yaml");
  writeFileSync(project, readFileSync(project, "utf8").replace(/^plugins:\n(?: .*\n?)*/m, ""));
  const archive = join(process.cwd(), "packages", readdirSync("packages").find(isArchive) ?? "");
  const version = /-v(.+?)-/.exec(archive)?.[1] ?? "";
  await stack.ok("plugin", "install", "resource", "machines", version, "--file", archive);
  return { version };
}

const platform = `${process.platform}-${process.arch === "arm64" ? "arm64" : "amd64"}`;
const isArchive = (name: string): boolean => name.endsWith(`-${platform}.tar.gz`);

/** A PATH without some commands: a folder that has one of them is replaced by one with links to its others. */
function pathWithout(commands: readonly string[], path: string, links: string): string {
  const folders = path.split(delimiter).map((folder, i) => {
    if (!commands.some((command) => isExecutable(join(folder, command)))) return folder;
    const copy = join(links, `${i}`);
    mkdirSync(copy, { recursive: true });
    for (const name of readdirSync(folder).filter((name) => !commands.includes(name)))
      symlinkSync(join(folder, name), join(copy, name));
    return copy;
  });
  return folders.join(delimiter);
}
