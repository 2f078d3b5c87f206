// Which updates of an App's Machines may begin: how many may be down at a time, and who goes first.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Machine } from "../../provider/client/machine.ts";
import { admissible, conditionOf, isUnlimited, limitOf, type Candidate } from "../../provider/machines/admission.ts";

const condition = fc.constantFrom("up" as const, "failing" as const, "resting" as const);
const candidates = (prefix: string) =>
  fc
    .array(condition, { maxLength: 40 })
    .map((all): Candidate[] => all.map((one, i) => ({ id: `${prefix}${i}`, condition: one })));

const situation = fc.record({
  waiting: candidates("w"),
  underway: candidates("u"),
  limit: fc.integer({ min: 1, max: 20 }),
  failing: fc.nat({ max: 30 }),
});

const machine = (values: object): Machine => ({ id: "m", state: "started", ...values });

describe("the limit", () => {
  test.each([
    [{ percent: 100 / 3 }, 10, 3],
    [{ percent: 100 / 3 }, 3, 1],
    [{ percent: 100 / 3 }, 6, 2],
    [{ percent: 25 }, 10, 2],
    [{ percent: 1 }, 10, 1],
    [{ machines: 4 }, 3, 4],
  ])("%j of %i Machines is %i", (allowed, total, limit) => expect(limitOf(allowed, total)).toBe(limit));

  test("a third of any number is at least one and at most a third, and 100% is no limit", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10_000 }), (total) => {
        const limit = limitOf({ percent: 100 / 3 }, total);
        expect(limit).toBe(Math.max(1, Math.trunc(total / 3)));
      }),
    );
    expect(isUnlimited({ percent: 100 })).toBe(true);
    expect(isUnlimited({ percent: 99 })).toBe(false);
    expect(isUnlimited({ machines: 1000 })).toBe(false);
  });
});

describe("the condition of a Machine", () => {
  const exited = (exit: object) => [{ type: "exit", status: "stopped", request: { exit_event: exit } }];
  test.each([
    ["that runs without checks", {}, "up"],
    ["whose checks pass", { checks: [{ status: "passing" }] }, "up"],
    ["one of whose checks does not pass", { checks: [{ status: "passing" }, { status: "critical" }] }, "failing"],
    ["without traffic", { cordoned: true }, "resting"],
    ["that failed", { state: "failed" }, "failing"],
    ["that crashed", { state: "stopped", events: exited({ exit_code: 1, requested_stop: false }) }, "failing"],
    ["that was stopped", { state: "stopped", events: exited({ exit_code: 1, requested_stop: true }) }, "resting"],
    ["that starts", { state: "starting" }, "resting"],
  ])("the condition of a Machine %s is known", (_, values, expected) =>
    expect(conditionOf(machine(values))).toBe(expected),
  );

  test("a Machine that is gone costs nothing", () => expect(conditionOf(undefined)).toBe("resting"));
});

describe("updates that may begin", () => {
  test("updates never interrupt more Machines than the limit, never wait if they cost nothing, and never all wait", () => {
    fc.assert(
      fc.property(situation, ({ waiting, underway, limit, failing }) => {
        const begun = admissible({ waiting, underway, limit, failing });
        const serving = (all: readonly Candidate[]) => all.filter((one) => one.condition === "up").length;
        expect(begun.every((one) => waiting.includes(one))).toBe(true);
        if (serving(begun) > 0)
          expect(serving(begun) + serving(underway)).toBeLessThanOrEqual(Math.max(1, limit - failing));
        for (const one of waiting) if (one.condition !== "up") expect(begun).toContain(one);
        if (waiting.length > 0 && underway.length === 0) expect(begun.length).toBeGreaterThan(0);
      }),
    );
  });

  test("nothing that serves is interrupted before the failing ones have passed", () => {
    fc.assert(
      fc.property(situation, (given) => {
        const isFailing = [...given.waiting, ...given.underway].some((one) => one.condition === "failing");
        const serving = admissible(given).filter((one) => one.condition === "up");
        if (isFailing) expect(serving).toEqual([]);
      }),
    );
  });
});
