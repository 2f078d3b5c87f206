// npm run package [-- --release]: the published packages, as files to install from. The plugin's archive is the one for this
// computer; with --release, those of all platforms, which downloads their Node.js.
import fs from "node:fs";
import path from "node:path";
import { bin, inRoot } from "./lib/paths.mjs";
import { main, quiet, say, Stop, tail } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

/** The npm packages: their folders, and what they are for. */
const PACKAGES = {
  "sdk/nodejs": "for programs in TypeScript, without the plugin; also the command pulumi-machines",
  "sdk/nodejs-plugin": "for programs in TypeScript, with the plugin in it",
  service: "the service to run yourself; `machines:endpoint: local` needs it",
  policy: "the policy pack",
};
// An engine downloads the archive of its own platform, also for programs in languages that need no Node.js. So the archives
// for Linux have the standalone executable. Those for macOS have the script and need Node.js: macOS starts only signed
// executables, and no npm package signs one on another system.
const PLATFORMS = ["darwin-amd64", "darwin-arm64", "linux-amd64", "linux-arm64"];
const here = `${process.platform}-${process.arch === "arm64" ? "arm64" : "amd64"}`;
const { version } = JSON.parse(fs.readFileSync(inRoot("sdk/nodejs/package.json"), "utf8"));

/** A path as a word of a shell. */
const inShell = (file) => (/[^\w@%+=:,./-]/.test(file) ? `'${file.replaceAll("'", `'\\''`)}'` : file);

await main(async () => {
  const { env } = await setup();
  const target = inRoot("packages");
  say(`Writing the packages of version ${version} to ${target}; nothing is published.`);
  fs.rmSync(target, { recursive: true, force: true }); // remove older versions
  fs.mkdirSync(target, { recursive: true });
  const files = [];
  for (const [dir, purpose] of Object.entries(PACKAGES)) {
    const own = JSON.parse(fs.readFileSync(inRoot(dir, "package.json"), "utf8"));
    say(`  ${own.name}: ${purpose} …`);
    const license = inRoot(dir, "LICENSE"); // npm packs only the LICENSE beside package.json
    fs.copyFileSync(inRoot("LICENSE"), license);
    const packed = await quiet("npm", ["pack", "--json", "--loglevel=error", "--pack-destination", target], {
      cwd: inRoot(dir),
      env,
    });
    fs.rmSync(license, { force: true });
    if (packed.code !== 0) throw new Stop(`${packed.output.trim()}\nnpm pack failed in ${dir}.`);
    const file = path.join(target, `${own.name}-${own.version}.tgz`);
    if (!fs.existsSync(file)) throw new Stop(`npm pack did not write ${file}.`);
    const lint = await quiet(path.join(bin, "publint"), ["run", file, "--strict"], { cwd: inRoot(dir), env });
    if (lint.code !== 0) throw new Stop(`${lint.output.trim()}\n${own.name} is not fit to be published.`);
    files.push(file);
  }
  const platforms = process.argv.includes("--release") ? PLATFORMS : [here];
  const archives = [];
  for (const platform of platforms) {
    say(`  the plugin alone, for ${platform} …`);
    archives.push(await packPlugin(target, platform, env));
  }
  say("Written:");
  for (const file of [...files, ...archives]) console.log(file);
  const [sdk, plugin, service, policy] = files.map(inShell);
  say(`
What to do with them. In a TypeScript project of yours:
  npm install @pulumi/pulumi ${sdk} ${service}
or, on the plugin:
  npm install @pulumi/pulumi ${plugin} ${service}
the policies for it, for \`--policy-pack node_modules/pulumi-machines-policy/pulumi-analyzer-machines\`:
  npm install --save-dev ${policy}
The plugin alone, for programs in any language:
  pulumi plugin install resource machines ${version} --file ${inShell(archives.find((file) => file.includes(here)))}`);
});

/** An archive of a release, as `pulumi plugin install` takes it. */
async function packPlugin(target, platform, env) {
  const file = path.join(target, `pulumi-resource-machines-v${version}-${platform}.tar.gz`);
  if (platform.startsWith("linux-")) {
    fs.copyFileSync(path.join(await buildStandalone(platform, env), "plugin.tar.gz"), file);
    return file;
  }
  const from = inRoot("sdk/nodejs-plugin/plugin");
  // With a PulumiPlugin.yaml the installation would need npm, which the executable does not.
  const contents = fs.readdirSync(from).filter((name) => !["PulumiPlugin.yaml", "package.json", "run"].includes(name));
  const { code, output } = await quiet("tar", ["-czf", file, "-C", from, ...contents], { env });
  if (code !== 0) throw new Stop(`${output.trim()}\ntar failed.`);
  return file;
}

/** The folder with the plugin's standalone executable for a platform and its archive. */
async function buildStandalone(platform, env) {
  const alive = `still building the plugin's executable for ${platform}`;
  const built = await quiet("node", [inRoot("tools/setup/standalone.mjs"), platform], { env, alive });
  if (built.code !== 0) throw new Stop(`${tail(built.output)}\nThe plugin's executable for ${platform} was not built.`);
  return built.stdout.trim().split("\n").at(-1);
}
