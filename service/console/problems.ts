// What an organization should look at: Machines, certificates, clusters and regions that are not as they should be, the worst first.
import type { Context } from "../context.ts";
import type { ClusterRow, EventRow, MachineRow } from "../store/rows.ts";
import type { Caller } from "../rules/rule.ts";
import { isOperator } from "../store/tokens.ts";
import { capacityIn } from "../rules/capacity.ts";
import { checks } from "../rules/counts.ts";
import { askFor, type Asker } from "./ask.ts";
import type { Work } from "../time/costly.ts";
import { hasFailed } from "../history/exits.ts";
import { exitOf } from "./eventText.ts";
import { loopingMs } from "./failure.ts";
import { failureIn } from "./machine.ts";
import { inPart } from "./parts.ts";
import type { Problem, ProblemKind, Problems } from "./types.ts";

const [minute, day] = [60_000, 86_400_000];

/** Problems that are shown; the others are counted. */
const mostShown = 50;
// ASSUMED: up to three Machines or certificates of an App with the same kind of problem are shown one by one.
const mostAlone = 3;

/** The kinds, the worst first. */
const order: readonly ProblemKind[] = [
  ...(["cluster failed", "Machine failed", "Machine loops", "check critical", "certificate failed"] as const),
  ...(["cluster full", "region full", "certificate ends", "certificate waits", "no backup"] as const),
];

/** A problem before it is worded. */
export interface Found extends Problem {
  /** Number of objects that have it. */
  readonly n: number;
}

/** Members of an App that have the same kind of problem. */
interface Troubled {
  total: number;
  /** The first ones, up to one more than are shown one by one. */
  readonly first: { readonly name: string; readonly problem: Omit<Problem, "kind"> }[];
}

/** The problems of one App. */
export class AppProblems {
  readonly #app: string;
  readonly #found = new Map<ProblemKind, Troubled>();

  constructor(app: string) {
    this.#app = app;
  }

  /** Whether the name of one more that has this kind of problem is of use. */
  isNamed(kind: ProblemKind): boolean {
    return (this.#found.get(kind)?.first.length ?? 0) <= mostAlone;
  }

  /** Counts further ones. */
  count(kind: ProblemKind, n: number): void {
    this.#of(kind).total += n;
  }

  /** Names one that is counted elsewhere. */
  name(kind: ProblemKind, name: string, problem: Omit<Problem, "kind">): void {
    if (this.isNamed(kind)) this.#of(kind).first.push({ name, problem });
  }

  /** One problem for each of a few, or one for all of them. */
  get all(): readonly Found[] {
    return [...this.#found].flatMap(([kind, { total, first }]): Found[] =>
      total <= mostAlone
        ? first.slice(0, total).map(({ problem }) => ({ kind, ...problem, n: 1 }))
        : [{ kind, ...together(kind, total, this.#app), n: total }],
    );
  }

  #of(kind: ProblemKind): Troubled {
    const known = this.#found.get(kind);
    if (known) return known;
    const made: Troubled = { total: 0, first: [] };
    this.#found.set(kind, made);
    return made;
  }
}

/** What is said of many of an App at once, and the query of the App's view that shows them. */
const ofMany: Readonly<Partial<Record<ProblemKind, readonly [what: string, text: string, query: string]>>> = {
  "Machine failed": ["Machines", " have failed.", "state=failed"],
  "Machine loops": ["Machines", " crash again and again.", "sort=updated&order=desc"],
  "check critical": ["Machines", " have critical checks.", "only=critical"],
  "certificate failed": ["certificates", " have expired, or could not be issued.", "view=network"],
  "certificate ends": ["certificates", " end within 14 days.", "view=network"],
  "certificate waits": ["certificates", " have waited for their validation longer than an hour.", "view=network"],
};

function together(kind: ProblemKind, n: number, app: string): Omit<Problem, "kind"> {
  const [what, text, query] = ofMany[kind] ?? ["objects", " have a problem.", ""];
  return { subject: `${n.toLocaleString("en")} ${what} of ${app}`, text: [text], place: { app, query } };
}

/** The result of counting the Machines of a part that may have problems. */
export interface PartCount {
  readonly failed: number;
  readonly critical: number;
  /** Those that the restart policy has started again a short time ago. */
  readonly restarted: number;
}

/** Whether the restart policy has started a Machine again a short time ago. Its value is the oldest time that counts. */
export const restartedLately =
  "m.restarted > 0 AND m.state IN ('stopped', 'starting', 'started') AND m.updated_at > ?4";

/** The value of {@link restartedLately}. */
export const lately = ({ clock }: Context): number => clock.now() - loopingMs;

type Named = Pick<MachineRow, "id" | "name">;

/** Adds the Machines of a part that have problems. What has none costs nothing. */
export async function addMachines(
  context: Context,
  app: { readonly id: string; readonly name: string },
  names: readonly [string, string],
  { failed, critical, restarted }: PartCount,
  into: AppProblems,
  work: Work,
): Promise<void> {
  const from = `FROM machines m WHERE ${inPart}`;
  const problem = ({ id, name }: Named): Omit<Problem, "kind"> => ({
    subject: `Machine ${name} of ${app.name}`,
    text: [],
    place: { app: app.name, machine: id },
  });
  const add = (kind: "Machine failed" | "check critical", n: number, condition: string): void => {
    if (n === 0) return;
    into.count(kind, n);
    if (!into.isNamed(kind)) return;
    const sql = `SELECT m.id, m.name ${from} AND ${condition} ORDER BY m.name LIMIT ${mostAlone + 1}`;
    for (const row of context.store.all<Named>(sql, app.id, ...names)) into.name(kind, row.name, problem(row));
  };
  add("Machine failed", failed, "m.state = 'failed'");
  add("check critical", critical, `${checks} = 'critical'`);
  if (restarted === 0) return;
  const sql = `SELECT m.id, m.name ${from} AND ${restartedLately} ORDER BY m.name`;
  for (const row of context.store.all<Named>(sql, app.id, ...names, lately(context))) {
    if (crashesAgain(context, row.id)) {
      into.count("Machine loops", 1);
      into.name("Machine loops", row.name, problem(row));
    }
    await work.pause();
  }
}

/** Whether the newest exit of a Machine is a crash after another one, which the restart policy answers. */
function crashesAgain({ store }: Context, machine: string): boolean {
  const sql = "SELECT request FROM events WHERE machine = ? AND type = 'exit' ORDER BY id DESC LIMIT 1";
  const request = store.get<Pick<EventRow, "request">>(sql, machine)?.request;
  const exit = request ? exitOf({ request: JSON.parse(request) as Readonly<Record<string, unknown>> }) : undefined;
  return exit !== undefined && hasFailed(exit) && exit.restarting && exit.restarts > 0;
}

// ASSUMED: a cluster that is not ready after ten minutes does not become so by itself, and one with 90 % of its disk in use is full.
const longestSetUp = 10 * minute;
const fullFrom = 0.9;

/** What is wrong with a cluster, as ends of sentences. `backedUp` is the time of its newest completed backup; undefined without backups. */
export function clusterProblems(
  row: Pick<ClusterRow, "status" | "created_at" | "disk_size_gb" | "storage_used_bytes">,
  backedUp: number | null | undefined,
  now: number,
): readonly { readonly kind: ProblemKind; readonly text: Problem["text"] }[] {
  const { status, created_at, disk_size_gb, storage_used_bytes } = row;
  if (status === "failed") return [{ kind: "cluster failed", text: [" has failed: it could not be set up."] }];
  if (status === "creating" || status === "initializing")
    return now - created_at > longestSetUp
      ? [{ kind: "cluster failed", text: [" is not ready: it has been set up since ", { at: created_at }, "."] }]
      : [];
  if (status !== "ready") return [];
  const share = (storage_used_bytes ?? 0) / (disk_size_gb * 1e9);
  const isOld = Math.max(created_at, backedUp ?? 0) < now - 2 * day;
  return [
    ...(share >= fullFrom
      ? [{ kind: "cluster full" as const, text: [` uses ${Math.round(share * 100)} % of its disk.`] }]
      : []),
    ...(backedUp !== undefined && isOld
      ? [
          {
            kind: "no backup" as const,
            text:
              backedUp === null
                ? [" has no completed backup."]
                : [" has no completed backup since ", { at: backedUp }, "."],
          },
        ]
      : []),
  ];
}

/** The clusters that have problems. */
export async function clustersWithProblems(
  { store, clock, postgres }: Context,
  rows: readonly ClusterRow[],
  work: Work,
): Promise<readonly Found[]> {
  const found: Found[] = [];
  const sql = "SELECT max(finished_at) AS at FROM backups WHERE cluster = ? AND status = 'completed'";
  for (const row of rows) {
    const backedUp =
      postgres.noBackups === undefined ? (store.get<{ at: number | null }>(sql, row.id)?.at ?? null) : undefined;
    for (const problem of clusterProblems(row, backedUp, clock.now()))
      found.push({ ...problem, subject: `Cluster ${row.name}`, place: { cluster: row.id }, n: 1 });
    await work.pause();
  }
  return found;
}

/** What is wrong with the backups of the service, for its operator. */
export function backupProblem(
  { backups, clock }: Context,
  caller: Pick<Caller, "slug" | "apps" | "role">,
): readonly Found[] {
  const problem = isOperator(caller) ? backups?.problem(clock.now()) : undefined;
  if (!problem) return [];
  const { since, reason } = problem;
  const text = [
    ...(since === undefined ? [" none is complete"] : [" the last complete one is of ", { at: since }]),
    reason === undefined ? "." : `, because ${reason}.`,
  ];
  return [{ kind: "no backup", subject: "Backups of the service:", text, place: {}, n: 1 }];
}

/** The regions without capacity in which the organization has Machines. `apps` are its Apps with their Machines by region. */
export function regionsWithProblems(
  context: Context,
  apps: readonly { readonly name: string; readonly byRegion: ReadonlyMap<string, number> }[],
): readonly Found[] {
  return [...context.regions.values()].flatMap((region): readonly Found[] => {
    const { code } = region;
    if (capacityIn(context, region) > 0) return [];
    let [app, most, n] = ["", 0, 0];
    for (const { name, byRegion } of apps) {
      const own = byRegion.get(code) ?? 0;
      n += own;
      if (own > most) [app, most] = [name, own];
    }
    if (n === 0) return [];
    const place = { app, query: `region=${encodeURIComponent(code)}` };
    const text = [" has no capacity left: it accepts no further Machine."];
    return [{ kind: "region full", subject: `Region ${code}`, text, place, n }];
  });
}

const said: Readonly<Partial<Record<ProblemKind, string>>> = {
  "Machine failed": " has failed. ",
  "Machine loops": " crashes again and again. ",
  "check critical": " runs, but its checks fail. ",
};

const compare = (a: Found, b: Found): number =>
  order.indexOf(a.kind) - order.indexOf(b.kind) || b.n - a.n || (a.subject < b.subject ? -1 : 1);

/** The worst of them, in order. Sorting all would keep others waiting. */
async function worstOf(found: readonly Found[], work: Work): Promise<readonly Found[]> {
  const worst: Found[] = [];
  for (const one of found) {
    const last = worst.at(-1);
    if (last === undefined || worst.length < mostShown || compare(one, last) < 0) {
      const at = worst.findIndex((other) => compare(one, other) < 0);
      worst.splice(at < 0 ? worst.length : at, 0, one);
      worst.length = Math.min(worst.length, mostShown);
    }
    if (work.isDue) await work.pause();
  }
  return worst;
}

/** The problems, the worst first. Only those that are shown say why. */
export async function problemsOf(asker: Asker, found: readonly Found[], work: Work): Promise<Problems> {
  const first: Problem[] = [];
  for (const { n: _n, ...shown } of await worstOf(found, work)) {
    const start = said[shown.kind];
    const { app, machine } = shown.place;
    if (start === undefined || app === undefined || machine === undefined) first.push(shown);
    else {
      const failure = await askFor(failureIn(asker, { app_name: app, machine_id: machine }));
      first.push({ ...shown, text: [start, ...(failure?.cause ?? [])] });
    }
    await work.pause();
  }
  return { total: found.length, first };
}
