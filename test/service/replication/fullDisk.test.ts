// Members whose database has no space on its disk (F97, F98).
import { randomBytes } from "node:crypto";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { leaveOut } from "../../../tools/lib/leftOut.mjs";
import { afterThisTest } from "../../support/leftovers.ts";
import { mountSmall } from "../../support/smallDisk.ts";
import { folder } from "../command.ts";
import { startPostgres } from "./postgres.ts";
import {
  callOf,
  create,
  expectEqualCopies,
  leaderOf,
  namesAt,
  serviceOn,
  standing,
  type Creating,
  type Member,
  type Service,
} from "./processes.ts";

const size = 500 * 2 ** 20;
/** Exit code of a member that has lost its leadership. */
const lostLeadership = 4;

/** A PostgreSQL on a small disk, and what it has logged. */
async function onSmallDisk() {
  const [disk, log] = [join(folder(), "disk"), join(folder(), "../log")];
  const small = mountSmall(disk, size);
  if (!small) return undefined;
  const said = openSync(log, "w");
  afterThisTest(() => closeSync(said));
  const server = await startPostgres({ said, parent: disk });
  afterThisTest(() => server.remove());
  const appends = /No space left on device\n.*HINT: .*\n.*STATEMENT: +INSERT INTO machines_service\.log/g;
  const logged = (pattern: RegExp): number => readFileSync(log, "utf8").match(pattern)?.length ?? 0;
  return {
    ...{ small, server },
    /** Waits until some more appends have failed. */
    async moreFail(): Promise<void> {
      const before = logged(appends);
      await expect.poll(() => logged(appends)).toBeGreaterThan(before + 3);
    },
    /** Writes until the server ends, because it has no space for what is certain to be written. */
    async end(): Promise<void> {
      while (server.isRunning) {
        small.fill();
        await server.query("SELECT pg_logical_emit_message(true, '', repeat('x', 1000000))").catch(() => {});
      }
      expect(logged(/PANIC: .*No space left on device/g)).toBeGreaterThan(0);
    },
  };
}

/** A change that needs space for its entry. */
const large = () => {
  const value = () => randomBytes(24_000).toString("base64");
  return { values: Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`KEY_${i}`, value()])) };
};

/** Repeats a request that has no answer, because a member may lose its leadership. */
async function repeated<T>(ask: () => Promise<T>): Promise<T> {
  for (;;)
    try {
      return await ask();
    } catch {
      await sleep(20);
    }
}

/** Starts members again that have lost their leadership, as a supervisor does. */
async function keep(service: Service, members: Member[]): Promise<void> {
  for (const [i, one] of members.entries()) {
    if ((await standing(one)) !== undefined) continue;
    expect((await one.end).code).toBe(lostLeadership);
    members[i] = await service.start(one.data);
  }
}

async function expectAllAcknowledged({ acknowledged }: Creating, members: readonly Member[]): Promise<void> {
  const names = new Set(await namesAt(await leaderOf(members)));
  expect(acknowledged.filter((name) => !names.has(name))).toEqual([]);
  await expectEqualCopies(members);
}

test("while the database has no space nothing is acknowledged and reads wait, and with space both continue", async ({
  skip,
}) => {
  const database = await onSmallDisk();
  if (!database) {
    leaveOut("members whose database has no space", "this user cannot mount a file system");
    return skip();
  }
  const { small, moreFail } = database;
  const service = serviceOn(database.server.url);
  const members = [await service.start(), await service.start(), await service.start()];
  await leaderOf(members);
  const creating = create("app", () => members);
  await creating.more(20);

  small.fill();
  const early: string[] = [];
  let isFull = true;
  const asked = async <T>(what: string, ask: () => Promise<T>): Promise<T> => {
    const answer = await repeated(ask);
    if (isFull) early.push(what);
    return answer;
  };
  const [first] = members;
  const changed = asked("a change", () =>
    callOf(first as Member)("POST", `/apps/${creating.acknowledged[0]}/secrets`, large()),
  );
  await moreFail();
  const acknowledged = [...creating.acknowledged];
  const reads = members.map((one) => asked(`a read at ${one.url}`, () => namesAt(one)));
  await moreFail();
  expect(early).toEqual([]);
  expect(creating.acknowledged).toEqual(acknowledged);

  isFull = false;
  small.resize(size);
  await creating.more(20);
  await keep(service, members);
  expect((await changed).status).toBe(200);
  for (const names of await Promise.all(reads)) expect(names).toEqual(expect.arrayContaining(acknowledged));
  await creating.end();
  await expectAllAcknowledged(creating, members);
});

test("a database that ended without space is started again with space, and nothing is lost although a member was killed", async ({
  skip,
}) => {
  const database = await onSmallDisk();
  if (!database) return skip();
  const { server, small } = database;
  const service = serviceOn(server.url);
  const members = [await service.start(), await service.start(), await service.start()];
  const creating = create("app", () => members);
  for (const isKilled of [false, true]) {
    await creating.more(20);
    const { pid, data, end } = await leaderOf(members);
    await database.end();
    if (isKilled) {
      process.kill(pid, "SIGKILL");
      await end;
    }
    const held = creating.acknowledged.length;
    small.resize(size);
    expect(creating.acknowledged.length).toBe(held);
    await server.start();
    if (isKilled) members[members.findIndex((one) => one.data === data)] = await service.start(data);
    await creating.more(20);
    await keep(service, members);
  }
  await creating.end();
  await expectAllAcknowledged(creating, members);
});
