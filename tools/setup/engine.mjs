// Finds a container engine for the tests, or brings one: on Debian as root, a private daemon in a folder of its own.
import fs from "node:fs";
import { quiet, tail } from "../lib/process.mjs";
import { answers, createDaemon } from "./daemon.mjs";

/**
 * An engine: the address for DOCKER_HOST, and a function that ends what was started for it. If there is none, `reason` says why.
 */
export async function provideEngine(env = process.env) {
  const given = env.DOCKER_HOST || "unix:///var/run/docker.sock";
  if (await answers(given)) return { host: given, stop: async () => {} };
  if (env.DOCKER_HOST) return { reason: `no engine answers at ${given}` };
  if (process.platform !== "linux" || process.getuid?.() !== 0) return { reason: "Docker is not running" };
  const missing = await install(env);
  return missing === undefined ? ownEngine() : { reason: missing };
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
    for (const args of [
      ["update"],
      ["install", "-y", "--no-install-recommends", "docker.io", "iptables", "iproute2"],
    ]) {
      const done = await quiet("apt-get", args, options);
      output = done.output;
      if (args[0] === "install" && done.code !== 0) return `docker.io could not be installed:\n${tail(output, 5)}`;
    }
    return undefined;
  } finally {
    if (isOurs) fs.rmSync(policy);
  }
}

/** A daemon of this run alone. */
async function ownEngine() {
  const daemon = createDaemon({ firewall: true });
  const reason = await daemon.start();
  if (reason === undefined) return { host: daemon.host, stop: () => daemon.remove() };
  await daemon.remove();
  return { reason };
}
