// How a member carries out its decisions.
import { expect, test } from "vitest";
import { MemoryLog } from "../../../service/replication/memoryLog.ts";
import { Membership } from "../../../service/replication/membership.ts";
import { withResolvers } from "../../../service/withResolvers.ts";

const timing = { leaseMs: 2000, renewMs: 500, lookMs: 50, retryMs: 100 };

test("a leader that hands over ends its lease only after the answer to its last renewal, which would prolong it", async () => {
  let now = 0;
  const log = new MemoryLog(() => now);
  const renewal = withResolvers();
  const begun = withResolvers();
  const late = Object.assign(Object.create(log) as MemoryLog, {
    leadership: () => log.leadership(),
    takeOver: (...values: Parameters<MemoryLog["takeOver"]>) => log.takeOver(...values),
    async renew(...values: Parameters<MemoryLog["renew"]>) {
      begun.resolve();
      await renewal.promise;
      return log.renew(...values);
    },
    release: (epoch: number) => log.release(epoch),
    read: (...values: Parameters<MemoryLog["read"]>) => log.read(...values),
    latestSnapshot: () => log.latestSnapshot(),
  });
  const timers: (() => void)[] = [];
  let isEnded = false;
  const membership = new Membership({
    ...{ me: { id: "one", address: "http://one" }, mayLead: true, log: late, timing },
    copy: { position: { epoch: 0, seq: 0 }, apply: () => Promise.resolve(), replace: () => Promise.resolve() },
    now: () => now,
    after: (_ms, run) => void timers.push(run),
    lead: () => {},
    drain: () => Promise.resolve(),
    end: () => (isEnded = true),
    failed: (error) => {
      throw error;
    },
  });
  const pass = (ms: number): void => {
    now += ms;
    for (const run of timers.splice(0)) run();
  };
  pass(1);
  await expect.poll(() => membership.state.role).toBe("leading");
  pass(timing.renewMs);
  await begun.promise;
  membership.stop();
  await new Promise(setImmediate);
  expect(isEnded).toBe(false);
  renewal.resolve();
  await expect.poll(() => isEnded).toBe(true);
  expect((await log.leadership())?.leaseMs).toBe(0);
});
