// npm run demo [-- preview|up|refresh|destroy|stop] [--runtime docker] [options of Pulumi]: examples/quickstart on the real Pulumi CLI, with a
// Machines Control Service on this machine. All its data is in .machines/; your own Pulumi login is not changed. It can be interrupted at
// any time: the next run continues.
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { withoutPulumi } from "./lib/environment.mjs";
import { commands, readArguments } from "./lib/demoArguments.mjs";
import { consoleHint, demoFor, hintAfterFailure, hintsAfter, isUnchanged } from "./lib/demoHints.mjs";
import { isAlive, tryLock } from "./lib/lock.mjs";
import { inRoot, serviceMain, state } from "./lib/paths.mjs";
import { foreground, heartbeat, main, quiet, say, Stop, tail } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

const STACK = "dev";
const example = inRoot("examples/quickstart");
const { command, runtime, options, problem } = readArguments(process.argv.slice(2));
// Each runtime has a service and a stack of its own.
const own = runtime === "simulated" ? state : path.join(state, runtime);
const data = path.join(own, "service");
const backend = path.join(own, "pulumi");
// The CLI writes a stack's settings beside the Pulumi.yaml; in a separate directory the example stays unchanged.
const project = path.join(own, "project");
const settings = path.join(project, `Pulumi.${STACK}.yaml`);
const events = path.join(state, "events.jsonl");

/** The command that runs one of the demo's service. Without the folder, it would look at the user's own service. */
const ofService = (word) => `npm run -s service -- ${word} --data ${path.relative(process.cwd(), data)}`;

await main(async () => {
  if (problem !== undefined) throw new Stop(problem);
  const started = Date.now();
  const prepared = await setup({ pulumi: command !== "stop" });
  const env = withoutPulumi(prepared.env);
  // The pages of the service name the command as it is called in this clone.
  env.MACHINES_SERVICE_COMMAND = "npm run -s service --";
  if (command === "stop") return foreground("node", [serviceMain, "stop", "--data", data], { env });

  const image = runtime === "docker" ? await (await import("./setup/demoImage.mjs")).demoImage(env) : undefined;
  const lock = tryLock(path.join(own, "demo.lock"));
  if (lock.owner !== undefined)
    throw new Stop(`Another npm run demo is at work here (process ${lock.owner}); try again when it has ended.`);
  const service = await startService(env);
  const pulumi = await preparePulumi(env, service, image);
  say("");
  fs.rmSync(events, { force: true });
  const args = [...commands[command], ...options, "--stack", STACK, "--config-file", settings, "--event-log", events];
  // The CLI has the option for the log only with this variable.
  const code = await foreground("pulumi", args, { cwd: example, env: { ...pulumi, PULUMI_DEBUG_COMMANDS: "true" } });
  const unchanged = isUnchanged(readText(events) ?? "");
  fs.rmSync(events, { force: true });
  if (code !== 0) {
    say(hintAfterFailure(command, code, demoFor(runtime)));
    return code;
  }
  if (command === "up") {
    await forgetInterruptions(pulumi);
    say("");
    await foreground("pulumi", ["stack", "output", "--stack", STACK], { cwd: project, env: pulumi });
  }
  if (command === "up" && runtime === "docker") await showAddresses(env, pulumi);
  say(
    `\nThe service is at ${service.url} (process ${service.pid}). Done in ${Math.round((Date.now() - started) / 1000)} s.\nIts operations, with examples: ${service.docs}`,
  );
  say(hintsAfter(command, unchanged, ofService, demoFor(runtime)));
  const opened = await quiet("node", [serviceMain, "console", "--json", "--data", data], { env });
  say(opened.code === 0 ? consoleHint(JSON.parse(opened.stdout).url, ofService) : tail(opened.output));
  return 0;
});

/** Prints where the App can be opened. */
async function showAddresses(env, pulumi) {
  const { stdout } = await quiet("pulumi", ["stack", "output", "--stack", STACK, "appName"], {
    cwd: project,
    env: pulumi,
  });
  const urls = await quiet("node", [serviceMain, "url", stdout.trim(), "--data", data], { env });
  say(`\nOpen it:\n${urls.output.trim()}`);
}

/** The service in the background, at its previous address, and a valid token. */
async function startService(env) {
  const call = (...args) =>
    quiet("node", [serviceMain, ...args, "--data", data], {
      env,
      timeout: 60_000,
      alive: "still starting the service",
    });
  const attempt = async () => {
    const service = await start(call);
    const token = await call("token");
    const found = { ...service, token: token.stdout.trim() };
    if (service.problem) return { problem: service.problem };
    if (token.code !== 0) return { problem: token.output };
    return (await acceptsToken(found))
      ? found
      : { problem: `The service at ${service.url} does not take its own token.` };
  };
  let service = await attempt();
  if (service.problem) {
    // It runs but does not work, or its token was lost or damaged: a restart creates a new one.
    say("Starting the service anew …");
    await call("stop");
    service = await attempt();
  }
  if (service.problem)
    throw new Stop(`${tail(service.problem)}\nThe service did not start. It keeps its data in ${data}.`);
  return service;
}

async function start(call) {
  const file = path.join(own, "service-address"); // another address would change the stack
  const before = readText(file);
  const at = (listen) => call("start", "--detach", "--listen", listen, "--runtime", runtime, "--json");
  let result = await at(before ?? "127.0.0.1:0");
  if (result.code !== 0 && before !== undefined) result = await at("127.0.0.1:0");
  try {
    const { url, pid, docs } = JSON.parse(result.stdout);
    writeText(file, new URL(url).host);
    return { url, pid, docs };
  } catch {
    return { problem: result.output };
  }
}

async function acceptsToken({ url, token }) {
  try {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${url}/v1/platform/regions`, { headers, signal: AbortSignal.timeout(10_000) })).ok;
  } catch {
    return false;
  }
}

/** Creates the stack and configures the service. Returns the environment for Pulumi. */
async function preparePulumi(env, { url, token }, image) {
  fs.mkdirSync(backend, { recursive: true });
  fs.mkdirSync(project, { recursive: true });
  const pulumi = {
    ...env,
    // Without `.attrs` files: a killed run can leave one empty, and no command reads the stack then.
    PULUMI_BACKEND_URL: `file://${backend.replace(/[%?#]/g, encodeURIComponent)}?metadata=skip`,
    PULUMI_HOME: path.join(state, "pulumi-home"),
    PULUMI_CONFIG_PASSPHRASE: passphrase(),
    PULUMI_SKIP_UPDATE_CHECK: "true",
    PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true", // nothing to download: the provider is in the npm package
  };
  const run = async (args, options = {}) => {
    const { code, output } = await quiet("pulumi", args, { cwd: project, env: pulumi, ...options });
    if (code !== 0) throw new Stop(`${tail(output)}\npulumi ${args.slice(0, 2).join(" ")} failed.`);
  };

  writeText(path.join(project, "Pulumi.yaml"), fs.readFileSync(path.join(example, "Pulumi.yaml"), "utf8"));
  await run(["stack", "select", "--create", STACK]);
  await unlock(run);
  // The settings show which address is set, but not which token: a file that only the user can read records it.
  const set = path.join(own, "token");
  if (!readText(settings)?.includes(`machines:endpoint: ${url}\n`))
    await run(["config", "set", "--stack", STACK, "machines:endpoint", url]);
  if (readText(set) !== token || !readText(settings)?.includes("machines:token:")) {
    await run(["config", "set", "--stack", STACK, "--secret", "machines:token"], { input: token }); // not an argument, because other users can see arguments
    writeText(set, token);
  }
  if (image !== undefined) await run(["config", "set", "--stack", STACK, "image", image]);
  return pulumi;
}

/** A killed pulumi leaves the stack locked. One that still runs is waited for. */
async function unlock(run) {
  const dir = path.join(backend, ".pulumi/locks");
  const holders = () =>
    (fs.existsSync(dir) ? fs.readdirSync(dir, { recursive: true, withFileTypes: true }) : [])
      .filter((entry) => entry.isFile() && entry.name.endsWith(".json"))
      .map((entry) => {
        try {
          return JSON.parse(fs.readFileSync(path.join(entry.parentPath ?? entry.path, entry.name), "utf8"));
        } catch {
          return {}; // incomplete because its process was killed, or just removed
        }
      });
  const running = () => holders().find(({ pid, hostname }) => pid > 0 && (hostname !== os.hostname() || isAlive(pid)));
  const first = running();
  if (first) {
    say(`Waiting for the pulumi of an earlier run (process ${first.pid}) …`);
    const end = heartbeat(() => `still waiting for process ${first.pid}`);
    for (let left = 240; left > 0 && running(); left--) await sleep(500);
    end();
    if (running())
      throw new Stop(
        `An earlier pulumi (process ${first.pid}) still works on this stack; try again when it has ended.`,
      );
  }
  if (holders().length === 0) return;
  say("Removing the lock of an interrupted run …");
  await run(["cancel", "--yes", "--stack", STACK]);
}

/** A killed create stays pending in the stack, with a warning on every run. A complete update settles it. */
async function forgetInterruptions(pulumi) {
  const { stdout } = await quiet("pulumi", ["stack", "export", "--stack", STACK], { cwd: project, env: pulumi });
  if (!/"pending_operations": \[/.test(stdout)) return;
  say("\nClearing the note of the interrupted run …");
  const args = [...commands.refresh, "--stack", STACK, "--config-file", settings];
  const { code, output } = await quiet("pulumi", args, { cwd: example, env: pulumi, alive: "still refreshing" });
  if (code !== 0) say(`${tail(output)}\npulumi refresh failed; ${demoFor(runtime)("refresh")} tries again.`);
}

/** The passphrase of the stack's secrets, created once for this clone. */
function passphrase() {
  const file = path.join(own, "passphrase");
  const found = readText(file);
  if (found) return found;
  if (fs.existsSync(settings) && /secure:|encryptionsalt:/.test(fs.readFileSync(settings, "utf8")))
    throw new Stop(
      `${file} is gone, and without it the demo's stack cannot be read. To start over: ${demoFor(runtime)("stop")}, then remove ${own}.`,
    );
  const made = randomBytes(24).toString("base64url");
  writeText(file, made);
  return made;
}

function readText(file) {
  try {
    return fs.readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** Writes a file completely or not at all, even if interrupted; only the user can read it. */
function writeText(file, text) {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(`${file}.new`, text, { mode: 0o600 });
  fs.renameSync(`${file}.new`, file);
}
