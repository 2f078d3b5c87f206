// Finds a container engine for the tests, or brings one: on Debian as root, a private daemon in a folder of its own.
import { quiet } from "../lib/process.mjs";
import { answers, createDaemon } from "./daemon.mjs";
import { installPackages, isDebian } from "./debian.mjs";

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
  if (!isDebian()) return "Docker is not installed";
  return installPackages(["docker.io", "iptables", "iproute2"], env);
}

/** A daemon of this run alone. */
async function ownEngine() {
  const daemon = createDaemon({ firewall: true });
  const reason = await daemon.start();
  if (reason === undefined) return { host: daemon.host, stop: () => daemon.remove() };
  await daemon.remove();
  return { reason };
}
