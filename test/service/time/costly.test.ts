// Expensive answers of the console: made in pieces, once for all who ask, and remembered in proportion to their cost.
import { expect, test } from "vitest";
import fc from "fast-check";
import { Costly, Work } from "../../../service/time/costly.ts";
import { sortedInParts } from "../../../service/console/sorted.ts";

/** Expensive answers by a clock that stands still until it is moved. */
function withClock() {
  let now = 1000;
  let turns = 0;
  const nextTurn = async (): Promise<void> => {
    turns++;
    // Others take their time meanwhile.
    now += 100;
  };
  const costly = new Costly(nextTurn, () => now);
  return {
    costly,
    nextTurn,
    pass: (ms: number) => void (now += ms),
    now: () => now,
    turns: () => turns,
  };
}

test("a cheap answer is counted each time", async () => {
  const { costly, pass } = withClock();
  let n = 0;
  const count = () => {
    pass(1);
    return { n: ++n };
  };
  expect([await costly.answer("a", count), await costly.answer("a", count)]).toEqual([{ n: 1 }, { n: 2 }]);
});

test("an expensive answer is remembered for twenty times its cost, without the pauses", async () => {
  const { costly, pass } = withClock();
  let n = 0;
  const count = async (work: Work) => {
    for (let i = 0; i < 10; i++) {
      pass(5);
      await work.pause();
    }
    return { n: ++n };
  };
  expect(await costly.answer("a", count)).toEqual({ n: 1 });
  expect(await costly.answer("a", count)).toEqual({ n: 1, freshIn: 1000 });
  expect(await costly.answer("b", count)).toEqual({ n: 2 });
  pass(400);
  // Counting the other one took 1,050 ms with its pauses.
  expect(await costly.answer("a", count)).toEqual({ n: 3 });
  pass(999.5);
  expect(await costly.answer("a", count)).toEqual({ n: 3, freshIn: 1 });
  pass(0.5);
  expect(await costly.answer("a", count)).toEqual({ n: 4 });
});

test("an answer of the store is fresh until a commit, unless something was changed during its count", async () => {
  const { costly, pass } = withClock();
  let n = 0;
  let commits: number | undefined = 1;
  const count = () => {
    pass(50);
    return { n: ++n };
  };
  const ask = (act = count) => costly.answer("a", act, () => commits);
  expect([await ask(), await ask()]).toEqual([{ n: 1 }, { n: 1 }]);
  pass(5000);
  expect(await ask()).toEqual({ n: 1 });
  commits = undefined;
  expect(await ask()).toEqual({ n: 2 });
  expect(await ask()).toMatchObject({ n: 2, freshIn: expect.any(Number) });
  commits = 2;
  // It may have read a change that was not committed in the end.
  expect(await ask()).toMatchObject({ n: 2, freshIn: expect.any(Number) });
  pass(1000);
  const meanwhile = () => {
    commits = 3;
    return count();
  };
  expect(await ask(meanwhile)).toEqual({ n: 3 });
  expect(await ask()).toMatchObject({ n: 3, freshIn: expect.any(Number) });
  pass(1000);
  expect([await ask(), await ask()]).toEqual([{ n: 4 }, { n: 4 }]);
});

test("who asks during a count gets its answer, and is told to ask again", async () => {
  const { costly, pass } = withClock();
  let end = (): void => {};
  const over = new Promise<void>((resolve) => (end = resolve));
  let counts = 0;
  const count = async () => {
    counts++;
    pass(50);
    await over;
    return { n: 1 };
  };
  const [first, second] = [costly.answer("a", count), costly.answer("a", count)];
  end();
  expect([await first, await second, counts]).toEqual([{ n: 1 }, { n: 1, freshIn: 0 }, 1]);
});

test("a refusal is neither remembered nor lost", async () => {
  const { costly, pass } = withClock();
  const refuse = async (): Promise<object> => {
    pass(50);
    throw new Error("no");
  };
  const both = [costly.answer("a", refuse), costly.answer("a", refuse)];
  for (const one of both) await expect(one).rejects.toThrow("no");
  expect(await costly.answer("a", () => ({ n: 1 }))).toEqual({ n: 1 });
});

test("at most a hundred answers are remembered: the oldest one is forgotten", async () => {
  const { costly, pass } = withClock();
  let n = 0;
  const count = () => {
    pass(100);
    return { n: ++n };
  };
  for (let i = 0; i < 15; i++) await costly.answer(`${i}`, count);
  expect(await costly.answer("0", count)).toMatchObject({ n: 1, freshIn: expect.any(Number) });
  const quick = () => {
    pass(6);
    return { n: ++n };
  };
  for (let i = 0; i < 100; i++) await costly.answer(`quick ${i}`, quick);
  expect(await costly.answer("0", count)).toEqual({ n: 116 });
});

test("long work pauses after each 5 ms, and short work never does", async () => {
  const { pass, now, nextTurn, turns } = withClock();
  const work = new Work(now, nextTurn);
  for (let i = 0; i < 9; i++) {
    pass(1);
    await work.pause();
  }
  expect([turns(), work.ms]).toEqual([1, 9]);
  pass(1);
  await work.pause();
  expect([turns(), work.ms, work.isDue]).toEqual([2, 10, false]);
});

test("long lists are sorted in parts", async () => {
  const keys = fc.uniqueArray(fc.oneof(fc.integer()), { maxLength: 200 });
  await fc.assert(
    fc.asyncProperty(keys, fc.nat(6000), async (some, more) => {
      const all = [...some, ...Array.from({ length: more }, (_, i) => (i * 7919) % 104_729)];
      const work = new Work(
        () => 0,
        async () => {},
      );
      expect(await sortedInParts(all, work)).toEqual(all.toSorted((a, b) => a - b));
      const texts = all.map(String);
      expect(await sortedInParts(texts, work)).toEqual(texts.toSorted());
    }),
    { numRuns: 30 },
  );
});

test("long answers are remembered in their number, and the latest one whatever its length", async () => {
  const { costly, pass } = withClock();
  let n = 0;
  const list = (length: number) => () => {
    pass(5);
    return { n: ++n, all: Array.from({ length }, () => 1) };
  };
  const isKept = async (name: string, length: number): Promise<boolean> => {
    const before = n;
    await costly.answer(name, list(length));
    return n === before;
  };
  for (let i = 0; i < 50; i++) await costly.answer(`of 1,000: ${i}`, list(1000));
  // Each took 5 ms, and may be counted again after 100 ms.
  expect(await isKept("of 1,000: 49", 1000)).toBe(true);
  expect(await isKept("of 1,000: 32", 1000)).toBe(true);
  expect(await isKept("of 1,000: 10", 1000)).toBe(false);
  await costly.answer("of a million", list(1_000_000));
  expect(await isKept("of a million", 1_000_000)).toBe(true);
  expect(await isKept("of 1,000: 49", 1000)).toBe(false);
});
