// A virtual environment with the packages for Python programs, once in the per-user cache.
import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { withLock } from "../lib/lock.mjs";
import { inRoot } from "../lib/paths.mjs";
import { quiet, say, Stop, tail } from "../lib/process.mjs";
import { userCache } from "./userCache.mjs";

const REQUIREMENTS = inRoot("tools/python/requirements.txt");
const MINIMUM = [3, 10]; // the minimum for the pulumi of the requirements
const STAMP = "complete"; // written last: without it, the installation was interrupted

/**
 * The directory of the environment, its programs in `bin`; or the reason why there is none: Python is optional.
 * @returns {Promise<{ dir: string, reason?: undefined } | { dir?: undefined, reason: string }>}
 */
export async function pythonEnvironment(env, requirements = REQUIREMENTS) {
  const { python, version, reason } = await findPython(env);
  if (python === undefined) return { reason };
  const hash = createHash("sha256").update(`${os.platform()} ${os.arch()} ${python} ${version}\n`);
  hash.update(fs.readFileSync(requirements));
  const dir = path.join(userCache("Python's environment"), `python-${hash.digest("hex").slice(0, 12)}`);
  if (isComplete(dir)) return { dir };
  return withLock(`${dir}.lock`, "setting up Python's environment", async () => {
    if (isComplete(dir)) return { dir }; // another set-up was faster
    const problem = await make(dir, python, env, requirements);
    return problem === undefined ? { dir } : { reason: problem };
  });
}

/** The environment for its programs. */
export function inPythonEnvironment(dir, { PYTHONHOME: _home, PYTHONPATH: _path, ...env }) {
  return { ...env, VIRTUAL_ENV: dir, PATH: [path.join(dir, "bin"), env.PATH].join(path.delimiter) };
}

/** The Python of the environment may also be gone: the environment only links to it. */
const isComplete = (dir) => fs.existsSync(path.join(dir, STAMP)) && fs.existsSync(path.join(dir, "bin/python"));

async function findPython(env) {
  const wanted = `Python ${MINIMUM.join(".")} or newer with venv (https://www.python.org/downloads/)`;
  // On some systems venv is a separate package, and then ensurepip is missing.
  const script = "import ensurepip, sys, venv; print(sys.executable); print('.'.join(map(str, sys.version_info[:3])))";
  let reason = `it needs ${wanted}`;
  for (const name of ["python3", "python"]) {
    const { code, stdout } = await quiet(name, ["-c", script], { env, timeout: 120_000 });
    const [python, version = ""] = stdout.trim().split("\n");
    const [major, minor] = version.split(".").map(Number);
    if (code !== 0) continue;
    if (major > MINIMUM[0] || (major === MINIMUM[0] && minor >= MINIMUM[1])) return { python, version };
    reason = `it needs ${wanted}; ${name} is ${version}`;
  }
  return { reason };
}

/** Created in its final place, because the programs of an environment contain its path. Returns the reason if it fails. */
async function make(dir, python, env, requirements) {
  const clean = inPythonEnvironment(dir, env);
  fs.rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  say("Installing Python packages into an environment of our own …");
  const run = (command, args) =>
    quiet(command, args, { env: clean, alive: "still installing Python packages", cwd: inRoot(".") });
  const made = await run(python, ["-m", "venv", dir]);
  if (made.code !== 0) throw new Stop(`${tail(made.output)}\nPython's environment could not be made in ${dir}.`);
  const flags = ["--quiet", "--disable-pip-version-check", "--no-input"];
  const { code, output } = await run(path.join(dir, "bin/python"), [
    "-m",
    "pip",
    "install",
    ...flags,
    "-r",
    requirements,
  ]);
  if (
    code !== 0 &&
    /NewConnectionError|ConnectTimeout|ReadTimeout|NameResolution|ProxyError|SSLError|from versions: none/.test(output)
  )
    return "its packages cannot be downloaded: check the network and pip's settings";
  if (code !== 0)
    throw new Stop(
      `${tail(output)}\nThe packages of ${path.relative(inRoot("."), requirements)} could not be installed.`,
    );
  fs.writeFileSync(path.join(dir, STAMP), "");
  return undefined;
}
