// Completes package-lock.json. If a registry mirror lacks a package for some platform, npm omits that platform from the
// lock, and `npm ci` then refuses the lock on every platform. The dependent package has the name and version; only the
// checksum is missing, which npm does not need.
import fs from "node:fs";

const PLATFORM =
  /(?:^|[/-])(android|darwin|freebsd|linux|openharmony|win32)-(arm64|arm|x64|ia32|ppc64|riscv64|s390x)(?:-(\w+))?$/;

/** Lists the optional platform packages that the lock lacks; adds them if `write` is set. */
export function completeLock(file, { write }) {
  const lock = JSON.parse(fs.readFileSync(file, "utf8"));
  const { "": project, ...packages } = lock.packages;
  const missing = {};
  for (const [at, { optionalDependencies = {}, dev, engines }] of Object.entries(packages))
    for (const [name, version] of Object.entries(optionalDependencies)) {
      const [, os, cpu, abi] = PLATFORM.exec(name) ?? [];
      if (os === undefined || isLocked(packages, at, name)) continue;
      missing[`node_modules/${name}`] = {
        version,
        cpu: [cpu],
        ...(dev ? { dev } : {}),
        ...(os === "linux" && /^(gnu|musl)$/.test(abi ?? "") ? { libc: [abi === "gnu" ? "glibc" : "musl"] } : {}),
        optional: true,
        os: [os],
        ...(engines ? { engines } : {}),
      };
    }
  const names = Object.keys(missing).map((at) => at.slice("node_modules/".length));
  if (write && names.length > 0) {
    const entries = Object.entries({ ...packages, ...missing }).toSorted(([a], [b]) => a.localeCompare(b, "en"));
    fs.writeFileSync(
      file,
      `${JSON.stringify({ ...lock, packages: { "": project, ...Object.fromEntries(entries) } }, null, 2)}\n`,
    );
  }
  return names;
}

/** Searches like Node.js: in the package's own node_modules, then in those of its parent directories. */
function isLocked(packages, from, name) {
  for (let dir = from; ; dir = dir.slice(0, Math.max(0, dir.lastIndexOf("/node_modules/")))) {
    if (`${dir === "" ? "" : `${dir}/`}node_modules/${name}` in packages) return true;
    if (dir === "") return false;
  }
}
