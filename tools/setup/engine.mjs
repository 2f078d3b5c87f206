// Finds a container engine for the tests, or brings one: on Debian as root, a private daemon in a folder of its own.
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { quiet, tail } from "../lib/process.mjs";

const daemonStartsIn = 60_000;

/**
 * An engine: the address for DOCKER_HOST, and a function that ends what was started for it. If there is none, `reason` says why.
 */
export async function provideEngine(env = process.env) {
  const given = env.DOCKER_HOST || "unix:///var/run/docker.sock";
  if (await answers(given)) return { host: given, stop: async () => {} };
  if (env.DOCKER_HOST) return { reason: `no engine answers at ${given}` };
  if (process.platform !== "linux" || process.getuid?.() !== 0) return { reason: "Docker is not running" };
  const missing = await install(env);
  return missing === undefined ? startDaemon() : { reason: missing };
}

/** Whether an engine answers at an address. */
async function answers(host) {
  const socket = /^unix:\/\/(.+)$/.exec(host)?.[1];
  const args = socket === undefined ? [host.replace(/^tcp:/, "http:")] : ["--unix-socket", socket, "http://engine"];
  const { code } = await quiet("curl", ["-sf", "--max-time", "5", ...args.slice(0, -1), `${args.at(-1)}/_ping`]);
  return code === 0;
}

/** Installs Debian's docker.io if no daemon is installed. Returns why it could not. */
async function install(env) {
  if ((await quiet("dockerd", ["--version"])).code === 0) return undefined;
  if (!fs.existsSync("/etc/debian_version")) return "Docker is not installed";
  const options = { env: { ...env, DEBIAN_FRONTEND: "noninteractive" }, alive: "still installing docker.io" };
  // A service that the package starts would be the computer's, not this run's.
  const policy = "/usr/sbin/policy-rc.d";
  const isOurs = !fs.existsSync(policy);
  if (isOurs) fs.writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    let output = "";
    for (const args of [["update"], ["install", "-y", "--no-install-recommends", "docker.io", "iptables"]]) {
      const done = await quiet("apt-get", args, options);
      output = done.output;
      if (args[0] === "install" && done.code !== 0) return `docker.io could not be installed:\n${tail(output, 5)}`;
    }
    return undefined;
  } finally {
    if (isOurs) fs.rmSync(policy);
  }
}

/** Starts a daemon with its data in a temporary folder. */
async function startDaemon() {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "pulumi-machines-engine-"));
  const host = `unix://${dir}/docker.sock`;
  const log = fs.openSync(path.join(dir, "log"), "w");
  const args = ["--host", host, "--data-root", `${dir}/data`, "--exec-root", `${dir}/exec`, "--pidfile", `${dir}/pid`];
  const daemon = spawn("dockerd", [...args, ...addresses()], { stdio: ["ignore", log, log] });
  const ended = new Promise((resolve) => {
    for (const event of ["exit", "error"]) daemon.once(event, resolve);
  });
  const stop = async () => {
    daemon.kill("SIGTERM");
    await ended;
    fs.rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  };
  for (const until = Date.now() + daemonStartsIn; Date.now() < until && daemon.exitCode === null;) {
    if (await answers(host)) return { host, stop };
    await sleep(100);
  }
  const reason = `the engine did not start:\n${tail(fs.readFileSync(path.join(dir, "log"), "utf8"), 5)}`;
  await stop();
  return { reason };
}

/**
 * The daemon's addresses. Two daemons with the same ones would send packets to each other's containers, so these are in a range
 * of 10.0.0.0/8 that no interface has.
 */
function addresses() {
  const used = new Set(
    Object.values(os.networkInterfaces())
      .flat()
      .map(({ address }) => address.split(".", 2).join(".")),
  );
  const free = Array.from({ length: 256 }, (_, second) => `10.${second}`).filter((range) => !used.has(range));
  const range = free[Math.floor(Math.random() * free.length)];
  return ["--bip", `${range}.0.1/24`, "--default-address-pool", `base=${range}.128.0/17,size=24`];
}
