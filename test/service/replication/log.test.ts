// The log of a service with several members: one contract for both implementations, on a real PostgreSQL and in memory
// (F98).
import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Entry, Log, Standing } from "../../../service/replication/log.ts";
import { MemoryLog } from "../../../service/replication/memoryLog.ts";
import { logSchema, openPostgresLog } from "../../../service/replication/postgresLog.ts";
import { CannotOpen, SealedLog } from "../../../service/replication/sealedLog.ts";
import { keepLog } from "../../../service/replication/snapshots.ts";
import { instead } from "../../support/instead.ts";
import { startPair, startPostgres, type PostgresPair, type TestPostgres } from "./postgres.ts";
import { hang } from "../../support/patience.mts";

let server: TestPostgres;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.remove());

const [one, two] = ["one", "two"].map((id) => ({ id, address: `http://${id}:4280` })) as [
  { id: string; address: string },
  { id: string; address: string },
];
const entry = (seq: number, epoch: number, text = `entry ${seq}`): Entry => ({
  ...{ seq, epoch, schema: 13 },
  bytes: Buffer.from(text),
});
const hour = 3600_000;

const kinds: Readonly<Record<string, () => Promise<Log>>> = {
  "in memory": async () => new MemoryLog(() => Date.now()),
  "in memory, sealed": async () => new SealedLog(new MemoryLog(() => Date.now()), Buffer.alloc(32, 1), randomBytes),
  "in PostgreSQL": async () => {
    await server.query(`DROP SCHEMA IF EXISTS ${logSchema} CASCADE`);
    return openPostgresLog(server.url, hang);
  },
};

describe.each(Object.entries(kinds))("a log %s", (_, open) => {
  let log: Log;
  beforeEach(async () => {
    log = await open();
    return () => log.close();
  });

  const leadership = async () => {
    const found = await log.leadership();
    return found && [found.epoch, found.leader.id, found.leaseMs > 0];
  };

  test("the history takes parts of the latest leadership, in order, each once, and keeps the last", async () => {
    const part = (first: number, last: number, epoch: number) => ({
      ...{ first, last, epoch, at: 1000 * last },
      bytes: Buffer.from(`entries ${first} to ${last}`),
    });
    const kept = async (after = 0) =>
      (await log.readHistory(after)).map(({ bytes, ...one }) => ({ ...one, bytes: Buffer.from(bytes) }));
    expect([await log.historyEnd(), await kept()]).toEqual([{ seq: 0, epoch: 0 }, []]);
    expect(await log.addHistory(part(1, 10, 1))).toBe(false);
    await log.takeOver(0, one, hour);
    // What was before is not there any more.
    expect(await log.addHistory(part(5, 10, 1))).toBe(true);
    expect(await log.addHistory(part(11, 12, 1))).toBe(true);
    await expect(log.addHistory(part(11, 12, 1))).rejects.toThrow("entry 11 of the history cannot follow 12");
    await expect(log.addHistory(part(14, 15, 1))).rejects.toThrow("entry 14 of the history cannot follow 12");
    expect(await kept()).toEqual([part(5, 10, 1), part(11, 12, 1)]);
    expect(await kept(10)).toEqual([part(11, 12, 1)]);
    expect(await kept(12)).toEqual([]);
    await log.release(1);
    await log.takeOver(1, two, hour);
    expect(await log.addHistory(part(13, 13, 1))).toBe(false);
    expect(await log.addHistory(part(13, 13, 2))).toBe(true);
    await log.trimHistory(10, 0);
    expect([(await log.historyEnd()).seq, await kept()]).toEqual([13, [part(11, 12, 1), part(13, 13, 2)]]);
    await log.trimHistory(0, 100_000);
    expect([(await log.historyEnd()).seq, await kept()]).toEqual([13, [part(13, 13, 2)]]);
  });

  test("one member leads at a time, and another one only after the lease", async () => {
    expect(await leadership()).toBeUndefined();
    expect(await log.takeOver(1, one, hour)).toBeUndefined();
    expect(await log.takeOver(0, one, hour)).toBe(1);
    expect(await leadership()).toEqual([1, "one", true]);
    expect((await log.leadership())?.leader).toEqual(one);
    for (const from of [0, 1, 2]) expect(await log.takeOver(from, two, hour)).toBeUndefined();
    await log.release(1);
    expect(await leadership()).toEqual([1, "one", false]);
    expect(await log.takeOver(0, two, hour)).toBeUndefined();
    expect(await log.takeOver(1, two, hour)).toBe(2);
    expect(await leadership()).toEqual([2, "two", true]);
  });

  test("a member takes over a lease that was not renewed since it looked", async () => {
    await log.takeOver(0, one, hour);
    const first = await log.leadership();
    expect(await log.renew(1, hour)).toBe(true);
    expect(await log.takeOver(1, two, hour, first?.renewal)).toBeUndefined();
    const second = await log.leadership();
    expect(second).toMatchObject({ epoch: 1, leader: one, leaseMs: hour });
    expect(second?.renewal).not.toBe(first?.renewal);
    expect(await log.takeOver(1, two, hour, second?.renewal)).toBe(2);
    expect(await log.takeOver(1, { ...one, id: "three" }, hour, second?.renewal)).toBeUndefined();
  });

  test("its extent counts what came after the latest snapshot, and a moment has a last entry", async () => {
    await log.takeOver(0, one, hour);
    await log.append([entry(1, 1), entry(2, 1)]);
    const before = await log.extent();
    expect([before.size > 0, before.seq]).toEqual([true, 2]);
    expect([await log.lastBefore(before.now), await log.lastBefore(before.now - hour)]).toEqual([2, 0]);
    const id = await log.addSnapshot({ seq: 2, bytes: Buffer.from("snapshot") });
    const after = await log.extent();
    expect([before.bytesSince > 0, after.bytesSince, after.snapshots.map(({ seq }) => seq)]).toEqual([true, 0, [2]]);
    expect(Math.abs((after.snapshots[0]?.at ?? 0) - after.now)).toBeLessThan(hour);
    await log.removeSnapshot(id);
    expect([await log.latestSnapshot(), (await log.extent()).snapshots]).toEqual([undefined, []]);
  });

  test("members that store snapshots of the same entry at the same time do not remove each other's", async () => {
    await log.takeOver(0, one, hour);
    await log.append([entry(1, 1), entry(2, 1)]);
    // The pages of two copies may differ. Neither stores its snapshot before both have found that one is due.
    let begin: () => void = () => undefined;
    const haveBegun = new Promise<void>((resolve) => (begin = resolve));
    let begun = 0;
    const keep = (text: string) => {
      const make = async () => {
        if (++begun === 2) begin();
        await haveBegun;
        return { seq: 2, epoch: 1, bytes: Buffer.from(text) };
      };
      return keepLog(log, make, { everyBytes: 1, keepMs: hour });
    };
    expect(await Promise.all([keep("one"), keep("two")])).toEqual([2, 2]);
    expect((await log.extent()).snapshots).toMatchObject([{ seq: 2 }]);
    expect(["one", "two"]).toContain(Buffer.from((await log.latestSnapshot())?.bytes ?? []).toString());
    // One that is not stored as it was made is removed, and the others stay.
    const damaged = instead(log, { snapshot: () => Promise.resolve(undefined) });
    await log.append([entry(3, 1)]);
    const make = async () => ({ seq: 3, epoch: 1, bytes: Buffer.from("three") });
    await expect(keepLog(damaged, make, { everyBytes: 1, keepMs: hour })).rejects.toThrow("as it was stored");
    expect((await log.latestSnapshot())?.seq).toBe(2);
  });

  test("the identity that is stored first stays", async () => {
    expect(await log.identity()).toBeUndefined();
    const both = await Promise.all(["one", "two"].map((text) => log.addIdentity(Buffer.from(text))));
    expect(both[0]).toEqual(both[1]);
    expect(await log.identity()).toEqual(both[0]);
    expect(["one", "two"]).toContain(Buffer.from(both[0] as Uint8Array).toString());
  });

  test("the place that is stored first stays", async () => {
    const both = await Promise.all(["one", "two"].map((text) => log.addPlace(Buffer.from(text))));
    expect(both[0]).toEqual(both[1]);
    expect(await log.addPlace(Buffer.from("three"))).toEqual(both[0]);
  });

  test("the place is replaced by the latest leadership alone", async () => {
    await log.addPlace(Buffer.from("one"));
    const place = async () => Buffer.from((await log.place()) ?? []).toString();
    await log.takeOver(0, one, 0);
    expect(await log.setPlace(1, Buffer.from("two"))).toBe(true);
    expect(await place()).toBe("two");
    await log.takeOver(1, two, hour);
    expect(await log.setPlace(1, Buffer.from("three"))).toBe(false);
    expect(await place()).toBe("two");
  });

  test("everything is replaced in one step, by the latest leader or in an empty log", async () => {
    const contents = (text: string, seq: number, epoch: number) => ({
      ...{ identity: Buffer.from(`identity ${text}`), place: undefined, snapshot: Buffer.from(`snapshot ${text}`) },
      last: entry(seq, epoch, text),
      history: [{ first: 1, last: 2, at: 3, epoch: 0, bytes: Buffer.from(`history ${text}`) }],
    });
    expect(await log.replaceAll(1, contents("one", 2, 0))).toBe(false);
    expect(await log.replaceAll(0, contents("one", 2, 0))).toBe(true);
    expect(await log.replaceAll(0, contents("two", 2, 0))).toBe(false);
    await log.takeOver(0, one, hour);
    await log.append([entry(3, 1)]);
    await log.addPlace(Buffer.from("place"));
    expect(await log.replaceAll(0, contents("three", 3, 1))).toBe(false);
    expect(await log.replaceAll(1, { ...contents("four", 3, 1), place: Buffer.from("other") })).toBe(true);
    const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();
    expect([text(await log.identity()), text(await log.place())]).toEqual(["identity four", "other"]);
    expect((await log.readHistory(0)).map(({ last, bytes }) => [last, text(bytes)])).toEqual([[2, "history four"]]);
    expect((await log.read(0, 9, 999)).map(({ seq, bytes }) => [seq, text(bytes)])).toEqual([[3, "four"]]);
    expect([text((await log.latestSnapshot())?.bytes), (await log.extent()).snapshots.length]).toEqual([
      "snapshot four",
      1,
    ]);
    expect(await log.append([entry(4, 1)])).toBe(true);
  });

  test("members are listed by address, with what they said last, until they are removed", async () => {
    expect(await log.members()).toEqual([]);
    const [a, b] = [two, one].map(({ address }) => ({ address, version: "1.0.0", role: "standby", seq: 3 }) as const);
    const place = Buffer.from("place");
    for (const standing of [a, b, { ...a, role: "leader", seq: 4, place }] as const)
      await log.report(standing as Standing);
    const listed = await log.members();
    expect(listed.every(({ agoMs }) => agoMs >= 0 && agoMs < hour)).toBe(true);
    expect(listed.map(({ agoMs: _, ...standing }) => standing)).toEqual([b, { ...a, role: "leader", seq: 4, place }]);
    expect([await log.removeMember(two.address), await log.removeMember(two.address)]).toEqual([true, false]);
    expect(await log.members()).toHaveLength(1);
  });

  test("of members that take over at the same time, one succeeds", async () => {
    const members = ["one", "two", "three", "four"].map((id) => ({ id, address: one.address }));
    const first = await Promise.all(members.map((member) => log.takeOver(0, member, 0)));
    expect(first.filter((epoch) => epoch !== undefined)).toEqual([1]);
    const next = await Promise.all(members.map((member) => log.takeOver(1, member, hour)));
    expect(next.filter((epoch) => epoch !== undefined)).toEqual([2]);
  });

  test("a member that took over already may repeat it, because the first answer may be lost", async () => {
    expect(await log.takeOver(0, one, hour)).toBe(1);
    expect(await log.takeOver(0, one, hour)).toBe(1);
    expect(await log.takeOver(1, one, hour)).toBeUndefined();
    expect(await leadership()).toEqual([1, "one", true]);
  });

  test("a lease is prolonged by its own leader alone", async () => {
    await log.takeOver(0, one, 0);
    expect(await leadership()).toEqual([1, "one", false]);
    expect(await log.renew(1, hour)).toBe(true);
    expect(await leadership()).toEqual([1, "one", true]);
    await log.release(1);
    await log.takeOver(1, two, hour);
    expect(await log.renew(1, hour)).toBe(false);
    await log.release(1);
    expect(await leadership()).toEqual([2, "two", true]);
  });

  test("entries are read in order, at most as many and as large as wanted", async () => {
    await log.takeOver(0, one, hour);
    expect(await log.end()).toEqual({ seq: 0, epoch: 0 });
    const texts = ["1", "2", "3"].map((text) => text.repeat(100)) as [string, string, string];
    expect(await log.append([entry(1, 1, texts[0]), entry(2, 1, texts[1])])).toBe(true);
    expect(await log.append([])).toBe(true);
    expect(await log.append([entry(3, 1, texts[2])])).toBe(true);
    expect(await log.end()).toEqual({ seq: 3, epoch: 1 });
    const read = async (after: number, most: number, mostBytes: number) =>
      (await log.read(after, most, mostBytes)).map(({ seq, bytes }) => [seq, Buffer.from(bytes).toString()]);
    const [first, second, third] = texts.map((text, i) => [i + 1, text]);
    expect(await read(0, 10, 1000)).toEqual([first, second, third]);
    expect(await read(1, 1, 1000)).toEqual([second]);
    // Sealing makes each of them 28 bytes longer.
    expect(await read(0, 10, 130)).toEqual([first, second]);
    expect(await read(3, 10, 1000)).toEqual([]);
    const [begin, next] = await log.read(0, 2, 1000);
    expect(begin).toMatchObject({ epoch: 1, schema: 13 });
    expect(Math.abs(Date.now() - (next?.at ?? 0))).toBeLessThan(hour);
    expect(next?.at).toBeGreaterThanOrEqual(begin?.at ?? Number.NaN);
  });

  test("a leader that was replaced appends nothing", async () => {
    await log.takeOver(0, one, 0);
    expect(await log.append([entry(1, 1)])).toBe(true);
    await log.takeOver(1, two, hour);
    expect(await log.append([entry(2, 1)])).toBe(false);
    expect(await log.append([entry(2, 2)])).toBe(true);
    expect(await log.append([entry(3, 1)])).toBe(false);
    expect((await log.read(0, 10, 1000)).map(({ seq, epoch }) => [seq, epoch])).toEqual([
      [1, 1],
      [2, 2],
    ]);
  });

  test("no entry is appended twice, and none is left out", async () => {
    await log.takeOver(0, one, hour);
    await log.append([entry(1, 1)]);
    for (const wrong of [[entry(1, 1)], [entry(3, 1)], [entry(1, 1), entry(2, 1)]])
      await expect(log.append(wrong)).rejects.toThrow();
    expect(await log.end()).toEqual({ seq: 1, epoch: 1 });
  });

  test("the latest complete snapshot is found, and trimming keeps it and what follows", async () => {
    await log.takeOver(0, one, hour);
    await log.append([1, 2, 3, 4].map((seq) => entry(seq, 1)));
    expect(await log.latestSnapshot()).toBeUndefined();
    // More than one part.
    const bytes = Buffer.alloc(2_500_000, "snapshot");
    await log.addSnapshot({ seq: 1, bytes: Buffer.from("old") });
    await log.addSnapshot({ seq: 3, bytes });
    expect(await log.extent()).toMatchObject({ snapshots: [{ seq: 3 }, { seq: 1 }] });
    expect((await log.latestSnapshot(2))?.seq).toBe(1);
    const latest = await log.latestSnapshot();
    expect([latest?.seq, Buffer.from(latest?.bytes ?? []).equals(bytes)]).toEqual([3, true]);
    await log.trim(3);
    expect((await log.read(0, 10, 1000)).map(({ seq }) => seq)).toEqual([4]);
    expect((await log.latestSnapshot())?.seq).toBe(3);
    await log.trim(4);
    expect(await log.end()).toEqual({ seq: 4, epoch: 1 });
    expect(await log.append([entry(5, 1)])).toBe(true);
  });
});

describe("a log in PostgreSQL", () => {
  beforeEach(() => server.query(`DROP SCHEMA IF EXISTS ${logSchema} CASCADE`));

  test("members that begin at the same time create its tables once", async () => {
    const logs = await Promise.all([1, 2, 3].map(() => openPostgresLog(server.url, hang)));
    const epochs = await Promise.all(logs.map((log, i) => log.takeOver(0, { ...one, id: `${i}` }, hour)));
    expect(epochs.filter((epoch) => epoch !== undefined)).toEqual([1]);
    await Promise.all(logs.map((log) => log.close()));
  });

  test("a user that may not create schemas uses one that was made for it", async () => {
    await server.query("DROP ROLE IF EXISTS machines; CREATE ROLE machines LOGIN");
    const url = server.url.replace("postgres@", "machines@");
    await expect(openPostgresLog(url, hang)).rejects.toThrow("permission denied");
    await server.query(`CREATE SCHEMA ${logSchema} AUTHORIZATION machines`);
    for (const _ of ["the first member", "the next one"]) {
      const log = await openPostgresLog(url, hang);
      expect(await log.members()).toEqual([]);
      await log.close();
    }
  });

  test("a takeover waits for an append that is under way, and the entry counts", async () => {
    const log = await openPostgresLog(server.url, hang);
    await log.takeOver(0, one, 0);
    // What an append does, held before its end.
    const held = new pg.Client(server.url);
    await held.connect();
    await held.query("BEGIN");
    await held.query(`SELECT 1 FROM ${logSchema}.leadership WHERE epoch = 1 FOR SHARE`);
    await held.query(`INSERT INTO ${logSchema}.log (seq, epoch, schema, bytes) VALUES (1, 1, 13, 'late')`);
    const taken = log.takeOver(1, two, hour);
    const waits = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
    await expect.poll(async () => (await server.query(waits)).rows[0]).toEqual({ n: 1 });
    await held.query("COMMIT");
    expect(await taken).toBe(2);
    expect(await log.end()).toEqual({ seq: 1, epoch: 1 });
    await Promise.all([held.end(), log.close()]);
  });

  // Each is about the state of the server, not about the statement: it may be over at the next attempt.
  const states = ["disk_full", "out_of_memory", "io_error", "deadlock_detected", "read_only_sql_transaction"];
  test.for(states)("a server that refuses an entry with %s is unavailable", async (state) => {
    const log = await openPostgresLog(server.url, hang);
    await log.takeOver(0, one, hour);
    await server.query(
      `CREATE FUNCTION ${logSchema}.refuse() RETURNS trigger LANGUAGE plpgsql
       AS 'BEGIN RAISE EXCEPTION USING ERRCODE = ''${state}''; END';
       CREATE TRIGGER refuse BEFORE INSERT ON ${logSchema}.log EXECUTE FUNCTION ${logSchema}.refuse()`,
    );
    await expect(log.append([entry(1, 1)])).rejects.toMatchObject({ name: "LogUnavailable" });
    await server.query(`DROP TRIGGER refuse ON ${logSchema}.log`);
    expect(await log.append([entry(1, 1)])).toBe(true);
    await log.close();
  });

  test("a server that does not answer is unavailable, and nothing is known about what it did", async () => {
    const log = await openPostgresLog(server.url, hang);
    await log.takeOver(0, one, hour);
    await server.stop();
    for (const request of [() => log.append([entry(1, 1)]), () => log.leadership(), () => log.renew(1, hour)])
      await expect(request()).rejects.toMatchObject({ name: "LogUnavailable" });
    await server.start();
    expect(await log.append([entry(1, 1)])).toBe(true);
    await log.close();
  });
});

describe("a log in two servers with synchronous replication", () => {
  let pair: PostgresPair;
  let log: Log;
  beforeAll(async () => {
    pair = await startPair();
  });
  afterAll(() => pair.remove());
  beforeEach(async () => {
    await pair.query(`DROP SCHEMA IF EXISTS ${logSchema} CASCADE`);
    // Some requests get no answer.
    log = await openPostgresLog(`postgres://postgres@127.0.0.1:${pair.port}/postgres`, 10_000);
    return () => log.close();
  });

  /** Sends a request whose effect the standby never learns of: it is on the disk of the primary, which crashes. */
  async function unreplicated(request: () => Promise<unknown>): Promise<void> {
    await pair.stopStandby();
    const sent = expect(request()).rejects.toMatchObject({ name: "LogUnavailable" });
    const waits = "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    await expect.poll(async () => (await pair.query(waits)).rows[0]).toEqual({ n: 1 });
    await pair.stop();
    await sent;
    await pair.start();
  }

  const available = <T>(request: () => Promise<T>) => expect.poll(() => request().catch(() => undefined));

  test("an entry that only the primary has is not at the end of the log, until the standby has it", async () => {
    await log.takeOver(0, one, hour);
    await unreplicated(() => log.append([entry(1, 1)]));
    await expect(log.end()).rejects.toMatchObject({ name: "LogUnavailable" });
    await pair.startStandby();
    await available(() => log.end()).toEqual({ seq: 1, epoch: 1 });
  });

  test("a takeover that only the primary has is complete when it is repeated, and the standby has it", async () => {
    await log.takeOver(0, one, 0);
    await unreplicated(() => log.takeOver(1, two, hour));
    await available(async () => (await log.leadership())?.leader).toEqual(two);
    await expect(log.takeOver(1, two, hour)).rejects.toMatchObject({ name: "LogUnavailable" });
    await pair.startStandby();
    await available(() => log.takeOver(1, two, hour)).toBe(2);
    await pair.failOver();
  });
});

test("a sealed log reveals nothing, and opens only with its key, each part at its place", async () => {
  const inner = new MemoryLog(() => 0);
  const log = new SealedLog(inner, Buffer.alloc(32, 1), randomBytes);
  await log.takeOver(0, one, hour);
  await log.append([entry(1, 1, "canary"), entry(2, 1, "canary")]);
  await log.addSnapshot({ seq: 1, bytes: Buffer.from("canary") });
  await log.addIdentity(Buffer.from("canary"));
  const [first, second] = await inner.read(0, 9, 99);
  const stored = [first?.bytes, second?.bytes, (await inner.latestSnapshot())?.bytes, await inner.identity()];
  for (const bytes of stored) expect(Buffer.from(bytes as Uint8Array).includes("canary")).toBe(false);
  const other = new SealedLog(inner, Buffer.alloc(32, 2), randomBytes);
  for (const read of [() => other.read(0, 9, 99), () => other.latestSnapshot(), () => other.identity()])
    await expect(read()).rejects.toThrow(CannotOpen);
  // An entry at the place of another one is noticed.
  const moved = new MemoryLog(() => 0);
  await moved.takeOver(0, one, hour);
  await moved.append([{ ...(second as Entry), seq: 1 }]);
  await expect(new SealedLog(moved, Buffer.alloc(32, 1), randomBytes).read(0, 9, 99)).rejects.toThrow(CannotOpen);
});
