// The client's clock when the system clock jumps or the computer sleeps (F30).
import { afterEach, expect, test, vi } from "vitest";
import { steadyTime, systemClock } from "../../provider/client/clock.ts";

afterEach(() => vi.useRealTimers());

test("F30 the clock keeps advancing when the system clock is set back by an hour, and follows one set forward", () => {
  let [wall, ticks] = [1_000_000, 0];
  const now = steadyTime(
    () => wall,
    () => ticks,
  );
  const pass = (wallMs: number, ms: number): number => {
    [wall, ticks] = [wall + wallMs, ticks + ms];
    return now();
  };
  expect(pass(100, 100)).toBe(1_000_100);
  expect(pass(-3_600_000, 50)).toBe(1_000_150);
  expect(pass(100, 100)).toBe(1_000_250);
  expect(pass(7_200_000, 10)).toBe(4_600_200);
});

test("F30 a pause ends on time, even if the computer slept meanwhile", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"], now: Date.now() + 3600_000 });
  systemClock.now();
  let ended = false;
  void systemClock.sleep(300_000).then(() => (ended = true));
  await vi.advanceTimersByTimeAsync(29_000);
  expect(ended).toBe(false);
  // The computer slept for an hour: the clock has advanced, the timers have not.
  vi.setSystemTime(Date.now() + 3600_000);
  await vi.advanceTimersByTimeAsync(2000);
  expect(ended).toBe(true);
});

test("F04 a pause longer than the maximum timer does not end at once", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"], now: Date.now() + 3 * 3600_000 });
  const cancelled = new AbortController();
  let ended = "";
  const sleeping = systemClock.sleep(1e12, cancelled.signal).catch(() => (ended = "cancelled"));
  await vi.advanceTimersByTimeAsync(3600_000);
  expect(ended).toBe("");
  cancelled.abort(new Error("stop"));
  await sleeping;
  expect(ended).toBe("cancelled");
});
