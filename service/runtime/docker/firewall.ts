// The firewall around Machines. A program in a Machine reaches the internet, the Machines of its network and the Postgres servers of
// its organization; not this computer, other networks of it, or what else is private. Engines have no such limit, so the rules are in
// the firewall of the computer. They match the names of our bridges, so those of others are never touched.
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { isIPv4 } from "node:net";
import { hostname, release } from "node:os";
import { hasV6 } from "../hasV6.ts";
import type { RuntimeHost } from "../runtime.ts";
import { bridgePrefix, networkOptions } from "./bridges.ts";
import { labels } from "./container.ts";
import { reasonOf, type Engine } from "./engine.ts";
import { rulesOf, v6RulesOf, type Bridge } from "./rules.ts";

// ASSUMED: rules that another program has removed, such as a firewall that reloads, are put back within a minute.
const checkedEach = 60_000;

/** Runs a program with an input, and returns its output. */
function run(program: string, args: readonly string[], input = ""): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(program, [...args], { timeout: 30_000 }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${program} failed: ${stderr.trim() || error.message}`, { cause: error }));
      else resolve(stdout);
    });
    child.stdin?.on("error", () => {}).end(input);
  });
}

const tables = { v4: "iptables", v6: "ip6tables" } as const;

/** Other programs change the firewall too, one at a time. */
const patience = ["-w", "20"];

/** Why there can be no firewall around the Machines of an engine; undefined if there can. */
export async function firewallProblem({ computer }: Engine): Promise<string | undefined> {
  const { Name, KernelVersion, SecurityOptions } = computer;
  const isHere = process.platform === "linux" && Name === hostname() && KernelVersion === release();
  if (!isHere) return "the engine runs in a virtual machine or on another computer";
  if (SecurityOptions?.some((option) => option.includes("rootless"))) return "the engine is rootless";
  if (process.getuid?.() !== 0) return "only root can change the firewall of this computer";
  const reason = await inputProblem(tables.v4);
  return reason === undefined ? undefined : `the firewall of this computer cannot be changed (${reason})`;
}

/** Why a program cannot look at the rules for what goes to this computer; undefined if it can. */
const inputProblem = (table: string): Promise<string | undefined> =>
  run(table, [...patience, "-S", "INPUT"]).then(() => undefined, reasonOf);

/** The chains of a service: for what goes to this computer, and for what it forwards. */
export const chainsOf = (dataId: string) => ({
  host: `MACHINES-${dataId.slice(0, 8)}-HOST`,
  forward: `MACHINES-${dataId.slice(0, 8)}-OUT`,
});

/** The rules around the Machines of a service. */
export class Firewall {
  readonly #engine: Engine;
  readonly #host: RuntimeHost;
  readonly #problem: string | undefined;
  /** Private networks that Machines reach nevertheless. */
  readonly #reach: readonly string[];
  /** The last change; changes are made one after the other. */
  #last: Promise<void> = Promise.resolve();
  /** A change that has not begun; it replaces all that are requested meanwhile. */
  #next: Promise<void> | undefined;
  /** Whether there is no network, and no rule. */
  #isUnused = false;
  #timer: NodeJS.Timeout | undefined;
  #v6Asked: Promise<string | undefined> | undefined;

  constructor(engine: Engine, host: RuntimeHost, problem: string | undefined, reach: readonly string[]) {
    this.#engine = engine;
    this.#host = host;
    this.#problem = problem;
    this.#reach = reach;
  }

  /** Begins to look after the rules. */
  start(): void {
    if (this.#problem === undefined) {
      this.#timer = setInterval(() => this.refresh(), checkedEach).unref();
      void this.#warnOfV6();
    } else
      this.#host.log.warn(
        { reason: this.#problem },
        "without a firewall, Machines reach the services of this computer and its private networks",
      );
  }

  async #warnOfV6(): Promise<void> {
    const reason = (await hasV6()) ? await this.#v6Problem() : undefined;
    if (reason !== undefined)
      this.#host.log.warn({ reason }, "without ip6tables, Machines reach this computer by its IPv6 addresses");
  }

  /** Why there can be no rules for IPv6. */
  #v6Problem(): Promise<string | undefined> {
    return (this.#v6Asked ??= inputProblem(tables.v6));
  }

  /** Ends that. The rules stay, because Machines continue to run. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.settled();
  }

  /** Networks or databases have changed. */
  refresh(): void {
    this.hold().catch(() => {}); // it is logged
  }

  /**
   * Resolves when the rules hold for all networks that are there now.
   * @throws Error if they cannot be written.
   */
  hold(): Promise<void> {
    if (this.#problem !== undefined) return Promise.resolve();
    if (this.#next) return this.#next;
    const next = this.#last
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.#write();
      });
    this.#last = this.#next = next;
    return next;
  }

  /** Resolves when no change is open. */
  settled(): Promise<void> {
    return this.#last.catch(() => {});
  }

  async #write(): Promise<void> {
    try {
      const bridges = await this.#bridges();
      const isUnused = bridges.length === 0;
      if (!isUnused) await this.#writeRules(bridges);
      else if (!this.#isUnused) await removeRules(this.#host.dataId);
      this.#isUnused = isUnused;
    } catch (error) {
      this.#host.log.warn({ reason: reasonOf(error) }, "the firewall around Machines could not be written");
      throw new Error("the firewall around Machines could not be written; the log of the service has the reason", {
        cause: error,
      });
    }
  }

  async #writeRules(bridges: readonly Bridge[]): Promise<void> {
    const { dataId } = this.#host;
    const chains = chainsOf(dataId);
    const known = { chains, prefix: bridgePrefix(dataId), bridges };
    await run(
      `${tables.v4}-restore`,
      ["--noflush", ...patience],
      rulesOf({ ...known, reach: this.#reach, nameservers: await nameservers() }),
    );
    await hook(tables.v4, "INPUT", chains.host);
    // Docker calls DOCKER-USER before its own rules, also after a restart. Another program may have removed that call.
    await hook(tables.v4, "FORWARD", chains.forward);
    if (await hasChain(tables.v4, "DOCKER-USER")) await hook(tables.v4, "DOCKER-USER", chains.forward);
    if (!(await hasV6()) || (await this.#v6Problem()) !== undefined) return;
    await run(`${tables.v6}-restore`, ["--noflush", ...patience], v6RulesOf(known));
    await hook(tables.v6, "INPUT", chains.host);
  }

  /** The bridges of this service's networks, and the databases that each may reach. */
  async #bridges(): Promise<Bridge[]> {
    const filters = { label: [`${labels.data}=${this.#host.dataId}`] };
    const networks = await this.#engine.docker.listNetworks({ filters });
    return networks.map(({ Id, Labels, Options }) => ({
      // Networks that an earlier version has created have the engine's name.
      name: Options?.[networkOptions.bridge] ?? `br-${Id.slice(0, 12)}`,
      databases: this.#host
        .databases(Labels?.[labels.network] ?? "")
        .filter(({ host }) => isIPv4(host) && !host.startsWith("127.")),
    }));
  }
}

/** Removes the rules of the service with this identity. */
export async function removeRules(dataId: string): Promise<void> {
  const { host, forward } = chainsOf(dataId);
  for (const table of Object.values(tables))
    for (const [from, chain] of [
      ["INPUT", host],
      ["DOCKER-USER", forward],
      ["FORWARD", forward],
    ] as const) {
      if (!(await hasChain(table, chain))) continue;
      const quiet = (...args: readonly string[]): Promise<unknown> =>
        run(table, [...patience, ...args]).catch(() => {});
      await quiet("-D", from, "-j", chain);
      await quiet("-F", chain);
      await quiet("-X", chain);
    }
}

const succeeds = (done: Promise<unknown>): Promise<boolean> =>
  done.then(
    () => true,
    () => false,
  );

const hasChain = (table: string, chain: string): Promise<boolean> => succeeds(run(table, [...patience, "-S", chain]));

/** Makes a chain call ours before its other rules. */
async function hook(table: string, from: string, chain: string): Promise<void> {
  if (await succeeds(run(table, [...patience, "-C", from, "-j", chain]))) return;
  await run(table, [...patience, "-I", from, "1", "-j", chain]);
}

/** The resolvers that engines give to containers. */
async function nameservers(): Promise<string[]> {
  const files = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
  const texts = await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")));
  const found = texts.flatMap((text) => [...text.matchAll(/^nameserver\s+(\S+)/gm)].map(([, address = ""]) => address));
  return [...new Set(found)].filter((address) => isIPv4(address) && !address.startsWith("127."));
}
