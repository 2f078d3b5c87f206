// npm dependencies: runs `npm ci` unless node_modules matches package-lock.json.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { withLock } from "../lib/lock.mjs";
import { bin, inRoot, state } from "../lib/paths.mjs";
import { quiet, say, Stop, tail } from "../lib/process.mjs";

const NODE = 22; // required by @pulumi/pulumi and most other packages here; npm's `node` package provides it

export async function installDependencies() {
  if (!isInstalled())
    await withLock(path.join(state, "setup.lock"), "setting up this clone", async () => {
      if (!isInstalled()) await install();
    });
  const version = nodeVersion();
  if (Number.parseInt(version, 10) >= NODE || Number.parseInt(process.versions.node, 10) >= NODE) return;
  throw new Stop(
    `Node.js ${NODE} or newer is needed; this is ${process.version}, and the one npm should have put into node_modules/.bin is ` +
      `${version === "" ? "missing or does not start" : version}. Allow npm's install scripts (ignore-scripts=false), ` +
      "remove node_modules and try again, or install Node.js from https://nodejs.org/.",
  );
}

async function install() {
  const lock = readJson(inRoot("package-lock.json"));
  for (const dir of workspaces(lock)) {
    const wants = dependenciesOf(readJson(inRoot(dir, "package.json")));
    if (!isDeepStrictEqual(wants, dependenciesOf(lock.packages[dir])))
      throw new Stop(
        `${path.join(dir, "package.json")} asks for other packages than package-lock.json records; run \`npm install\`.`,
      );
  }
  say("Installing npm dependencies (npm ci) …");
  const { command, args } = npm();
  const flags = ["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
  const { code, output } = await quiet(command, [...args, ...flags], {
    cwd: inRoot("."),
    // npm must not run on a node that it is about to replace.
    env: { ...withoutOurBin(), PULUMI_MACHINES_SETUP: "1" },
    alive: "still installing npm dependencies",
  });
  if (code === 0) return;
  const offline = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|network/.test(output);
  throw new Stop(
    `${tail(output)}\nnpm could not install the dependencies. ` +
      (offline
        ? "Is the npm registry reachable from here (network, proxy)? Try again when it is."
        : "What npm said is above."),
  );
}

/**
 * npm writes node_modules/.package-lock.json only when an installation is complete; this is compared with
 * package-lock.json. Only the second has packages for other platforms.
 */
function isInstalled() {
  try {
    const wanted = readJson(inRoot("package-lock.json"));
    const installed = readJson(inRoot("node_modules/.package-lock.json")).packages;
    for (const dir of workspaces(wanted))
      if (
        !isDeepStrictEqual(dependenciesOf(readJson(inRoot(dir, "package.json"))), dependenciesOf(wanted.packages[dir]))
      )
        return false;
    const same = Object.entries(wanted.packages).every(([at, { version, integrity, optional, resolved, link }]) => {
      if (!at.includes("node_modules/")) return true;
      const found = installed[at];
      if (found === undefined) return optional === true;
      return link
        ? found.resolved === resolved
        : found.version === version && (integrity ?? found.integrity) === found.integrity;
    });
    return same && Object.keys(installed).every((at) => at in wanted.packages && fs.existsSync(inRoot(at)));
  } catch {
    return false;
  }
}

const readJson = (file) => JSON.parse(fs.readFileSync(file, "utf8"));

const workspaces = (lock) => Object.keys(lock.packages).filter((at) => !at.includes("node_modules/"));

const dependenciesOf = ({ dependencies, devDependencies, optionalDependencies, peerDependencies }) => ({
  dependencies,
  devDependencies,
  optionalDependencies,
  peerDependencies,
});

/** The npm that runs us, with its node; otherwise the one on PATH. */
function npm() {
  const script = process.env.npm_execpath ?? "";
  if (path.basename(script) !== "npm-cli.js") return { command: "npm", args: [] };
  return { command: process.env.npm_node_execpath ?? process.execPath, args: [script] };
}

function withoutOurBin() {
  const dirs = (process.env.PATH ?? "").split(path.delimiter).filter((dir) => dir !== bin);
  return { ...process.env, PATH: dirs.join(path.delimiter) };
}

function nodeVersion() {
  const node = path.join(bin, "node");
  try {
    if (fs.realpathSync(node) === fs.realpathSync(process.execPath)) return process.versions.node;
    return execFileSync(node, ["--version"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })
      .slice(1)
      .trim();
  } catch {
    return "";
  }
}
