// Runs the lifecycle suite with every mutant of its type, in place of both bindings; see mutants.ts.
import { appendFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import type { ResourceName } from "../../provider/registry.ts";
import { bindings, type Binding } from "./binding.ts";
import { begin, mutantsOf, type Mutant, type Verdict } from "./mutants.ts";

/** Where the verdicts go, if this run is about mutants. */
const file = process.env["PULUMI_MACHINES_MUTANTS"];
const only = new RegExp(process.env["PULUMI_MACHINES_ONLY_MUTANTS"] ?? "");

interface Round extends Omit<Binding, "name"> {
  readonly name: string;
  readonly mutant?: Mutant;
}

/** What the suite runs on. */
export const roundsOf = (type: string): readonly Round[] =>
  file === undefined
    ? bindings
    : bindings.slice(0, 1).flatMap(({ name, start }) =>
        mutantsOf(type as ResourceName)
          .filter((mutant) => only.test(mutant.name))
          .map((mutant) => ({ name: `with ${mutant.name}, ${name}`, start, mutant })),
      );

/** Breaks the type in the tests of this group, up to the first one that fails. */
export function breakOnPurpose(mutant: Mutant | undefined): void {
  if (mutant === undefined || file === undefined) return;
  let broken: ReturnType<typeof begin> | undefined;
  let foundBy: string | undefined;
  beforeAll(() => void (broken = begin(mutant)));
  beforeEach(({ skip }) => foundBy !== undefined && skip());
  afterEach(({ task }) => {
    if (task.result?.state === "fail") foundBy ??= task.name;
  });
  afterAll(() => {
    const verdict: Verdict = { mutant: mutant.name, hasActed: broken?.end() ?? false, foundBy };
    appendFileSync(file, `${JSON.stringify(verdict)}\n`);
  });
}
