// The npm packages and the plugin's archives, as they are published.
import fs from "node:fs";
import path from "node:path";
import { writeArchive } from "../lib/archive.mjs";
import { withLock } from "../lib/lock.mjs";
import { bin, inRoot, state } from "../lib/paths.mjs";
import { quiet, say, Stop, tail } from "../lib/process.mjs";

/** The npm packages: their folders, and what they are for. */
export const PACKAGES = {
  "sdk/nodejs": "for programs in TypeScript, without the plugin; also the command pulumi-machines",
  "sdk/nodejs-plugin": "for programs in TypeScript, with the plugin in it",
  service: "the service to run yourself; `machines:endpoint: local` needs it",
  policy: "the policy pack",
};
/**
 * An engine downloads the archive of its own platform, also for programs in languages that need no Node.js. So the archives
 * for Linux have the standalone executable. Those for macOS have the script and need Node.js: macOS starts only signed
 * executables, and no npm package signs one on another system.
 */
export const PLATFORMS = ["darwin-amd64", "darwin-arm64", "linux-amd64", "linux-arm64"];
/** The platform of this computer. */
export const here = `${process.platform}-${process.arch === "arm64" ? "arm64" : "amd64"}`;

/** What package.json says in a folder of the clone. */
export const manifestOf = (dir) => JSON.parse(fs.readFileSync(inRoot(dir, "package.json"), "utf8"));

/** Packs the npm packages into a folder; returns their files. */
export async function packNpm(target, env) {
  const files = [];
  for (const [dir, purpose] of Object.entries(PACKAGES)) {
    const { name, version } = manifestOf(dir);
    say(`  ${name}: ${purpose} …`);
    // Two runs would remove each other's LICENSE.
    await withLock(path.join(state, "packing.lock"), "packing a package", () => pack(dir, target, env));
    const file = path.join(target, `${name}-${version}.tgz`);
    if (!fs.existsSync(file)) throw new Stop(`npm pack did not write ${file}.`);
    const lint = await quiet(path.join(bin, "publint"), ["run", file, "--strict"], { cwd: inRoot(dir), env });
    if (lint.code !== 0) throw new Stop(`${lint.output.trim()}\n${name} is not fit to be published.`);
    files.push(file);
  }
  return files;
}

async function pack(dir, target, env) {
  const license = inRoot(dir, "LICENSE"); // npm packs only the LICENSE beside package.json
  fs.copyFileSync(inRoot("LICENSE"), license);
  const packed = await quiet("npm", ["pack", "--json", "--loglevel=error", "--pack-destination", target], {
    cwd: inRoot(dir),
    env,
  });
  fs.rmSync(license, { force: true });
  if (packed.code !== 0) throw new Stop(`${packed.output.trim()}\nnpm pack failed in ${dir}.`);
}

/** Writes the plugin's archive for each platform, as `pulumi plugin install` takes it; returns their files. */
export async function packPlugin(target, platforms, env) {
  const files = [];
  for (const platform of platforms) {
    say(`  the plugin alone, for ${platform} …`);
    // Pulumi looks for this name in the release of the tag `v<version>`.
    const file = path.join(target, `pulumi-resource-machines-v${manifestOf("sdk/nodejs").version}-${platform}.tar.gz`);
    if (platform.startsWith("linux-"))
      fs.copyFileSync(path.join(await buildStandalone(platform, env), "plugin.tar.gz"), file);
    // With a PulumiPlugin.yaml the installation would need npm, which the executable does not.
    else
      await writeArchive(
        file,
        inRoot("sdk/nodejs-plugin/plugin"),
        (name) => !["PulumiPlugin.yaml", "package.json", "run"].includes(name),
      );
    files.push(file);
  }
  return files;
}

/** The folder with the plugin's standalone executable for a platform and its archive. */
async function buildStandalone(platform, env) {
  const alive = `still building the plugin's executable for ${platform}`;
  const built = await quiet("node", [inRoot("tools/setup/standalone.mjs"), platform], { env, alive });
  if (built.code !== 0) throw new Stop(`${tail(built.output)}\nThe plugin's executable for ${platform} was not built.`);
  return built.stdout.trim().split("\n").at(-1);
}
