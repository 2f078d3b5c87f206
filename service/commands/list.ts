// The command ls, which lists what the running service holds.
import type { Command } from "commander";
import { reach } from "../local/client.ts";
import { findRunning } from "../local/daemon.ts";
import { kinds, listAll, type Entry, type Kind } from "../local/listing.ts";
import { dataFolder } from "../local/options.ts";
import { withTokens, type SendFor } from "../local/orgRequests.ts";
import { Problem } from "../local/problem.ts";
import { ago } from "../local/ago.ts";
import { ownCommand } from "../ownCommand.ts";
import { nearestOr, orgsOf } from "./holder.ts";
import { print, printJson, printTable, type Cell } from "./print.ts";

interface Flags {
  readonly data?: string;
  readonly org?: string;
  readonly app?: string;
  readonly json?: true;
}

/** The objects to list: those of some organizations, or of one App. */
interface Scope {
  readonly orgs: readonly string[];
  readonly app: string | undefined;
}

/** A shown column: its heading, and its cell for an object. */
type Columns<K extends Kind> = Readonly<Record<string, (entry: Entry<K>, now: number) => Cell>>;

const colours: Readonly<Record<string, "green" | "red" | "yellow" | "dim">> = {
  ...{ started: "green", deployed: "green", ready: "green" },
  ...{ failed: "red", launch_failed: "red", error: "red" },
  ...{ stopped: "dim", suspended: "dim", pending: "dim", destroyed: "dim", deleted: "dim" },
};
const settled = new Set(["created"]);

/** A state; one on the way to another is yellow. */
function state(text = "-"): Cell {
  if (settled.has(text) || text === "-") return text;
  return [text, colours[text] ?? "yellow"];
}

const since = (time: string | undefined, now: number): Cell =>
  time === undefined ? "-" : [ago(Date.parse(time), now), "dim"];

const columns: { readonly [K in Kind]: Columns<K> } = {
  apps: {
    NAME: ({ name }) => name,
    ORG: ({ org }) => org,
    STATUS: ({ status }) => state(status),
    MACHINES: ({ machine_count = 0 }) => String(machine_count),
    VOLUMES: ({ volume_count = 0 }) => String(volume_count),
    NETWORK: ({ network = "-" }) => network,
  },
  machines: {
    APP: ({ app_name }) => app_name,
    NAME: ({ name = "-" }) => name,
    ID: ({ id }) => id,
    STATE: (machine) => state(machine.state),
    REGION: ({ region = "-" }) => region,
    IMAGE: ({ config }) => config?.image ?? "-",
    CHANGED: ({ updated_at }, now) => since(updated_at, now),
  },
  volumes: {
    APP: ({ app_name }) => app_name,
    NAME: ({ name = "-" }) => name,
    ID: ({ id }) => id,
    STATE: (volume) => state(volume.state),
    REGION: ({ region = "-" }) => region,
    SIZE: ({ size_gb }) => (size_gb === undefined ? "-" : `${size_gb} GB`),
    MACHINE: ({ attached_machine_id }) => attached_machine_id ?? "-",
  },
  clusters: {
    NAME: ({ name }) => name,
    ORG: ({ org }) => org,
    ID: ({ id }) => id,
    STATUS: ({ status }) => state(status),
    REGION: ({ region = "-" }) => region,
    PLAN: ({ plan = "-" }) => plan,
    CREATED: ({ created_at }, now) => since(created_at, now),
  },
};

/** The App of an object; undefined for a cluster, which several Apps may use. */
const appOf = (entry: Entry<Kind>): string | undefined =>
  "app_name" in entry ? entry.app_name : "plan" in entry ? undefined : entry.name;

const isOf = (entry: Entry<Kind>, app: string): boolean =>
  appOf(entry) === app || ("attached_apps" in entry && entry.attached_apps?.some(({ name }) => name === app) === true);

const orderOf = (entry: Entry<Kind>): string => `${appOf(entry) ?? ""}\n${entry.name ?? ""}\n${entry.id}`;

/** The objects of a kind in a scope, ordered by App and name. */
async function find<K extends Kind>(send: SendFor, { orgs, app }: Scope, kind: K): Promise<Entry<K>[]> {
  const found: Entry<K>[] = [];
  for (const org of orgs) found.push(...(await listAll(send, org, kind)));
  const inScope = app === undefined ? found : found.filter((entry) => isOf(entry, app));
  return inScope.sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
}

function printEntries<K extends Kind>(kind: K, entries: readonly Entry<K>[]): void {
  const shown: Columns<K> = columns[kind];
  const now = Date.now();
  printTable(
    Object.keys(shown),
    entries.map((entry) => Object.values(shown).map((cell) => cell(entry, now))),
  );
}

type Counts = Record<string, number>;

/** The numbers of objects by App and by state. */
function countsOf(entries: readonly Entry<"machines" | "volumes">[]): ReadonlyMap<string, Counts> {
  const counts = new Map<string, Counts>();
  for (const { app_name, state: name = "unknown" } of entries) {
    const own = counts.get(app_name) ?? {};
    own[name] = (own[name] ?? 0) + 1;
    counts.set(app_name, own);
  }
  return counts;
}

/** The Apps of a scope with their counts, and its clusters. */
async function overview(send: SendFor, scope: Scope) {
  const apps = await find(send, scope, "apps");
  const machines = countsOf(await find(send, scope, "machines"));
  const volumes = countsOf(await find(send, scope, "volumes"));
  const clusters = await find(send, scope, "clusters");
  return {
    apps: apps.map(({ name, org, status = "-" }) => ({
      ...{ name, org, status },
      machines: machines.get(name) ?? {},
      volumes: volumes.get(name) ?? {},
    })),
    clusters: clusters.map(({ name, org, status = "-" }) => ({ name, org, status })),
  };
}

/** Counts as text, `2 started, 1 stopped`; the usual state is not named. */
const counted = (states: Counts, usual = ""): string =>
  Object.entries(states)
    .map(([name, count]) => (name === usual ? `${count}` : `${count} ${name}`))
    .join(", ") || "0";

function printOverview({ apps, clusters }: Awaited<ReturnType<typeof overview>>, url: string, folder: string): void {
  if (apps.length > 0)
    printTable(
      ["APP", "ORG", "STATUS", "MACHINES", "VOLUMES"],
      apps.map(({ name, org, status, machines, volumes }) => [
        ...[name, org, state(status), counted(machines), counted(volumes, "created")],
      ]),
    );
  if (apps.length > 0 && clusters.length > 0) print("");
  if (clusters.length > 0)
    printTable(
      ["CLUSTER", "ORG", "STATUS"],
      clusters.map(({ name, org, status }) => [name, org, state(status)]),
    );
  const isEmpty = apps.length + clusters.length === 0;
  const hints = isEmpty
    ? [
        `There are no Apps yet; create them with Pulumi, with \`${ownCommand("seed FILE", folder)}\`, or with curl:`,
        `${url}/docs`,
      ]
    : [
        "",
        `For one kind (${kinds.join(", ")}): ${ownCommand("ls machines", folder)}`,
        `For every operation: ${url}/docs`,
      ];
  // Not part of the list, which may be piped.
  process.stderr.write(`${hints.join("\n")}\n`);
}

function kindOf(text: string): Kind {
  const kind = kinds.find((known) => known === text);
  if (kind !== undefined) return kind;
  throw new Problem(
    `there is no kind ${JSON.stringify(text)}${nearestOr(text, kinds, `; the kinds are ${kinds.join(", ")}`)}`,
  );
}

async function list(named: string | undefined, _: Flags, command: Command): Promise<void> {
  const flags = command.optsWithGlobals<Flags>();
  const kind = named === undefined ? undefined : kindOf(named);
  const folder = dataFolder(flags.data);
  const running = findRunning(folder);
  if (!running)
    throw new Problem(`no service is running for ${folder}; start it with \`${ownCommand("start --detach", folder)}\``);
  const service = reach(folder);
  try {
    const scope = { orgs: orgsOf(service.store, flags, folder), app: flags.app };
    // The clock of the service may be far ahead, so the tokens do not expire.
    await withTokens(service, { name: "ls", role: "read", lifetimeMs: null }, async (send) => {
      if (kind === undefined) {
        const found = await overview(send, scope);
        return flags.json ? printJson(found) : printOverview(found, running.url, folder);
      }
      const entries = await find(send, scope, kind);
      if (flags.json) printJson(entries);
      else if (entries.length > 0) printEntries(kind, entries);
      else process.stderr.write(`There are no ${kind}.\n`);
    });
  } finally {
    await service.close();
  }
}

/** Adds the command that lists. */
export function addList(program: Command): void {
  program
    .command("ls")
    .description("list the objects of the running service; without a kind, an overview of everything")
    .argument("[kind]", kinds.join(", "))
    .option("--org <slug>", "only of this organization (default: all)")
    .option("--app <name>", "only of this app")
    .option("--json", "print JSON")
    .action(list);
}
