// The choice of the Machine for a request.
import fc from "fast-check";
import { expect, test } from "vitest";
import { choose, type Load } from "../../service/proxy/balance.ts";

const load = fc.record({ open: fc.nat(10), soft: fc.nat(10), hard: fc.integer({ min: 1, max: 12 }) });

test("the chosen one is below its limit, and no preferred one has fewer requests", () => {
  fc.assert(
    fc.property(fc.array(load, { maxLength: 8 }), fc.nat(), (loads, turn): void => {
      const chosen = choose(loads, turn);
      const free = loads.filter(({ open, hard }) => open < hard);
      if (!chosen) {
        expect(free).toEqual([]);
        return;
      }
      expect(free).toContain(chosen);
      const isPreferred = ({ open, soft }: Load): boolean => open < soft;
      const better = free.filter(isPreferred);
      if (better.length > 0) expect(isPreferred(chosen)).toBe(true);
      for (const other of better.length > 0 ? better : free) expect(chosen.open).toBeLessThanOrEqual(other.open);
    }),
  );
});

test("Machines with the same load take turns", () => {
  const loads = [1, 2, 3].map(() => ({ open: 0, soft: 20, hard: Infinity }));
  const chosen = [0, 1, 2].map((turn) => choose(loads, turn));
  expect(new Set(chosen).size).toBe(3);
});
