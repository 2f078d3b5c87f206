// The history that members share: every leader has it, and nothing that was sent is lost or doubled.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { RolloutEntry, Stored } from "../../../service/history/entry.ts";
import { historyKeeper, usualBounds } from "../../../service/history/history.ts";
import { InMemory, type Keeper } from "../../../service/history/keeper.ts";
import { catchUp, FollowedHistory, SentHistory } from "../../../service/history/sharing.ts";
import type { SharedHistory } from "../../../service/replication/log.ts";
import { LogUnavailable } from "../../../service/replication/log.ts";
import { MemoryLog } from "../../../service/replication/memoryLog.ts";
import { prepareFolder } from "../../../service/store/prepareFolder.ts";
import { withResolvers } from "../../../service/withResolvers.ts";
import { folder } from "../command.ts";
import { callOf, historyOf, leaderOf, serviceOn, type Member } from "./processes.ts";
import { serverForTests } from "./serverForTests.ts";

const server = serverForTests();
const hour = 3_600_000;

const entry = (n: number): RolloutEntry => ({
  ...{ kind: "rollout", at: 1000 * n, org: "personal", app: "web", machine: null, fleet: "web" },
  ...{ token: "t", tokenName: null, urn: null, update: `u${Math.ceil(n / 5)}` },
  ...{ strategy: null, from: null, to: "nginx:1", phase: "rolling out", reason: null, members: [] },
  result: n % 5 === 0 ? "succeeded" : null,
});

const entriesOf = async (keeper: Keeper): Promise<Stored[]> =>
  (await keeper.ask("entries", [{ limit: 1_000_000 }])) as Stored[];

/** Numbers of entries, as `seq:at`. */
const numbers = async (keeper: Keeper): Promise<string[]> =>
  (await entriesOf(keeper)).map(({ seq, at }) => `${seq}:${at / 1000}`);

const rolloutsOf = async (keeper: Keeper) =>
  (await keeper.ask("rollouts", [{ org: "personal", limit: 1000 }, 1e12, { begun: 0, heard: new Map() }])) as object[];

/** A member: its own file, and what it does with the shared history. */
interface Played {
  readonly keeper: Keeper;
  sent: SentHistory | undefined;
}

const step = fc.record({
  who: fc.integer({ min: 0, max: 2 }),
  what: fc.constantFrom("add", "add", "send", "lead", "follow", "fail"),
  count: fc.integer({ min: 1, max: 4 }),
});

test("after any leaders, crashes and lost answers, every member has what was sent, in order, and the same rollouts", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const log = new MemoryLog(() => 0);
      let [fails, epoch, n] = [false, 0, 0];
      // An answer may be lost after the request had its effect.
      const shared: SharedHistory = {
        historyEnd: () => log.historyEnd(),
        readHistory: (after) => log.readHistory(after),
        trimHistory: (...to) => log.trimHistory(...to),
        async addHistory(part) {
          const added = await log.addHistory(part);
          if (!fails) return added;
          fails = false;
          throw new LogUnavailable("lost");
        },
      };
      const members = [0, 1, 2].map((): Played => ({ keeper: new InMemory(usualBounds), sent: undefined }));
      const acknowledged: string[] = [];
      const send = async (member: Played): Promise<void> => {
        try {
          await member.sent?.send();
        } catch (error) {
          if (!(error instanceof LogUnavailable)) throw error;
        }
      };
      for (const { who, what, count } of steps) {
        const member = members[who] as Played;
        if (what === "fail") fails = true;
        if (what === "lead" && !member.sent) {
          for (const one of members) one.sent = undefined;
          epoch = (await log.takeOver(epoch, { id: `${who} ${n++}`, address: "" }, 0)) ?? 0;
          const { keeper } = member;
          member.sent = new SentHistory({
            ...{ shared, epoch, bounds: usualBounds },
            keeper: () => keeper,
            now: () => 0,
          });
          await member.sent.begin();
        }
        if (what === "add" && member.sent) {
          const lines = Array.from({ length: count }, () => JSON.stringify(entry(++n)));
          await member.keeper.ask("add", [lines.join("\n"), { at: 1000 * n, isOfUpdate: true }]);
        }
        if (what === "send") {
          await send(member);
          acknowledged.splice(0, Infinity, ...(await sentNumbers(log)));
        }
        if (what === "follow" && !member.sent) await catchUp(member.keeper, shared);
      }
      for (const member of members) if (member.sent) for (let i = 0; i < 2; i++) await send(member);
      const kept = await sentNumbers(log);
      expect(kept.slice(0, acknowledged.length)).toEqual(acknowledged);
      expect(kept.map((one) => Number(one.split(":")[0]))).toEqual(kept.map((_, i) => i + 1));
      for (const member of members) if (!member.sent) await catchUp(member.keeper, shared);
      if (kept.length === 0) return;
      const reader = new InMemory(usualBounds);
      await catchUp(reader, shared);
      for (const { keeper } of members) {
        expect(await numbers(keeper)).toEqual(kept);
        expect(await rolloutsOf(keeper)).toEqual(await rolloutsOf(reader));
      }
    }),
    { numRuns: 200 },
  );
});

/** What the shared history has, read by a member that had nothing. */
async function sentNumbers(log: MemoryLog): Promise<string[]> {
  const keeper = new InMemory(usualBounds);
  await catchUp(keeper, log);
  return numbers(keeper);
}

test("a database that was restored from an earlier backup gets again what it has lost", async () => {
  const [before, restored] = [new MemoryLog(() => 0), new MemoryLog(() => 0)];
  const keeper = new InMemory(usualBounds);
  for (const log of [before, restored]) {
    await log.takeOver(0, { id: "a", address: "" }, hour);
    const sent = new SentHistory({ shared: log, epoch: 1, bounds: usualBounds, keeper: () => keeper, now: () => 0 });
    await sent.begin();
    await keeper.ask("add", [JSON.stringify(entry(1)), { at: 1000, isOfUpdate: true }]);
    await sent.send();
  }
  expect(await sentNumbers(before)).toEqual(["1:1"]);
  expect(await sentNumbers(restored)).toEqual(["1:1", "2:1"]);
});

const pathsIn = (entries: readonly Stored[]): string[] =>
  entries.flatMap((one) => (one.kind === "request" ? [one.path] : []));

test("the next leader has the history of those before, also of one that was killed and comes back", async () => {
  const service = serviceOn(server.url);
  const [first, second] = [await service.start(), await service.start()];
  const leader = await leaderOf([first, second]);
  const standby = leader === first ? second : first;
  const create = (name: string) => callOf(standby)("POST", "/apps", { name, org_slug: "personal" });
  for (const name of ["one", "two"]) expect((await create(name)).status).toBe(201);
  // A request is added when its client has the answer.
  const has = (count: number, member: Member) =>
    expect.poll(async () => pathsIn(await historyOf(member)).length).toBe(count);
  await has(2, standby);
  const before = await historyOf(standby);
  // Until it is in the database.
  await expect
    .poll(async () =>
      Number((await server.query("SELECT max(last) AS last FROM machines_service.history")).rows[0]?.last),
    )
    .toBe(before.at(-1)?.seq);
  process.kill(leader.pid, "SIGKILL");
  await leaderOf([standby]);
  expect((await create("three")).status).toBe(201);
  await has(3, standby);
  const after = await historyOf(standby);
  expect(after.slice(0, before.length)).toEqual(before);
  // The first comes back, and leads again: the other hands over.
  const back = await service.start(leader.data);
  process.kill(standby.pid, "SIGTERM");
  await leaderOf([back]);
  expect(await historyOf(back)).toEqual(after);
  expect((await callOf(back)("POST", "/apps", { name: "four", org_slug: "personal" })).status).toBe(201);
  await has(4, back);
  const last = await historyOf(back);
  expect(last.map(({ seq }) => seq)).toEqual(last.map((_, i) => i + 1));
  expect(last.slice(0, after.length)).toEqual(after);
});

test("a member that begins to lead while it waits for the database lets go of the file at once", async () => {
  const keeper = historyKeeper(prepareFolder(folder()), {}, () => {});
  const { promise, resolve } = withResolvers();
  const shared: SharedHistory = Object.assign(new MemoryLog(() => 0), {
    historyEnd: () => promise.then(() => ({ seq: 5, epoch: 1 })),
  });
  const followed = new FollowedHistory(keeper, shared, () => {});
  const closed = followed.close();
  await expect
    .poll(() =>
      keeper.ask("position", []).then(
        () => "answers",
        () => "has ended",
      ),
    )
    .toBe("has ended");
  resolve();
  await closed;
});
