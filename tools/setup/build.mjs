// Compiles the SDKs and the service and bundles the provider, when their sources changed since the last build.
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { forCompilers } from "../lib/environment.mjs";
import { withLock } from "../lib/lock.mjs";
import { cache, inRoot, state, tsc } from "../lib/paths.mjs";
import { quiet, say, Stop, tail } from "../lib/process.mjs";
import { writeDocs } from "./docs.mjs";

const SOURCES = ["api", "provider", "cli", "sdk/nodejs", "sdk/nodejs-plugin", "service", "policy"];
const PROJECTS = ["sdk/nodejs", "sdk/nodejs-plugin", "service", "policy"];
const OUTPUTS = new Set(["dist", "node_modules"]);
const PLUGIN = "provider/dist/main.js";
const MARKER = path.join(cache, "build");

export async function build(env, { force = false } = {}) {
  const before = fingerprint();
  if (!force && isBuilt(before)) return writeDocs();
  await withLock(path.join(state, "setup.lock"), "setting up this clone", async () => {
    const hash = fingerprint();
    if (!force && isBuilt(hash)) return;
    say("Building …");
    fs.rmSync(MARKER, { force: true });
    const started = Date.now();
    const results = await Promise.all(PROJECTS.map((project) => compile(project, env)));
    if (results.every(({ code }) => code === 0)) results.push(await bundle(env));
    const failures = results.filter(({ code }) => code !== 0);
    if (failures.length > 0)
      throw new Stop(`${failures.map(({ output }) => tail(output, 60)).join("\n")}\nThe build failed.`);
    for (const project of PROJECTS) removeOlder(inRoot(project, "dist"), started);
    writeDocs();
    fs.mkdirSync(cache, { recursive: true });
    fs.writeFileSync(MARKER, hash);
    say(`Built in ${((Date.now() - started) / 1000).toFixed(1)} s.`);
  });
}

const compile = (project, env) =>
  quiet("node", [tsc, "-p", path.join(project, "tsconfig.json")], {
    cwd: inRoot("."),
    env: forCompilers(env),
    alive: `still compiling ${project}`,
  });

const bundle = (env) => quiet("node", [inRoot("tools/setup/bundle.mjs")], { cwd: inRoot("."), env });

const isBuilt = (hash) =>
  [...PROJECTS.map((project) => `${project}/dist`), PLUGIN].every((at) => fs.existsSync(inRoot(at))) &&
  fs.existsSync(MARKER) &&
  fs.readFileSync(MARKER, "utf8") === hash;

/** By content, not times, so that switching branches back and forth builds nothing. */
function fingerprint() {
  const hash = createHash("sha256");
  const add = (file) =>
    hash
      .update(`${file}\0`)
      .update(fs.readFileSync(inRoot(file)))
      .update("\0");
  for (const file of [
    "package-lock.json",
    "pulumi-resource-machines",
    "tools/setup/bundle.mjs",
    "tools/setup/bundlePlugin.mjs",
    "tools/setup/bundleConsole.mjs",
    ...fs.readdirSync(inRoot(".")).filter((name) => /^tsconfig.*\.json$/.test(name)),
  ])
    add(file);
  const walk = (dir) => {
    if (!fs.existsSync(inRoot(dir))) return;
    for (const entry of fs
      .readdirSync(inRoot(dir), { withFileTypes: true })
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const at = path.join(dir, entry.name);
      if (entry.isDirectory() && !OUTPUTS.has(entry.name) && at !== "sdk/nodejs-plugin/plugin") walk(at);
      if (entry.isFile() && /\.(tsx?|css|svg|json)$/.test(entry.name)) add(at);
    }
  };
  for (const dir of SOURCES) walk(dir);
  return hash.digest("hex");
}

/** Files that only an earlier build wrote come from removed sources; they must not be published. */
function removeOlder(dir, time) {
  for (const entry of fs.readdirSync(dir, { withFileTypes: true, recursive: true })) {
    const file = path.join(entry.parentPath ?? entry.path, entry.name);
    if (entry.isFile() && fs.statSync(file).mtimeMs < time - 1_000) fs.rmSync(file);
  }
}
