// A Docker daemon for tests, with its data in a temporary folder. It ends with the process that started it, however that ends.
import crypto from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startKeeper } from "../lib/keeper.mjs";
import { quiet } from "../lib/process.mjs";

const startsIn = 60_000;

/**
 * Runs the daemon as its input says. The input also ends when this process is killed; then nothing remains. The containerd of a
 * killed daemon ends a moment later; the next one would still count on it. That one also ends the containers which were left. A
 * daemon may mount its folder on itself, and leaves that mount when it is killed. It has a bridge of its own: with docker0, or with
 * none, it would change or remove docker0, which another daemon uses.
 */
const keeper = `
folder=$1 disk=$2 bridge=$3 address=$4 running= left=
shift 4
ip link add "$bridge" type bridge && ip address add "$address" dev "$bridge" && ip link set "$bridge" up || exit
mkdir "$folder/data"
[ "$disk" = 0 ] || mount -t tmpfs -o "size=$disk" tmpfs "$folder/data" || exit
while read -r asked; do
  case $asked in
    start) "$@" & running=$! left= ;;
    stop) kill "$running"; wait "$running"; running= ;;
    kill) kill -9 "$running"; wait "$running"; running= left=1
      while kill -0 "$(cat "$folder/exec/containerd/containerd.pid")"; do sleep 0.05; done ;;
  esac
done
[ "$running" ] && kill "$running" && wait "$running"
[ "$left" ] && timeout 20 "$@"
while umount -l "$folder/data"; do :; done
ip link delete "$bridge"
rm -rf "$folder"
`;

/** Why this computer cannot run a daemon of its own; undefined if it can. */
export async function daemonProblem() {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "a Docker daemon needs Linux and root";
  for (const [program, flag] of [
    ["dockerd", "--version"],
    ["ip", "-V"],
  ])
    if ((await quiet(program, [flag])).code !== 0) return `${program} is not installed`;
  return undefined;
}

/** Whether an engine answers at an address. */
export async function answers(host) {
  const socket = /^unix:\/\/(.+)$/.exec(host)?.[1];
  const args = socket === undefined ? [host.replace(/^tcp:/, "http:")] : ["--unix-socket", socket, "http://engine"];
  const { code } = await quiet("curl", [
    "-q",
    "-sf",
    "--noproxy",
    "*",
    "--max-time",
    "5",
    ...args.slice(0, -1),
    `${args.at(-1)}/_ping`,
  ]);
  return code === 0;
}

/**
 * A daemon that is not started yet. `disk` is the size of a disk that it has alone, in bytes; 0 for that of this computer. With
 * `firewall` it separates its networks, for which no other daemon may change the firewall of this computer; it is started once.
 */
export function createDaemon({ disk = 0, firewall = false } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "pulumi-machines-engine-"));
  const host = `unix://${folder}/docker.sock`;
  const paths = ["--data-root", `${folder}/data`, "--exec-root", `${folder}/exec`, "--pidfile", `${folder}/pid`];
  const range = freeRange();
  const bridge = `pm${crypto.randomBytes(4).toString("hex")}`;
  // Two daemons with the same addresses reach each other's containers. With an address pool, a daemon that starts again removes
  // docker0, so only the one that never does has a pool.
  const pool = firewall ? ["--default-address-pool", `base=${range}.128.0/17,size=24`] : [];
  const network = ["--bridge", bridge, `--iptables=${firewall}`, ...pool];
  const kept = [folder, `${disk}`, bridge, `${range}.0.1/24`];
  const args = [...kept, "dockerd", "--host", host, ...paths, ...network];
  const { ask, isRunning, log, remove } = startKeeper(keeper, args, path.join(folder, "log"));
  const untilGone = async () => {
    while (await answers(host)) await sleep(20);
  };
  return {
    host,
    folder,
    /** Returns why it did not start. */
    async start() {
      ask("start");
      for (const until = Date.now() + startsIn; Date.now() < until && isRunning(); await sleep(50))
        if (await answers(host)) return undefined;
      return `the engine did not start:\n${log()}`;
    },
    /** Ends it and its containers. */
    async stop() {
      ask("stop");
      await untilGone();
    },
    /** `kill -9`. */
    async kill() {
      ask("kill");
      await untilGone();
    },
    /** Ends it, and removes its folder. */
    remove,
  };
}

/** Addresses for its bridge, as `10.7`: a range of 10.0.0.0/8 that no interface has. */
export function freeRange() {
  const used = new Set(
    Object.values(os.networkInterfaces())
      .flat()
      .map(({ address }) => address.split(".", 2).join(".")),
  );
  const free = Array.from({ length: 256 }, (_, second) => `10.${second}`).filter((range) => !used.has(range));
  return free[Math.floor(Math.random() * free.length)] ?? "10.96";
}
