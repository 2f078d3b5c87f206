// Installs packages of Debian for the tests.
import fs from "node:fs";
import path from "node:path";
import { withLock } from "../lib/lock.mjs";
import { cache } from "../lib/paths.mjs";
import { quiet, tail } from "../lib/process.mjs";

/** Whether this computer is a Debian, or one like it. */
export const isDebian = () => fs.existsSync("/etc/debian_version");

/**
 * Installs packages, as root. The first one gives the name in messages. Returns why it could not.
 * @returns {Promise<string | undefined>}
 */
export async function installPackages(packages, env) {
  const options = { env: { ...env, DEBIAN_FRONTEND: "noninteractive" }, alive: `still installing ${packages[0]}` };
  return withLock(path.join(cache, "apt.lock"), `installing ${packages[0]}`, async () => {
    // A service that a package starts would be the computer's, not this run's.
    const policy = "/usr/sbin/policy-rc.d";
    const isOurs = !fs.existsSync(policy);
    if (isOurs) fs.writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
    try {
      await quiet("apt-get", ["update"], options);
      const { code, output } = await quiet(
        "apt-get",
        ["-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends", ...packages],
        options,
      );
      return code === 0 ? undefined : `${packages[0]} could not be installed:\n${tail(output, 5)}`;
    } finally {
      if (isOurs) fs.rmSync(policy, { force: true });
    }
  });
}
