// What a checker reports while the service cannot store it.
import { expect, test } from "vitest";
import { Checker } from "../../service/runtime/checker.ts";
import type { RuntimeEvents, Subject } from "../../service/runtime/runtime.ts";

test("results that the service could not store are reported again once a second, however often they change", async () => {
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  let [probes, reports] = [0, 0];
  const checks = { alive: { type: "tcp", port: 8080, interval: "1s" } };
  const machine = { id: "m", version: "v", config: { checks } } as unknown as Subject;
  const events = {
    checked: (_machine: string, _status: string, _results: object, lost: () => void) => {
      reports += 1;
      lost();
    },
  } as unknown as RuntimeEvents;
  // Each result differs from the one before: no port, or nothing that listens there.
  const endpoint = () => (++probes % 2 === 0 ? undefined : "127.0.0.1:1");
  const checker = new Checker(machine, events, { endpoint, listens: () => Promise.resolve(true) });
  try {
    await expect.poll(() => probes, { timeout: 60_000 }).toBeGreaterThanOrEqual(8);
    expect(reports).toBeLessThanOrEqual(probes + seconds() + 1);
  } finally {
    checker.end();
  }
});
