// The search over everything that a caller may see: a few results of each kind, the best first.
import { z } from "zod";
import { stackInUrn, type Stack } from "../../api/urn.ts";
import type { Rollout } from "../history/history.ts";
import type { Audit } from "../http/audit.ts";
import { visibleHistory } from "../http/historyRights.ts";
import type { Asker } from "./ask.ts";
import type { Work } from "../time/costly.ts";
import { inPart, partsOf } from "./parts.ts";
import { visibleTo } from "./requests.ts";
import type { Stacks } from "./stacks.ts";
import type { FoundGroup, FoundItem, SearchView } from "./types.ts";
import { appsParameter, isForAll, onlyApps } from "../store/tokens.ts";

/** Results of each kind. */
const most = 6;
/** Apps that are read at a time. */
const appsAtOnce = 500;
/** Machines whose ids begin alike that are looked at, those of other organizations too. */
const idsAtOnce = 200;
/** Rollouts that are searched: the newest. */
const rolloutsSearched = 200;
/** Sorts after every text. */
const end = "\u{10ffff}";

/** The query of the search. */
export const searchQuery = z.strictObject({ q: z.string().trim().min(1).max(100) });

/** How well a text fits: 0 is the same, 1 begins so, 2 contains it; undefined if it does not. */
export function rankOf(text: string, wanted: string): number | undefined {
  const [own, part] = [text.toLowerCase(), wanted.toLowerCase()];
  const at = own.indexOf(part);
  return at < 0 ? undefined : at > 0 ? 2 : own === part ? 0 : 1;
}

/** The best results of a kind. Of two that fit as well, the earlier one is better. */
class Best {
  readonly #found: { readonly item: FoundItem; readonly rank: number }[] = [];
  readonly #keys = new Set<string>();
  readonly #wanted: string;
  isMore = false;

  constructor(wanted: string) {
    this.#wanted = wanted;
  }

  /** Whether it has enough, so that further ones only need to be looked at if they fit better. */
  get isFull(): boolean {
    return this.#found.length >= most;
  }

  /** Adds a result if one of the texts fits. */
  add(item: FoundItem, ...texts: readonly string[]): void {
    const ranks = texts.flatMap((text) => rankOf(text, this.#wanted) ?? []);
    const key = JSON.stringify(item.place);
    if (ranks.length === 0 || this.#keys.has(key)) return;
    this.#keys.add(key);
    const rank = Math.min(...ranks);
    const at = this.#found.findIndex((one) => one.rank > rank);
    this.#found.splice(at < 0 ? this.#found.length : at, 0, { item, rank });
    if (this.#found.length > most) {
      this.#found.pop();
      this.isMore = true;
    }
  }

  group(kind: FoundGroup["kind"]): FoundGroup {
    return { kind, isMore: this.isMore, items: this.#found.map(({ item }) => item) };
  }
}

interface App {
  readonly number: number;
  readonly id: string;
  readonly name: string;
}

interface MachineRow {
  readonly id: string;
  readonly name: string;
  readonly region: string;
  readonly state: string;
}

/** The Apps of the caller, in parts. */
async function appsOf({ context, caller }: Asker, work: Work): Promise<readonly App[]> {
  const sql = `SELECT number, id, name FROM apps WHERE org = ?1 AND number > ?2 AND deleting < 2 AND ${onlyApps("id", 3)}
    ORDER BY number LIMIT ${appsAtOnce}`;
  const all: App[] = [];
  for (let last = 0; ;) {
    const part = context.store.all<App>(sql, caller.org, last, appsParameter(caller));
    all.push(...part);
    await work.pause();
    if (part.length < appsAtOnce) return all;
    last = part.at(-1)?.number ?? last;
  }
}

const columns = "m.id, m.name, m.region, m.state";

function machineItem(app: string, { id, name, region, state }: MachineRow): FoundItem {
  return { text: name, about: `${id}, ${state} in ${region}, App ${app}`, place: { app, machine: id } };
}

/** Machines by name or id: first by indexes, then by a look at all names, in parts, until there are enough. */
async function machinesIn({ context, caller }: Asker, apps: readonly App[], wanted: string, work: Work): Promise<Best> {
  const { store } = context;
  const best = new Best(wanted);
  const add = (app: string, row: MachineRow): void => best.add(machineItem(app, row), row.name, row.id);
  const names = new Map(apps.map(({ id, name }) => [id, name]));
  const [from, to] = [wanted.toLowerCase(), wanted.toLowerCase() + end];
  // Ids are random, so few begin alike. The number is limited before the organization is looked at.
  const byId = store.all<MachineRow & { readonly app: string; readonly org: number }>(
    `SELECT ${columns}, m.app, m.org FROM machines m WHERE m.id >= ? AND m.id < ? AND m.destroyed_at IS NULL
     ORDER BY m.id LIMIT ${idsAtOnce}`,
    from,
    to,
  );
  for (const row of byId) {
    const app = row.org === caller.org ? names.get(row.app) : undefined;
    if (app !== undefined) add(app, row);
  }
  const byName = `SELECT ${columns} FROM machines m WHERE m.app = ? AND m.destroyed_at IS NULL AND m.name >= ? AND m.name < ?
    ORDER BY m.name LIMIT ${most + 1}`;
  for (const { id, name } of apps) {
    for (const row of store.all<MachineRow>(byName, id, wanted, wanted + end)) add(name, row);
    if (work.isDue) await work.pause();
  }
  const anywhere = `SELECT ${columns} FROM machines m
    WHERE ${inPart} AND (instr(lower(m.name), ?4) > 0 OR instr(m.id, ?4) > 0) ORDER BY m.name LIMIT ${most + 1}`;
  for (const { id, name } of apps) {
    if (best.isFull) break;
    for await (const part of partsOf(context, id, work)) {
      for (const row of store.all<MachineRow>(anywhere, id, ...part, wanted.toLowerCase())) add(name, row);
      if (best.isFull) break;
    }
  }
  return best;
}

async function hostnamesIn({ context }: Asker, apps: readonly App[], wanted: string, work: Work): Promise<Best> {
  const best = new Best(wanted);
  const sql = `SELECT hostname FROM hostnames WHERE app = ? AND instr(lower(hostname), ?) > 0
    ORDER BY instr(lower(hostname), ?), hostname LIMIT ${most + 1}`;
  const part = wanted.toLowerCase();
  for (const { id, name } of apps) {
    for (const { hostname } of context.store.all<{ hostname: string }>(sql, id, part, part))
      best.add({ text: hostname, about: `App ${name}`, place: { app: name, query: "view=network" } }, hostname);
    if (work.isDue) await work.pause();
  }
  return best;
}

/** Clusters by name or id; a token of some Apps sees none. */
function clustersIn({ context, caller }: Asker, wanted: string): Best {
  const best = new Best(wanted);
  if (!isForAll(caller)) return best;
  const rows = context.store.all<MachineRow & { readonly status: string }>(
    "SELECT id, name, region, status FROM clusters WHERE org = ? AND status <> 'deleted' ORDER BY name, number",
    caller.org,
  );
  for (const { id, name, region, status } of rows)
    best.add({ text: name, about: `${id}, ${status} in ${region}`, place: { cluster: id } }, name, id);
  return best;
}

async function requestsIn(asker: Asker, audit: Audit, wanted: string, work: Work): Promise<Best> {
  const best = new Best(wanted);
  const isVisible = visibleTo(asker);
  // As the beginning of a value, which finds them without reading most entries.
  for (const entry of audit.newestFirst({ text: JSON.stringify(wanted).slice(0, -1) })) {
    if (entry && entry.id.startsWith(wanted) && isVisible(entry)) {
      const about = `${entry.method} ${entry.path}, ${entry.status ?? "closed"}`;
      best.add({ text: entry.id, about, place: { request: entry.id } }, entry.id);
    }
    if (best.isMore) break;
    if (work.isDue) await work.pause();
  }
  return best;
}

const nameOf = ({ project, stack }: Stack): string => `${project}/${stack}`;

function rolloutsIn(rollouts: readonly Rollout[], wanted: string): Best {
  const best = new Best(wanted);
  for (const { id, app, fleet, urn, result, from, to } of rollouts) {
    const title = fleet === null ? `Machines of ${app}` : `${app}/${fleet}`;
    const stack = stackInUrn(urn);
    const about = [result ?? "under way", to ?? from, stack && nameOf(stack)].filter(Boolean).join(", ");
    best.add({ text: title, about, place: { rollout: id } }, app, fleet ?? "", title, stack ? nameOf(stack) : "", id);
  }
  return best;
}

/** Stacks lead to their requests; those that sent none since the service was started lead to their rollouts. */
function stacksIn(heard: readonly Stack[], rollouts: readonly Rollout[], wanted: string): Best {
  const best = new Best(wanted);
  const known = new Set<string>();
  const add = (stack: Stack, place: "requestsOf" | "rolloutsOf", about: string): void => {
    const name = nameOf(stack);
    if (known.has(name)) return;
    known.add(name);
    best.add(
      { text: name, about, place: { [place]: `${stack.stack}::${stack.project}::` } },
      stack.stack,
      stack.project,
      name,
    );
  };
  for (const stack of heard) add(stack, "requestsOf", "its requests");
  for (const { urn } of rollouts) {
    const stack = stackInUrn(urn);
    if (stack) add(stack, "rolloutsOf", "its rollouts");
  }
  return best;
}

/** The newest rollouts that the caller may see; none if the history cannot be read. */
export async function rolloutsToSearch({ context, caller }: Asker): Promise<readonly Rollout[]> {
  const { history } = context;
  if (history.isOff) return [];
  const visible = visibleHistory(context, caller);
  try {
    return await history.rollouts({ org: caller.slug, only: visible, limit: rolloutsSearched });
  } catch (error) {
    context.log.warn({ err: error }, "the search cannot read the rollouts");
    return [];
  }
}

/** What is searched besides the store. */
export interface Searched {
  readonly audit: Audit;
  readonly stacks: Stacks;
  readonly rollouts: readonly Rollout[];
}

/** The results by kind, without kinds that have none. */
export async function searchView(asker: Asker, wanted: string, searched: Searched, work: Work): Promise<SearchView> {
  const { audit, stacks, rollouts } = searched;
  const { context, caller } = asker;
  const apps = await appsOf(asker, work);
  const best = new Best(wanted);
  for (const { name } of apps) best.add({ text: name, about: "", place: { app: name } }, name);
  const only = visibleHistory(context, caller);
  const groups = [
    best.group("App"),
    (await machinesIn(asker, apps, wanted, work)).group("Machine"),
    (await hostnamesIn(asker, apps, wanted, work)).group("hostname"),
    clustersIn(asker, wanted).group("cluster"),
    rolloutsIn(rollouts, wanted).group("rollout"),
    stacksIn(stacks.of(caller.slug, only && Object.keys(only)), rollouts, wanted).group("stack"),
    (await requestsIn(asker, audit, wanted, work)).group("request"),
  ];
  return { groups: groups.filter(({ items }) => items.length > 0) };
}
