// Histories of concurrent clients are linearizable, with `kill -9` and faults in between; and the checker finds planted bugs.
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { wholeTest } from "../../support/patience.mts";
import { bugs, slowCommits } from "./bugs.ts";
import { findChecker, type Check } from "./check.ts";
import type { History } from "./history.ts";
import { startKillable } from "./killable.ts";
import { record } from "./run.ts";

/** `SEED=… npx vitest …` draws the histories of another seed. */
const seed = process.env["SEED"] ?? "20260101";
const count = 1000;
const slowCount = 90;
/** The number of histories in which a bug must be found. */
const most = 30;

describe("F28 histories of concurrent clients", () => {
  let found: Check | undefined;
  beforeAll(async () => {
    found = await findChecker();
  });
  beforeEach(({ skip }) => skip(found === undefined));
  const wrongIn = (histories: readonly History[]) => found?.(histories).filter(({ result }) => result !== "ok") ?? [];

  const cases = [
    { name: `${count} are linearizable`, count, changes: [] },
    { name: `${slowCount} are linearizable while commits are slow`, count: slowCount, changes: slowCommits },
  ];
  test.for(cases)("$name", { timeout: Math.max(wholeTest, count * 10_000) }, async (asked) => {
    const histories = await record(await startKillable(asked.changes), seed, asked.count);
    expect(wrongIn(histories)).toEqual([]);
    // Kills and faults hit most of them.
    expect(histories.filter(({ lost }) => lost > 0).length).toBeGreaterThan(asked.count / 2);
  });

  test.for(bugs)("the checker finds that $name", async (bug) => {
    const service = await startKillable(bug.changes);
    const isFound = async (from: number): Promise<boolean> => {
      const histories = await record(service, `${seed}-${from}`, 3);
      const problems = wrongIn(histories).flatMap((verdict) => (verdict.result === "illegal" ? verdict.problems : []));
      return problems.some((problem) => problem.startsWith(bug.object ?? ""));
    };
    let from = 0;
    while (from < most && !(await isFound(from))) from += 3;
    expect(from).toBeLessThan(most);
  });
});
