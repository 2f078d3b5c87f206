// Several members in virtual time: whatever dies, is paused or cut off (F97), nothing acknowledged is lost and no read is stale. Planted
// mistakes are found. FC_SEED selects other runs; `npm run test:all` plays more.
import { expect, test } from "vitest";
import { usualTiming } from "../../../service/replication/member.ts";
import { allOr, isThorough } from "../../support/extent.mts";
import { bugs, play, takeoverTime } from "./simulation.ts";

const first = Number(process.env["FC_SEED"] ?? 1);
const runs = isThorough ? 5000 : 30;

test("no acknowledged change is lost, and no read is stale", async () => {
  const done = { acknowledged: 0, reads: 0, takeovers: 0, replaced: 0 };
  for (let seed = first; seed < first + runs; seed++) {
    const { verdict, ...played } = await play(seed);
    expect(verdict, `seed ${seed}`).toBeUndefined();
    for (const name of Object.keys(done) as (keyof typeof done)[]) done[name] += played[name];
  }
  // The runs try what they are for.
  expect(done.acknowledged).toBeGreaterThan(runs * 10);
  expect(done.reads).toBeGreaterThan(runs * 10);
  expect(done.takeovers).toBeGreaterThan(runs * 2);
  expect(done.replaced).toBeGreaterThan(0);
});

test.each(allOr(bugs, bugs.slice(0, 3)))("the simulation finds a member that %s", async (bug) => {
  for (let seed = first; ; seed++) {
    expect(seed, "not found").toBeLessThan(first + 2000);
    const { verdict } = await play(seed, bug);
    if (verdict !== undefined) return;
  }
});

test.each([
  ["dies", 3000],
  ["hands over", 300],
] as const)("when the leader %s, another member leads within %i ms", async (how, most) => {
  const times: number[] = [];
  for (let seed = first; seed < first + 50; seed++) times.push(await takeoverTime(seed, how));
  expect(Math.max(...times)).toBeLessThanOrEqual(most);
  // A dead leader's lease is never shortened.
  if (how === "dies") expect(Math.min(...times)).toBeGreaterThan(usualTiming.leaseMs - usualTiming.renewMs - 100);
});
