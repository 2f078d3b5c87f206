// An empty Debian with systemd, for the tests of `machines-service setup`: a folder in the per-user cache, which is booted in a container
// of its own. It has the programs that the setup would install, because the container has no network.
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { withLock } from "../lib/lock.mjs";
import { quiet, tail } from "../lib/process.mjs";
import { installPackages, isDebian } from "./debian.mjs";
import { userCache } from "./userCache.mjs";

const release = "bookworm";
const packages = [
  ...["systemd", "systemd-sysv", "dbus", "iproute2", "iptables", "procps", "util-linux", "ca-certificates", "curl"],
  ...["libstdc++6", "docker.io", "pgbouncer"],
];

/**
 * The folder; or the reason why there is none.
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<{ root: string, reason?: undefined } | { root?: undefined, reason: string }>}
 */
export async function debianServer(env) {
  if (process.platform !== "linux" || process.getuid?.() !== 0)
    return { reason: "only root on Linux can boot a Debian" };
  const hash = createHash("sha256")
    .update(JSON.stringify([release, packages]))
    .digest("hex")
    .slice(0, 12);
  const root = path.join(userCache("An empty Debian"), `debian-server-${hash}`);
  return withLock(`${root}.lock`, "preparing an empty Debian", async () => {
    for (const [program, name] of [
      ["systemd-nspawn", "systemd-container"],
      ["mmdebstrap", "mmdebstrap"],
    ]) {
      if ((await quiet(program, ["--version"])).code === 0) continue;
      const reason = isDebian() ? await installPackages([name], env) : `${name} is not installed`;
      if (reason !== undefined) return { reason };
    }
    if (fs.existsSync(root)) return { root };
    const draft = `${root}.new`;
    fs.rmSync(draft, { recursive: true, force: true });
    const args = [
      "--variant=minbase",
      `--include=${packages.join(",")}`,
      release,
      draft,
      "http://deb.debian.org/debian",
    ];
    const { code, output } = await quiet("mmdebstrap", args, { env, alive: "still preparing an empty Debian" });
    if (code !== 0) return { reason: `Debian's packages could not be fetched:\n${tail(output, 5)}` };
    fs.renameSync(draft, root);
    return { root };
  });
}
