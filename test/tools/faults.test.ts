// Every fault that the provider and the service must survive has a test that names it.
import { expect, test } from "vitest";
import { attacks } from "../attacks/catalogue.ts";
import { faults } from "../faults/catalogue.ts";
import type { Fault } from "../faults/fault.ts";
import { testsNaming } from "../../tools/generate/faults.ts";

const all = Object.entries<Fault>(faults);
const onWalls = Object.values(attacks).flatMap((ofWall) => Object.entries<Fault>(ofWall));

test.each([
  ["a test", all, "test/**/*.test.ts"],
  [
    "a test with the real CLI, for the faults most harmful to users",
    all.filter(([, fault]) => fault.decisive),
    "test/e2e/*.test.ts",
  ],
  ["a test below test/attacks/, for the attacks", onWalls, "test/attacks/**/*.test.ts"],
] as const)("every fault has %s", (_, chosen, pattern) => {
  expect(chosen.length).toBeGreaterThan(0);
  const named = testsNaming(process.cwd(), pattern);
  expect(chosen.map(([id]) => id).filter((id) => (named.get(id) ?? []).length === 0)).toEqual([]);
});
