// Many Machines, and a history of many entries, in the folder of a service that does not run: creating them over HTTP would take long,
// and measure something else.
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Entry, EventEntry, RequestEntry, RolloutEntry } from "../../service/history/entry.ts";
import { HistoryStore } from "../../service/history/historyStore.ts";
import { data } from "./run.ts";

/** The id of a copy. */
export const idOfCopy = (i: number): string => i.toString(16).padStart(14, "0");

/** Copies one Machine many times, by SQL. */
export function fillMachines(count: number): void {
  const db = new DatabaseSync(join(data, "service.db"));
  const columns = (table: string): string[] =>
    db
      .prepare(`PRAGMA table_info(${table})`)
      .all()
      .map(({ name }) => String(name));
  const copy = (table: string, replaced: Record<string, string>): string =>
    `INSERT INTO ${table} SELECT ${columns(table)
      .map((name) => replaced[name] ?? name)
      .join(", ")} FROM ${table}`;
  const hex = (parameter: string): string => `printf('%014x', ${parameter})`;
  db.exec("BEGIN");
  const template = db.prepare("SELECT id FROM machines WHERE state = 'started' LIMIT 1").get()?.["id"] as string;
  const machine = db.prepare(
    `${copy("machines", { id: hex("?1"), name: "printf('copy-%d', ?1)", updated_at: "updated_at + ?1" })} WHERE id = '${template}'`,
  );
  const version = db.prepare(`${copy("machine_versions", { machine: hex("?1") })} WHERE machine = '${template}'`);
  const events = db.prepare(`${copy("events", { machine: hex("?1") })} WHERE machine = '${template}'`);
  for (let i = 1; i <= count; i++) {
    machine.run(i);
    version.run(i);
    events.run(i);
  }
  db.exec("COMMIT");
  db.close();
}

/** Machines of one rollout, and the entries of each. */
const inRollout = 100;
const ofMachine = 5;

/** Adds rollouts of a fleet of the App `web`, of a hundred copies each, over the last weeks. Returns the id of the newest rollout. */
export function fillHistory(entries: number): string {
  const store = new HistoryStore(join(data, "history.db"), { entries: entries * 2, ageMs: 90 * 86_400_000 });
  const perRollout = 2 + inRollout * ofMachine;
  const rollouts = Math.floor(entries / perRollout);
  const step = Math.floor((30 * 86_400_000) / rollouts);
  const begun = Date.now() - rollouts * step - 60_000;
  const urn = "urn:pulumi:prod::shop::machines:index:Fleet::web";
  let update = "";
  for (let n = 0; n < rollouts; n++) {
    update = `update${String(n).padStart(6, "0")}`;
    let at = begun + n * step;
    const sender = { token: "bench", tokenName: "bench", urn, update };
    const place = { org: "personal", app: "web" };
    const [from, image] = [`registry.example.com/web:v${n}`, `registry.example.com/web:v${n + 1}`];
    const members = Array.from({ length: inRollout }, (_, i) => {
      const copy = 1 + ((n * inRollout + i) % 100_000);
      return { machine: idOfCopy(copy), name: `copy-${copy}`, region: "ams" };
    });
    const report = (more: Pick<RolloutEntry, "result" | "members">): RolloutEntry => ({
      ...{ kind: "rollout", at: at++, ...place, machine: null, fleet: "web", strategy: "rolling", from, to: image },
      ...{ phase: "rolling out", reason: null, ...sender, ...more },
    });
    const lines: Entry[] = [report({ result: null, members })];
    for (const { machine, name, region } of members) {
      const id = `${update}-${machine}`;
      const path = `/v1/apps/web/machines/${machine}`;
      const request: RequestEntry = {
        ...{ kind: "request", at: at++, ...place, machine, ...sender, id, operation: "machines.update" },
        ...{ method: "POST", path, status: 200, ms: 4, about: null },
      };
      const event = (more: Pick<EventEntry, "type" | "status" | "checks">): EventEntry => ({
        ...{ kind: "event", at: (at += 10), ...place, machine, name, region, fleet: "web", phase: "serving" },
        ...{ source: "flyd", version: id, image, from, by: sender, ...more },
      });
      lines.push(
        event({ type: "update", status: "replacing", checks: null }),
        request,
        event({ type: "start", status: "starting", checks: null }),
        event({ type: "start", status: "started", checks: "warning" }),
        event({ type: "checks", status: "started", checks: "passing" }),
      );
    }
    lines.push(report({ result: "succeeded", members: [] }));
    store.add(lines.map((line) => JSON.stringify(line)).join("\n"), { at, isOfUpdate: true });
  }
  store.close();
  return `personal.${update}.web.web`;
}
