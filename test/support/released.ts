// The plugin as users of other languages install it: from the release archive, on a computer without Node.js.
import { accessSync, constants, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Stack } from "./stack.ts";

/** Installs the archive of this computer into Pulumi's own folder, in place of the plugin in the project's packages. */
export async function installReleased(stack: Stack): Promise<{ readonly version: string }> {
  stack.env["PULUMI_IGNORE_AMBIENT_PLUGINS"] = "true"; // the clone's own plugin is on the PATH of npm scripts
  const project = join(stack.dir, "Pulumi.yaml");
  writeFileSync(project, readFileSync(project, "utf8").replace(/^plugins:\n(?: .*\n?)*/m, ""));
  const archive = join(process.cwd(), "packages", readdirSync("packages").find(isArchive) ?? "");
  const version = /-v(.+?)-/.exec(archive)?.[1] ?? "";
  await stack.ok("plugin", "install", "resource", "machines", version, "--file", archive);
  return { version };
}

const platform = `${process.platform}-${process.arch === "arm64" ? "arm64" : "amd64"}`;
const isArchive = (name: string): boolean => name.endsWith(`-${platform}.tar.gz`);

/** A PATH whose commands are the same, but without `node`: a folder that has it is replaced by one with links. */
export function pathWithoutNode(path: string, links: string): string {
  const folders = path.split(delimiter).map((folder, i) => {
    if (!hasNode(folder)) return folder;
    const copy = join(links, `${i}`);
    mkdirSync(copy, { recursive: true });
    for (const name of readdirSync(folder).filter((name) => name !== "node"))
      symlinkSync(join(folder, name), join(copy, name));
    return copy;
  });
  return folders.join(delimiter);
}

function hasNode(folder: string): boolean {
  try {
    accessSync(join(folder, "node"), constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
