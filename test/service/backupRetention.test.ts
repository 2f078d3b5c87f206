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
import { expect, test } from "vitest";
import { Backups } from "../../service/backup/backups.ts";
import { tags } from "../../service/backup/contents.ts";
import { readLast } from "../../service/backup/places.ts";
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
