// A leader's transactions reach the log once and in order, also when its answers are lost (F98); nothing is acknowledged before.
import fc from "fast-check";
import { expect, test } from "vitest";
import { LeaderLog } from "../../../service/replication/leaderLog.ts";
import { LogUnavailable, type Log } from "../../../service/replication/log.ts";
import { MemoryLog } from "../../../service/replication/memoryLog.ts";
import { Store } from "../../../service/store/database.ts";
import { isThorough } from "../../support/extent.mts";
import { schemaOfCopies } from "../../../service/store/memberCopy.ts";
import { contentsOf, emptyCopy, followLog } from "./copies.ts";

const seed = Number(process.env["FC_SEED"] ?? 20_260_101);
const hour = 3600_000;
const [one, two] = [
  { id: "one", address: "" },
  { id: "two", address: "" },
];

/** What happens to the next request to the log. */
const outcomes = ["answered", "lost before it", "lost after it"] as const;
type Outcome = (typeof outcomes)[number];

/** A log whose requests meet these outcomes in order, and then none. */
function unreliable(log: Log, planned: readonly Outcome[]): Log {
  const left = [...planned];
  const meeting =
    <Values extends readonly unknown[], T>(request: (...values: Values) => Promise<T>) =>
    async (...values: Values): Promise<T> => {
      const outcome = left.shift() ?? "answered";
      if (outcome === "lost before it") throw new LogUnavailable(outcome);
      const answer = await request(...values);
      if (outcome === "lost after it") throw new LogUnavailable(outcome);
      return answer;
    };
  return Object.assign(Object.create(log) as Log, {
    append: meeting((entries: Parameters<Log["append"]>[0]) => log.append(entries)),
    end: meeting(() => log.end()),
  });
}

async function leading(planned: readonly Outcome[] = []) {
  const log = new MemoryLog(() => 0);
  await log.takeOver(0, one, 0);
  let isLost = false;
  const lost = (): void => void (isLost = true);
  const pause = () => new Promise<void>((resolve) => void setImmediate(resolve));
  const unsure = () => undefined;
  const store = new Store(
    ":memory:",
    (db) => new LeaderLog(db, schemaOfCopies(), { log: unreliable(log, planned), epoch: 1, pause, lost, unsure }),
  );
  const acknowledged: string[] = [];
  /** Adds an organization, in a transaction of its own. */
  const add = (slug: string): Promise<void> => {
    const done = store.write(() => store.insert("orgs", { slug, name: slug })).then(() => void acknowledged.push(slug));
    store.flush();
    return done;
  };
  return { log, store, add, acknowledged, isLost: () => isLost };
}

/** Returns the organizations that a copy has, which has the log. */
function reading(log: Log): () => Promise<unknown[]> {
  const copy = emptyCopy();
  let last = 0;
  return async () => {
    last = await followLog(copy, log, last);
    const rows = copy.prepare("SELECT slug FROM orgs ORDER BY id").all();
    return rows.map(({ slug }) => slug);
  };
}

test("whatever answers are lost, each transaction is in the log once and in order", async () => {
  const property = fc.asyncProperty(
    fc.array(fc.constantFrom(...outcomes), { maxLength: 12 }),
    fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }),
    async (planned, waits) => {
      const { log, store, add, acknowledged } = await leading(planned);
      const orgs = reading(log);
      const all: Promise<void>[] = [];
      for (const [i, isAwaited] of waits.entries()) {
        all.push(add(`org-${i}`));
        if (isAwaited) await all.at(-1);
        // What was acknowledged is in the log at that moment.
        expect(await orgs()).toEqual(expect.arrayContaining(acknowledged));
      }
      await Promise.all(all);
      const wanted = waits.map((_, i) => `org-${i}`);
      expect([acknowledged, await orgs()]).toEqual([wanted, wanted]);
      const copy = emptyCopy();
      await followLog(copy, log);
      expect(contentsOf(copy)).toEqual(contentsOf(store.db));
    },
  );
  await fc.assert(property, { seed, numRuns: isThorough ? 2000 : 40 });
});

test("reads wait for the changes that they see", async () => {
  const { log, store, add } = await leading(["lost before it", "lost before it"]);
  expect(store.unsettled).toBeUndefined();
  const added = add("acme");
  expect(store.get("SELECT slug FROM orgs")).toEqual({ slug: "acme" });
  await store.unsettled;
  expect([await log.end(), store.unsettled]).toEqual([{ seq: 1, epoch: 1 }, undefined]);
  await added;
});

test("a transaction that changes nothing is acknowledged after those before it, and is in no entry", async () => {
  const { log, store, add, acknowledged } = await leading(["lost after it"]);
  void add("acme");
  const nothing = store.write(() => {}).then(() => acknowledged.push("nothing"));
  store.flush();
  await nothing;
  expect([acknowledged, await log.end()]).toEqual([["acme", "nothing"], { seq: 1, epoch: 1 }]);
});

test("a part that is rolled back is in no entry, and neither is a change outside of a transaction", async () => {
  const { log, store, add } = await leading();
  await add("acme");
  await expect(async () =>
    store.write(() => {
      store.insert("orgs", { slug: "gone", name: "gone" });
      throw new Error("refused");
    }),
  ).rejects.toThrow("refused");
  store.flush();
  expect(() => store.insert("orgs", { slug: "outside", name: "outside" })).toThrow(/outside of a transaction/);
  await add("other");
  expect(await reading(log)()).toEqual(["acme", "other"]);
});

test.each(outcomes)("a leader that was replaced acknowledges nothing more (%s)", async (outcome) => {
  const { log, add, acknowledged, isLost } = await leading(["answered", outcome]);
  await add("acme");
  await log.takeOver(1, two, hour);
  void add("late");
  await expect.poll(isLost).toBe(true);
  void add("later");
  expect([acknowledged, await reading(log)()]).toEqual([["acme"], ["acme"]]);
});
