// Plays runs without faults with mutants of types: the campaign must find them too; see test/support/mutants.ts.
import { appendFileSync } from "node:fs";
import type { ResourceName } from "../../provider/registry.ts";
import { begin, mutantOf, type Verdict } from "../support/mutants.ts";
import { noTrouble } from "./faultPlans.ts";
import { play } from "./player.ts";
import type { Phase, Scenario } from "./scenario.ts";

const [, , file = "", ...names] = process.argv;

/** How many variants of inputs programs.ts has beside the first one, at the most. */
const variants = 13;

const up: Phase = { verb: "up", pick: 1, trouble: noTrouble };

/** A resource that is created, changed twice, and removed from its program; in each run with other variants of its inputs. */
const runsOf = (kind: ResourceName): Scenario[] =>
  Array.from({ length: Math.ceil(variants / 2) }, (_, i) => ({
    slots: [{ kind, pick: 1 + i, life: [0, 2 * i + 1, 2 * i + 2, null] }],
    phases: [up, up, up, up],
    parallel: 4,
  }));

const firstLine = (error: unknown): string =>
  String(error instanceof Error ? error.message : error).split("\n")[0] ?? "";

async function main(): Promise<void> {
  for (const mutant of names.map(mutantOf)) {
    const broken = begin(mutant);
    let foundBy: string | undefined;
    for (const run of runsOf(mutant.type)) foundBy ??= await play(run).then(() => undefined, firstLine);
    const verdict: Verdict = { mutant: mutant.name, hasActed: broken.end(), foundBy };
    appendFileSync(file, `${JSON.stringify(verdict)}\n`);
  }
}

void main();
