// Finds or installs a Pulumi CLI with a Node.js language host: from PATH, from the per-user cache, with Pulumi's own
// installer, or built from its Go modules. Returns the directory to put on PATH.
import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { withLock } from "../lib/lock.mjs";
import { bin, inRoot, isExecutable } from "../lib/paths.mjs";
import { quiet, say, Stop, tail } from "../lib/process.mjs";
import { userCache } from "./userCache.mjs";

const MINIMUM = [3, 200];
const INSTALL = "https://www.pulumi.com/docs/install/";
const NODE_HOST = "pulumi-language-nodejs";
const COMPANIONS = [NODE_HOST, "pulumi-resource-pulumi-nodejs"];
const HOSTS_MODULE = "github.com/pulumi/pulumi/sdk/v3";
const PYTHON_HOST = "pulumi-language-python";
const PYTHON_EXECUTOR = `python/cmd/${PYTHON_HOST}-exec`; // a script: `go install` leaves it in its module
const VERSION_VARIABLE = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version";

/**
 * Pulumi runs this as the provider of dynamic resources, in the project's directory: it uses the project's own
 * @pulumi/pulumi, wherever the project is. Pulumi's own script starts node twice.
 */
const DYNAMIC_PROVIDER = `#!/bin/sh
exec node -e 'process.argv.splice(1, 0, "pulumi"); require("@pulumi/pulumi/cmd/dynamic-provider")' -- "$@"
`;

/**
 * Starts the built language host for Python. The host accepts a project's virtual environment only as its own option, which
 * the CLI no longer passes on.
 */
const PYTHON_STARTER = `#!/bin/sh
venv=$(sed -n "s/^[^#]*virtualenv: *['\\"]\\{0,1\\}\\([^'\\"#,} ]*\\).*/\\1/p" Pulumi.yaml 2>/dev/null | head -n 1)
exec "$(dirname "$0")/${PYTHON_HOST}-built" -root="$PWD" -virtualenv="$venv" "$@"
`;

/**
 * Starts the built language host for Node.js. The host accepts as its own option, which the CLI no longer passes on, that a project
 * needs no compiler. Loading it takes a tenth of a second of each run.
 */
const NODE_STARTER = `#!/bin/sh
if grep -q "^[^#]*typescript: *false" Pulumi.yaml 2>/dev/null; then set -- -typescript=false "$@"; fi
exec "\${0%/*}/${NODE_HOST}-built" "$@"
`;

export async function findPulumi(env) {
  const named = process.env.PULUMI_MACHINES_PULUMI;
  if (named) {
    const dir = path.resolve(named);
    const { problem } = await examine(dir, env);
    if (problem) throw new Stop(`PULUMI_MACHINES_PULUMI is ${named}, but ${problem}.`);
    return dir;
  }
  const onPath = findOnPath("pulumi", env);
  if (onPath !== undefined) {
    const { problem } = await examine(onPath, env);
    if (!problem) return onPath;
    say(`Not using the pulumi in ${onPath}: ${problem}.`);
  }
  const source = readSource();
  const dir = path.join(userCache("The Pulumi CLI"), `pulumi-${source.version}-${source.hash}`);
  if (await isComplete(dir, env)) return path.join(dir, "bin");
  await withLock(`${dir}.lock`, "installing the Pulumi CLI", async () => {
    if (await isComplete(dir, env)) return; // another set-up was faster
    if (fs.existsSync(dir)) say(`The Pulumi CLI in ${dir} is incomplete or broken; doing it again.`);
    await bring(dir, source, env);
  });
  return path.join(dir, "bin");
}

/** The problem with the pulumi in this directory, or undefined. */
async function examine(dir, env) {
  const pulumi = path.join(dir, "pulumi");
  if (!isExecutable(pulumi)) return { problem: `there is no pulumi in ${dir}` };
  const { code, stdout, output } = await quiet(pulumi, ["version"], {
    env: { ...env, PULUMI_SKIP_UPDATE_CHECK: "true" },
    timeout: 120_000, // a shorter timeout would fail on a busy computer, and another pulumi would be installed
  });
  const version = /^v?(\d+)\.(\d+)\.\S+/.exec(stdout.trim());
  if (code !== 0 || version === null)
    return { problem: `\`pulumi version\` fails there: ${output.trim().split("\n").at(-1)}` };
  const [major, minor] = [Number(version[1]), Number(version[2])];
  if (major < MINIMUM[0] || (major === MINIMUM[0] && minor < MINIMUM[1]))
    return { problem: `it is too old (${version[0]}; ${MINIMUM.join(".")} or newer is needed)` };
  const beside = [dir, path.dirname(fs.realpathSync(pulumi))];
  const missing = COMPANIONS.find(
    (name) => !beside.some((at) => isExecutable(path.join(at, name))) && !findOnPath(name, env),
  );
  return missing ? { problem: `${missing}, which runs Node.js programs, is neither beside it nor on PATH` } : {};
}

const STAMP = "stamp.json"; // written last: without it, the installation was interrupted

async function isComplete(dir, env) {
  try {
    const sizes = JSON.parse(fs.readFileSync(path.join(dir, STAMP), "utf8"));
    const same = Object.entries(sizes).every(([name, size]) => fs.statSync(path.join(dir, "bin", name)).size === size);
    if (same && !(await examine(path.join(dir, "bin"), env)).problem) return true;
  } catch {
    // missing or incomplete
  }
  return false;
}

/** Creates everything in a temporary directory, then moves it into place, so that it is never incomplete. */
async function bring(dir, source, env) {
  const parent = path.dirname(dir);
  const prefix = `${path.basename(dir)}.tmp-`;
  for (const name of fs.readdirSync(parent)) if (name.startsWith(prefix)) remove(path.join(parent, name)); // of an interrupted run
  const temporary = fs.mkdtempSync(path.join(parent, prefix));
  try {
    fs.mkdirSync(path.join(temporary, "bin"));
    if (!(await download(temporary, source, env))) await goBuild(path.join(temporary, "bin"), source, env);
    const { problem } = await examine(path.join(temporary, "bin"), env);
    if (problem) throw new Stop(`The Pulumi CLI was installed, but ${problem}. Install Pulumi yourself: ${INSTALL}`);
    const names = fs.readdirSync(path.join(temporary, "bin"));
    const sizes = Object.fromEntries(names.map((name) => [name, fs.statSync(path.join(temporary, "bin", name)).size]));
    fs.writeFileSync(path.join(temporary, STAMP), JSON.stringify(sizes));
    remove(dir);
    fs.renameSync(temporary, dir);
    say(`Pulumi ${source.version} is ready in ${dir}.`);
  } finally {
    remove(temporary);
  }
}

/** Pulumi's own installer; false if its site cannot be reached. */
async function download(dir, { version }, env) {
  try {
    const answer = await fetch("https://get.pulumi.com/install.sh", {
      method: "HEAD",
      signal: AbortSignal.timeout(5_000),
    });
    if (!answer.ok) return false;
  } catch {
    return false;
  }
  say(`Installing Pulumi ${version} …`);
  const script = `
    const { PulumiCommand } = require("@pulumi/pulumi/automation");
    const { SemVer } = require("semver");
    PulumiCommand.install({ root: process.argv[1], version: new SemVer(process.argv[2]), skipVersionCheck: true })
      .catch((error) => { console.error(error.message); process.exit(1); });`;
  const { code } = await quiet("node", ["-e", script, "--", dir, version], {
    cwd: inRoot("."),
    env: { ...env, PULUMI_SKIP_UPDATE_CHECK: "true" },
    timeout: 300_000,
    alive: "still installing Pulumi",
  });
  if (code === 0) return true;
  fs.rmSync(path.join(dir, "bin"), { recursive: true, force: true });
  fs.mkdirSync(path.join(dir, "bin"));
  return false;
}

async function goBuild(target, { version, needsGo }, env) {
  const go = await quiet("go", ["version"], { env });
  const [, major, minor] = /go(\d+)\.(\d+)/.exec(go.stdout) ?? [];
  // From 1.21 on, go downloads the toolchain that a module requires.
  if (major === undefined || (Number(major) === 1 && Number(minor) < 21)) {
    const why =
      major === undefined
        ? "there is neither a usable pulumi nor Go"
        : `there is no usable pulumi, and ${go.stdout.trim()} is too old to build it`;
    throw new Stop(
      `The Pulumi CLI is needed, but ${why} on this machine. Install Pulumi (${INSTALL}) or Go ${needsGo} or newer (https://go.dev/dl/), then try again.`,
    );
  }
  say(`Building the Pulumi CLI ${version} from its Go modules; this takes some minutes, once …`);
  await goInstall("cli", "the Pulumi CLI", ["-ldflags", `-s -w -X ${VERSION_VARIABLE}=${version}`]);
  await goInstall("language-hosts", "its language hosts", ["-ldflags", "-s -w"]);
  const hosts = await goIn("language-hosts", ["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", HOSTS_MODULE]);
  if (hosts.code !== 0) throw new Stop(`${tail(hosts.output)}\nThe Go module of the language hosts was not found.`);
  const executor = fs.readFileSync(path.join(hosts.stdout.trim(), PYTHON_EXECUTOR));
  for (const host of [NODE_HOST, PYTHON_HOST])
    fs.renameSync(path.join(target, host), path.join(target, `${host}-built`));
  const scripts = {
    [NODE_HOST]: NODE_STARTER,
    [PYTHON_HOST]: PYTHON_STARTER,
    [path.basename(PYTHON_EXECUTOR)]: executor,
    "pulumi-resource-pulumi-nodejs": DYNAMIC_PROVIDER,
  };
  for (const [name, text] of Object.entries(scripts)) fs.writeFileSync(path.join(target, name), text, { mode: 0o755 });

  function goIn(module, args, options) {
    // The user's other Go settings must not apply: workspaces, other platforms, vendoring; and without cgo, no C compiler
    // is needed.
    const { GOOS: _os, GOARCH: _arch, ...rest } = env;
    const settings = { GOBIN: target, GOWORK: "off", GO111MODULE: "on", CGO_ENABLED: "0" };
    return quiet("go", args, { cwd: inRoot("tools/pulumi", module), env: { ...rest, ...settings }, ...options });
  }

  async function goInstall(module, what, flags) {
    const { code, output } = await goIn(module, ["install", "-v", "-mod=readonly", ...flags, "tool"], {
      alive: (soFar) => {
        const packages = soFar.split("\n").filter((line) => isPackage(line)).length;
        return packages === 0
          ? `still fetching the modules of ${what}`
          : `still building ${what}: ${packages} packages compiled`;
      },
    });
    if (code === 0) return;
    const messages = output.split("\n").filter((line) => !isPackage(line) && !line.startsWith("go: downloading "));
    const offline =
      /dial tcp|no such host|i\/o timeout|connection refused|TLS handshake|proxyconnect|unreachable|EOF/.test(output);
    throw new Stop(
      `${tail(messages.join("\n"))}\nBuilding ${what} failed. ` +
        (offline
          ? `The Go modules could not be downloaded: check the network and GOPROXY, or install Pulumi yourself: ${INSTALL}`
          : `Install Pulumi yourself (${INSTALL}) and try again.`),
    );
  }
}

const isPackage = (line) => line !== "" && !line.includes(" "); // the lines that `go install -v` prints

/** The built version, the Go it requires, and a unique name for this build. */
function readSource() {
  const hash = createHash("sha256").update(
    `${os.platform()} ${os.arch()}\n${DYNAMIC_PROVIDER}${NODE_STARTER}${PYTHON_STARTER}`,
  );
  const files = ["cli/go.mod", "cli/go.sum", "language-hosts/go.mod", "language-hosts/go.sum"];
  const [cli] = files.map((name) => {
    const text = fs.readFileSync(inRoot("tools/pulumi", name), "utf8");
    hash.update(text);
    return text;
  });
  const version = /github\.com\/pulumi\/pulumi\/pkg\/v3 (v\S+)/.exec(cli)?.[1];
  const needsGo = /^go (\S+)$/m.exec(cli)?.[1];
  if (version === undefined || needsGo === undefined)
    throw new Stop("tools/pulumi/cli/go.mod does not name a version of Pulumi and Go.");
  return { version, needsGo, hash: hash.digest("hex").slice(0, 12) };
}

function findOnPath(name, env) {
  return env.PATH.split(path.delimiter).find((dir) => dir !== bin && isExecutable(path.join(dir, name)));
}

const remove = (dir) => fs.rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
