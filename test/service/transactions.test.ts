// Several requests share a transaction: a failing part is rolled back, in the store and in memory, and nothing else.
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import { hang } from "../support/patience.mts";
import { ManualClock } from "../../service/time/clock.ts";
import { Timers, type TimerKind } from "../../service/time/timers.ts";
import { Store } from "../../service/store/database.ts";
import { BoundedCache } from "../../service/store/rowCache.ts";
import { withApp } from "./client.ts";

const stores: Store[] = [];
afterEach(() => {
  for (const store of stores.splice(0)) store.close();
});

function open(): Store {
  const store = new Store(":memory:");
  stores.push(store);
  store.db.exec("CREATE TABLE things (name TEXT)");
  return store;
}

const namesIn = (store: Store): string[] =>
  store.all<{ name: string }>("SELECT name FROM things").map(({ name }) => name);

class Failure extends Error {}

/** A part of a transaction: its writes, and nested parts. */
type Part = { readonly fails: boolean; readonly steps: readonly (string | Part)[] };

const part = fc.letrec<{ part: Part; step: string | Part }>((tie) => ({
  part: fc.record({ fails: fc.boolean(), steps: fc.array(tie("step"), { maxLength: 4 }) }),
  step: fc.oneof({ depthSize: "small" }, fc.string(), tie("part")),
})).part;

/** The remaining writes of a part. */
const remainingOf = ({ fails, steps }: Part): string[] =>
  fails ? [] : steps.flatMap((step) => (typeof step === "string" ? [step] : remainingOf(step)));

function play(store: Store, { fails, steps }: Part): void {
  for (const step of steps) {
    if (typeof step === "string") store.insert("things", { name: step });
    else
      try {
        store.attempt(() => play(store, step));
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
      }
  }
  if (fails) throw new Failure();
}

test("a failing part rolls back its own and nested writes, and nothing else", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 4 }), async (parts) => {
      const store = open();
      const done = parts.map(async (one) => store.write(() => play(store, one)));
      store.flush();
      const results = await Promise.allSettled(done);
      expect(results.map(({ status }) => status === "rejected")).toEqual(parts.map(({ fails }) => fails));
      expect(namesIn(store)).toEqual(parts.flatMap(remainingOf));
    }),
    { numRuns: 100 },
  );
});

test("a refused write removes from the cache only the values that it read or wrote", async () => {
  const store = open();
  const cache = new BoundedCache<string>(store, (text) => text.length, 1000);
  cache.set("before", "as it was");
  const done = store.write(() => cache.set("same group", "written"));
  const refused = async () =>
    store.write(() => {
      cache.set("before", "changed");
      cache.get("read", () => "read");
      throw new Failure();
    });
  await expect(refused()).rejects.toThrow(Failure);
  await done;
  const isCached = (key: string): boolean => cache.get(key, () => undefined) !== undefined;
  expect(["same group", "before", "read"].map(isCached)).toEqual([true, false, false]);
  const refusedAtOnce = async () =>
    store.write(() => {
      throw new Failure();
    });
  await expect(refusedAtOnce()).rejects.toThrow(Failure);
  expect(isCached("same group")).toBe(true);
});

test("a failing timer is retried later, and others due at the same time run once", async () => {
  const store = open();
  const clock = new ManualClock();
  const failed: string[] = [];
  let isBroken = true;
  const fire = (_kind: TimerKind, subject: string): void => {
    store.insert("things", { name: subject });
    if (subject === "broken" && isBroken) throw new Failure();
  };
  const timers = new Timers(store, clock, fire, (_error, kind) => void failed.push(kind));
  store.hooks = { beforeCommit: () => timers.runDue(), afterCommit: () => timers.arm() };
  await store.write(() => {
    for (const subject of ["one", "broken", "two"]) timers.after(10, "volume.step", subject);
  });
  clock.advance(10);
  expect([namesIn(store), failed]).toEqual([["one", "two"], ["volume.step"]]);
  isBroken = false;
  clock.advance(60_000);
  expect([namesIn(store), failed]).toEqual([["one", "two", "broken"], ["volume.step"]]);
});

test("a refusal is not sent before the change that caused it is durable", async () => {
  const { service, call, machines, machine } = await withApp();
  const { id } = await machine({ metadata: { a: "1" } });
  const { store } = service.context;
  // A fault that never acts counts the requests that have run.
  service.faults.add({ nth: 100, status: 500 });
  const flush = store.flush.bind(store);
  store.flush = () => {};
  const create = () => call("POST", machines, { name: "web", config: { image: "nginx" } });
  const pending = [create(), call("DELETE", `${machines}/${id}/metadata/a`)];
  const haveRun = (count: number) => expect.poll(() => service.faults.planned[0]?.seen, { timeout: hang }).toBe(count);
  await haveRun(2);
  pending.push(create(), call("GET", `${machines}/${id}/metadata/a`));
  await haveRun(4);
  const { hooks } = store;
  store.hooks = {
    ...hooks,
    beforeCommit() {
      throw new Failure();
    },
  };
  flush();
  Object.assign(store, { flush, hooks });
  expect((await Promise.all(pending)).map(({ status }) => status)).toEqual([500, 500, 500, 500]);
  expect((await create()).status).toBe(200);
  expect((await call("GET", `${machines}/${id}/metadata/a`)).body).toEqual({ value: "1" });
});
