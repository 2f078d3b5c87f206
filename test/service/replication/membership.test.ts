// How a member carries out its decisions.
import { expect, test } from "vitest";
import { MemoryLog } from "../../../service/replication/memoryLog.ts";
import { Membership } from "../../../service/replication/membership.ts";
import { withResolvers } from "../../../service/withResolvers.ts";

const timing = { leaseMs: 2000, renewMs: 500, lookMs: 50, retryMs: 100 };

/** What a member has besides its log and its clock. */
const around = {
  ...{ me: { id: "one", address: "http://one" }, mayLead: true, timing },
  copy: { position: { epoch: 0, seq: 0 }, apply: () => Promise.resolve(), replace: () => Promise.resolve() },
  lead() {},
  drain: () => Promise.resolve(),
  failed(error: unknown) {
    throw error;
  },
};

test("a leader whose computer has slept answers nothing before its lease is renewed", async () => {
  let [now, ahead] = [0, 1000];
  const log = new MemoryLog(() => now);
  const timers: (() => void)[] = [];
  const membership = new Membership({
    ...around,
    log,
    now: () => now,
    ahead: () => ahead,
    after: (_ms, run) => void timers.push(run),
    end() {},
  });
  const pass = (ms: number): void => {
    now += ms;
    for (const run of timers.splice(0)) run();
  };
  // It takes over once its copy has reached the end of the log.
  pass(1);
  await expect.poll(() => timers.length).toBe(1);
  pass(timing.lookMs);
  await expect.poll(() => membership.state.role).toBe("leading");
  expect(membership.mayAnswer).toBe(true);
  ahead -= 3600_000;
  expect(membership.mayAnswer).toBe(true);
  ahead += 3600_000 + timing.leaseMs;
  expect(membership.mayAnswer).toBe(false);
  const { unsure } = membership;
  pass(timing.renewMs);
  await unsure;
  expect(membership.mayAnswer).toBe(true);
});

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
    ...around,
    log: late,
    now: () => now,
    after: (_ms, run) => void timers.push(run),
    end: () => (isEnded = true),
  });
  const pass = (ms: number): void => {
    now += ms;
    for (const run of timers.splice(0)) run();
  };
  // It takes over once its copy has reached the end of the log.
  pass(1);
  await expect.poll(() => timers.length).toBe(1);
  pass(timing.lookMs);
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
