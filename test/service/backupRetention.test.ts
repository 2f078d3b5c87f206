// What a repository keeps, and what happens if the service ends while it removes the rest. A program that does what restic does, as far
// as the service needs it, keeps the repository.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Backups } from "../../service/backup/backups.ts";
import { tags, type Backup } from "../../service/backup/contents.ts";
import { readLast } from "../../service/backup/places.ts";
import { outdated } from "../../service/backup/retention.ts";
import { ManualClock } from "../../service/index.ts";
import type { Service } from "../../service/service.ts";
import { afterThisTest } from "../support/leftovers.ts";

const logMs = 300_000;
const monthMs = 30 * 86_400_000;

/** Each snapshot is a file. While there is a file `held`, `forget` only says that it has begun. */
const program = (repository: string): string => `#!${process.execPath}
const { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } = require("fs");
const at = (name) => ${JSON.stringify(`${repository}/`)} + name;
const args = process.argv.slice(4);
const all = readdirSync(at("")).filter((name) => name.endsWith(".json")).map((name) => JSON.parse(readFileSync(at(name))));
const values = (option) => args.filter((_, i) => args[i - 1] === option);
if (args[0] === "snapshots") {
  const wanted = values("--tag").flatMap((list) => list.split(","));
  console.log(JSON.stringify(all.filter(({ tags }) => wanted.every((tag) => tags.includes(tag)))));
}
if (args[0] === "dump") process.stdout.write(all.find(({ id }) => id === args[2]).manifest);
if (args[0] === "backup") {
  const id = String(all.length + 1).padStart(4, "0");
  const manifest = existsSync("manifest.json") ? readFileSync("manifest.json", "utf8") : "";
  const paths = args.filter((path) => path.startsWith("/"));
  writeFileSync(at("new"), JSON.stringify({ id, time: new Date(), tags: values("--tag"), paths, manifest }));
  renameSync(at("new"), at(id + ".json"));
  console.log(JSON.stringify({ message_type: "summary", snapshot_id: id }));
}
if (args[0] === "forget" && existsSync(at("held"))) {
  writeFileSync(at("forgetting"), "");
  setInterval(() => {}, 1000);
}
`;

/** Backups of a service with one cluster. */
function newBackups() {
  const root = mkdtempSync(join(tmpdir(), "machines-retention-"));
  afterThisTest(() => rmSync(root, { recursive: true, force: true }));
  const [repository, folder, restic, passphraseFile] = ["repository", "data", "restic", "passphrase"].map((name) =>
    join(root, name),
  ) as [string, string, string, string];
  mkdirSync(repository);
  mkdirSync(folder, { mode: 0o700 });
  writeFileSync(passphraseFile, "correct horse battery staple\n");
  writeFileSync(restic, program(repository));
  chmodSync(restic, 0o755);
  const clock = new ManualClock();
  const engine = { keptFrom: "", copies: 0 };
  const archives = {
    copy: (_: string, target: string) => {
      mkdirSync(target, { recursive: true });
      return Promise.resolve({ first: `file ${++engine.copies}` });
    },
    stored: (_: string, first: string) => Promise.resolve(void (engine.keptFrom = first)),
    log: () => Promise.resolve({ folder: "/changes", until: clock.now(), lastChange: clock.now() }),
  };
  const context = {
    ...{ clock, runtime: { name: "simulated" }, postgres: { archives }, log: { info: () => {}, warn: () => {} } },
    store: { unsettled: undefined, all: (sql: string) => (sql.includes("FROM clusters") ? [{ id: "one" }] : []) },
  };
  const snapshots = (tag: string): readonly (readonly string[])[] =>
    readdirSync(repository)
      .filter((name) => name.endsWith(".json"))
      .map((name) => (JSON.parse(readFileSync(join(repository, name), "utf8")) as { tags: string[] }).tags)
      .filter((all) => all.includes(tag));
  return {
    ...{ clock, engine, folder },
    place: (name: string): string => join(repository, name),
    begin: async (): Promise<Backups> => {
      const backups = new Backups({
        ...{ folder, everyMs: monthMs, policy: { days: 7, weeks: 0, months: 0 }, postgres: "embedded" },
        repository: { at: repository, restic, passphraseFile },
        writeStore: (target) => {
          writeFileSync(join(target, "store.machines"), "store");
          return Promise.resolve({ rows: {}, wanted: { volumes: [], clusters: ["one"] } });
        },
      });
      afterThisTest(() => backups.close());
      await backups.begin({ context } as unknown as Service);
      return backups;
    },
    /** The ids of the backups. */
    stored: (): readonly string[] =>
      snapshots(tags.backup).flatMap((all) => all.filter((tag) => tag.startsWith("id:")).map((tag) => tag.slice(3))),
    /** Of each log, the backup since which it is. */
    logs: (): readonly string[] =>
      snapshots(tags.log).flatMap((all) =>
        all.filter((tag) => tag.startsWith("since:")).map((tag) => tag.slice("since:".length)),
      ),
  };
}

test("the logs belong to the last backup, also if the service ended while it removed outdated ones", async () => {
  const { clock, engine, folder, place, begin, stored, logs } = newBackups();
  const before = await begin();
  await expect.poll(() => (clock.advance(0), stored().length)).toBe(1);
  const moreLogs = async (count: number): Promise<void> => {
    const had = logs().length;
    await expect.poll(() => (clock.advance(logMs), logs().length)).toBeGreaterThanOrEqual(had + count);
  };
  await moreLogs(2);
  writeFileSync(place("held"), "");
  const backup = before.backUp().catch(String);
  await expect.poll(() => existsSync(place("forgetting"))).toBe(true);
  await before.close();
  expect(await backup).toContain("the service is closing");
  const newest = stored().at(-1);
  expect(engine.keptFrom).toBe(`file ${engine.copies}`);
  expect(readLast(folder)).toMatchObject({ id: newest, stored: newest, result: "complete" });
  await begin();
  await moreLogs(1);
  expect(logs().at(-1)).toBe(newest);
});

const hourMs = 3600_000;

/** The names of the snapshots that are removed, of those that are stored so many hours after the first. */
async function removed(
  backups: readonly { readonly id: string; readonly hour: number; readonly parts: readonly string[] }[],
  more: readonly { readonly id: string; readonly hour: number; readonly tags: readonly string[] }[],
) {
  const start = Date.UTC(2026, 0, 1);
  const found = backups.map(({ id, hour, parts }) => ({
    ...{ id, snapshot: id, time: start + hour * hourMs },
    manifest: {
      ...{ id, at: start + hour * hourMs, missing: [] },
      volumes: Object.fromEntries(parts.map((stored) => [stored, { stored }])),
    },
  })) as unknown as readonly Backup[];
  const all = [
    ...backups.map(({ id, hour }) => ({ id, hour, tags: [tags.backup] })),
    ...backups.flatMap(({ parts, hour }) => parts.map((id) => ({ id, hour, tags: [tags.part] }))),
    ...more,
  ]
    .map(({ hour, ...one }) => ({ ...one, time: start + hour * hourMs, paths: [] }))
    .sort((a, b) => a.time - b.time);
  const restic = { snapshots: () => Promise.resolve(all) };
  return [...(await outdated(restic, found, "lineage", { days: 2, weeks: 0, months: 0 }))].sort();
}

test("what another service has stored for a backup that it is making is not removed", async () => {
  const backups = [
    { id: "first", hour: 0, parts: ["part of the first"] },
    { id: "second", hour: 60, parts: ["part of the second"] },
    { id: "last", hour: 96, parts: ["part of the last"] },
  ];
  expect(
    await removed(backups, [
      { id: "log of the first", hour: 24, tags: [tags.log, tags.since("first")] },
      { id: "part of an interrupted one", hour: 47, tags: [tags.part] },
      { id: "part of one that is being made", hour: 49, tags: [tags.part] },
      // It was stored after the backups were listed.
      { id: "backup of the other", hour: 95, tags: [tags.backup] },
      { id: "log of the other", hour: 95, tags: [tags.log, tags.since("backup of the other")] },
    ]),
  ).toEqual(["first", "log of the first", "part of an interrupted one", "part of the first"]);
});

test("clusters can be restored to the last day, and from each kept backup until the next one that was made began", async () => {
  const minute = 60_000;
  const count = (max: number) => fc.integer({ min: 0, max });
  const policies = fc.record({ days: count(3), weeks: count(2), months: count(2) });
  // Minutes from one backup to the next, which each takes, and the moment within that time.
  const times = fc.tuple(
    fc.integer({ min: 10, max: 4000 }),
    fc.integer({ min: 0, max: 9 }),
    fc.double({ min: 0, max: 1, noNaN: true }),
  );
  await fc.assert(
    fc.asyncProperty(policies, fc.array(times, { minLength: 2, maxLength: 25 }), async (policy, list) => {
      let at = Date.UTC(2026, 0, 1);
      const made = list.map(([gap, taken], i) => {
        at += gap * minute;
        return { id: `${i}`, begun: at - taken * minute, at };
      });
      let backups: readonly Backup[] = [];
      let logs: readonly { readonly id: string; readonly since: string; readonly until: number }[] = [];
      for (const { id, begun, at: time } of made) {
        // The log of the one before is stored first.
        const last = backups.at(-1);
        if (last) logs = [...logs, { id: `log since ${last.id} until ${id}`, since: last.id, until: begun }];
        const manifest = { id, at: time, missing: [], volumes: {} };
        backups = [...backups, { id, snapshot: id, time, manifest } as unknown as Backup];
        const all = [
          ...backups.map((one) => ({ id: one.id, time: one.time, tags: [tags.backup] })),
          ...logs.map((one) => ({ id: one.id, time: one.until, tags: [tags.log, tags.since(one.since)] })),
        ].map((one) => ({ ...one, paths: [] }));
        const restic = { snapshots: () => Promise.resolve(all.sort((a, b) => a.time - b.time)) };
        const gone = new Set(await outdated(restic, backups, "lineage", policy));
        backups = backups.filter((one) => !gone.has(one.id));
        logs = logs.filter((one) => !gone.has(one.id));
      }
      const newest = made.at(-1)?.at ?? 0;
      /** As a restore chooses: the newest backup that is not newer, and the last log since it. */
      const isRestorable = (moment: number): boolean => {
        const backup = backups.filter(({ time }) => time <= moment).at(-1);
        return logs.some(({ since, until }) => since === backup?.id && moment <= until);
      };
      for (const [i, { id, at: from }] of made.entries()) {
        const until = made[i + 1]?.begun;
        if (until === undefined) continue;
        const moment = from + Math.floor((until - from) * (list[i]?.[2] ?? 0));
        const isKept = backups.some((one) => one.id === id);
        if (isKept || moment > newest - 24 * hourMs) expect(isRestorable(moment)).toBe(true);
      }
    }),
  );
});
