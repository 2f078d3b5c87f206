// Metrics of Apps and their Machines. Reading 100,000 rows takes a while, so it is done in pieces.
import type { Context } from "../context.ts";
import { checks } from "../rules/counts.ts";
import type { Work } from "../time/costly.ts";
import { otherApps } from "../watch/byApp.ts";
import { appMetrics as of } from "../watch/catalogue.ts";
import type { Measured, Sample } from "../watch/exposition.ts";

/** Machines that are counted at once. After a start they are read from the disk, which takes longer. */
const pieceSize = 250;

const inPiece = `SELECT app, state, checks, count(*) AS n, max(row) AS last FROM
    (SELECT m.rowid AS row, m.app, m.state, ${checks} AS checks FROM machines m
      WHERE m.rowid > ? ORDER BY m.rowid LIMIT ${pieceSize})
  GROUP BY 1, 2, 3`;

interface CountRow {
  readonly app: string;
  readonly state: string;
  readonly checks: string | null;
  readonly n: number;
  readonly last: number;
}

/** Numbers of Machines by state, or by the result of their checks. */
type Numbers = Map<string, number>;

/** The Machines of the service, and of each App by its id. */
export interface MachineCounts {
  readonly states: Numbers;
  readonly apps: ReadonlyMap<string, { readonly states: Numbers; readonly checks: Numbers }>;
}

const add = (numbers: Numbers, key: string, n: number): void => void numbers.set(key, (numbers.get(key) ?? 0) + n);

/** Counts all Machines. */
export async function countMachines({ store }: Pick<Context, "store">, work: Work): Promise<MachineCounts> {
  const states: Numbers = new Map();
  const apps = new Map<string, { readonly states: Numbers; readonly checks: Numbers }>();
  for (let after = 0; ;) {
    const rows = store.all<CountRow>(inPiece, after);
    if (rows.length === 0) return { states, apps };
    for (const { app, state, checks: result, n, last } of rows) {
      after = Math.max(after, last);
      add(states, state, n);
      if (state === "destroyed") continue;
      const known = apps.get(app) ?? { states: new Map(), checks: new Map() };
      apps.set(app, known);
      add(known.states, state, n);
      if (result !== null) add(known.checks, result, n);
    }
    await work.pause();
  }
}

const inOrder = (numbers: Numbers): [string, number][] => [...numbers].sort(([a], [b]) => (a < b ? -1 : 1));

/** The metrics. Apps without a name of their own are added up. */
export function appMetrics({ counted }: Pick<Context, "counted">, { apps }: MachineCounts): readonly Measured[] {
  const named = counted.apps.all;
  const others = { states: new Map<string, number>(), checks: new Map<string, number>() };
  const machines: Sample[] = [];
  const results: Sample[] = [];
  const show = (app: string, of: typeof others): void => {
    for (const [state, n] of inOrder(of.states)) machines.push([{ app, state }, n]);
    for (const [status, n] of inOrder(of.checks)) results.push([{ app, status }, n]);
  };
  for (const [id, counts] of apps) {
    const app = named.get(id);
    if (app) show(app.name, counts);
    else {
      for (const [state, n] of counts.states) add(others.states, state, n);
      for (const [status, n] of counts.checks) add(others.checks, status, n);
    }
  }
  show(otherApps, others);
  return [
    [of.machines, machines],
    [of.checks, results],
    [of.restarts, counted.restarts.map(([app, n]) => [{ app }, n])],
  ];
}
