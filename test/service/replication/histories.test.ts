// Histories of clients of several members are linearizable, while processes, the network and the database fail (F97,
// F98, F99).
import { DatabaseSync } from "node:sqlite";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { storeFile } from "../../../service/store/database.ts";
import { bugsOfMembers } from "../histories/bugs.ts";
import { findChecker, type Check } from "../histories/check.ts";
import type { History } from "../histories/history.ts";
import { startMembers, type Members } from "../histories/members.ts";
import { record } from "../histories/run.ts";
import { contentsOf } from "./copies.ts";

/** `SEED=… npx vitest …` draws the histories of another seed. */
const seed = process.env["SEED"] ?? "20260101";
const count = 1000;
/** The number of histories in which a bug must be found. */
const most = 200;

const contentsAt = ({ all }: Members) =>
  all.map(({ data }) => {
    const db = new DatabaseSync(storeFile(data), { readOnly: true });
    const contents = contentsOf(db);
    db.close();
    return contents;
  });

describe("histories of clients of three members", () => {
  let found: Check | undefined;
  beforeAll(async () => {
    found = await findChecker();
  });
  beforeEach(({ skip }) => skip(found === undefined));
  const wrongIn = (histories: readonly History[]) => found?.(histories).filter(({ result }) => result !== "ok") ?? [];

  test(`${count} are linearizable, and all copies are equal`, { timeout: count * 10_000 }, async () => {
    const members = await startMembers(seed);
    const histories = await record(members, seed, count);
    expect(wrongIn(histories)).toEqual([]);
    // Disturbances hit them.
    expect(await members.epoch()).toBeGreaterThan(count / 20);
    expect(histories.some(({ lost }) => lost > 0)).toBe(true);
    await expect.poll(() => new Set(contentsAt(members).map((one) => String(one["copy_position"]))).size).toBe(1);
    const [first, ...more] = contentsAt(members);
    for (const one of more) expect(one).toEqual(first);
  });

  for (const bug of bugsOfMembers)
    test(`the checker finds that ${bug.name}`, async () => {
      const members = await startMembers(seed, bug.changes);
      const isFound = async (from: number): Promise<boolean> =>
        wrongIn(await record(members, `${seed}-${from}`, members.atOnce)).some(({ result }) => result === "illegal");
      let from = 0;
      while (from < most && !(await isFound(from))) from += members.atOnce;
      expect(from).toBeLessThan(most);
    });
});
