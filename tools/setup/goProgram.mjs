// Builds programs from Go modules in tools/, each once into the per-user cache.
import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { withLock } from "../lib/lock.mjs";
import { inRoot } from "../lib/paths.mjs";
import { quiet, say, Stop, tail } from "../lib/process.mjs";
import { userCache } from "./userCache.mjs";

/**
 * A program built from a module; or the reason why there is none: Go is optional.
 * @param {{
 *   name: string,
 *   what: string,
 *   source: string,
 *   package?: string,
 *   prepare?: (folder: string, go: (...args: string[]) => Promise<string>) => Promise<string[]>,
 * }} wanted The program's file, its description, the module's folder, and the package, which is the module's own if none is given.
 * `prepare` can write what the build needs into a folder, and returns more arguments of the build.
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<{ program: string, reason?: undefined } | { program?: undefined, reason: string }>}
 */
export async function goProgram(wanted, env) {
  const dir = path.join(userCache(wanted.what), `${wanted.name}-${sourceHash(wanted.source)}`);
  const program = path.join(dir, wanted.name);
  if (fs.existsSync(program)) return { program };
  const problem = await goProblem(env);
  if (problem !== undefined) return { reason: problem };
  return withLock(`${dir}.lock`, `building ${wanted.what}`, async () => {
    if (fs.existsSync(program)) return { program }; // another set-up was faster
    const reason = await build(wanted, dir, env);
    return reason === undefined ? { program } : { reason };
  });
}

/**
 * Programs by their names, each built from a module; or the reason why there are none.
 * @param {Record<string, Omit<Parameters<typeof goProgram>[0], "name" | "what">>} wanted
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<{ found: Record<string, string>, reason?: undefined } | { found?: undefined, reason: string }>}
 */
export async function goPrograms(wanted, env) {
  const found = {};
  // One after the other: each build may use all cores and gigabytes of memory.
  for (const [name, of] of Object.entries(wanted)) {
    const { program, reason } = await goProgram({ name, what: name, ...of }, env);
    if (program === undefined) return { reason };
    found[name] = program;
  }
  return { found };
}

/** Generates the SDKs for Python, Go and the plugin. */
export const sdkGenerator = (env) =>
  goProgram({ name: "sdk-generator", what: "the generator of the SDKs", source: "tools/pulumi/sdk-generator" }, env);

/** Why Go cannot be used, or undefined. */
export async function goProblem(env) {
  const { stdout } = await quiet("go", ["version"], { env });
  const [, major, minor] = /go(\d+)\.(\d+)/.exec(stdout) ?? [];
  // From 1.21 on, go downloads the toolchain that a module requires.
  if (Number(major) > 1 || Number(minor) >= 21) return undefined;
  return `it needs Go 1.21 or newer (https://go.dev/dl/)${major === undefined ? "" : `; this is ${stdout.trim()}`}`;
}

/** The user's other Go settings must not apply; and without cgo, no C compiler is needed. */
export function goEnvironment({ GOOS: _os, GOARCH: _arch, GOFLAGS: _flags, ...env }) {
  return { ...env, GOWORK: "off", GO111MODULE: "on", CGO_ENABLED: "0" };
}

/** Whether a program's output shows that the network failed. */
export const isOffline = (output) =>
  /dial tcp|no such host|i\/o timeout|connection refused|TLS handshake|proxyconnect|unreachable|EOF|GOPROXY=off|reading https?:/.test(
    output,
  );

/** Builds in a temporary directory, then moves it into place. Returns the reason if that fails. */
async function build({ name, what, source, package: of = ".", prepare }, dir, env) {
  const prefix = `${dir}.tmp-`;
  for (const file of fs.readdirSync(path.dirname(dir)))
    if (file.startsWith(path.basename(prefix))) remove(path.join(path.dirname(dir), file)); // of an interrupted run
  const temporary = fs.mkdtempSync(prefix);
  const prepared = fs.mkdtempSync(prefix);
  const go = async (...args) => {
    const options = { cwd: inRoot(source), env: goEnvironment(env), alive: `still building ${what}` };
    const { code, output, stdout } = await quiet("go", args, options);
    if (code === 0) return stdout;
    throw isOffline(output) ? new Offline() : new Stop(`${tail(output)}\nBuilding ${what} (${source}) failed.`);
  };
  say(`Building ${what} from its Go modules; this takes some minutes, once …`);
  try {
    const more = (await prepare?.(prepared, go)) ?? [];
    await go("build", "-mod=readonly", ...more, "-ldflags", "-s -w", "-o", path.join(temporary, name), of);
    remove(dir);
    fs.renameSync(temporary, dir);
    return undefined;
  } catch (error) {
    if (error instanceof Offline) return "its Go modules cannot be downloaded: check the network and GOPROXY";
    throw error;
  } finally {
    remove(temporary);
    remove(prepared);
  }
}

/** The network failed. */
class Offline extends Error {}

/** A unique name for this build. */
function sourceHash(source) {
  const hash = createHash("sha256").update(`${os.platform()} ${os.arch()}\n`);
  for (const name of fs.readdirSync(inRoot(source)).toSorted())
    if (/^go\.(mod|sum)$|\.go$/.test(name)) hash.update(fs.readFileSync(inRoot(source, name)));
  return hash.digest("hex").slice(0, 12);
}

const remove = (dir) => fs.rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
