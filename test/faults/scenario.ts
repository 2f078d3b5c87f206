// Random runs of the campaign: a program through its versions, in phases of up, refresh, import and destroy with faults.
// player.ts plays them.
import fc from "fast-check";
import type { ResourceName } from "../../provider/registry.ts";
import { noTrouble, troubleArbitrary, type Trouble } from "./faultPlans.ts";
import { designArbitrary, type Design, type Slot } from "./programs.ts";
import { features, limitedWay, wayArbitrary, type Way } from "./ways.ts";

/** The command of one phase, and its faults. */
export interface Phase {
  readonly verb: "up" | "refresh" | "import" | "destroy" | "forget";
  /** Selects the resource that is imported, forgotten, forced or a target, and the reaction to a refusal. */
  readonly pick: number;
  readonly trouble: Trouble;
  readonly way?: Way;
}

/** One run of the campaign. */
export interface Scenario extends Design {
  readonly phases: readonly Phase[];
  readonly parallel: number;
}

const verb = fc.oneof(
  { arbitrary: fc.constant("up" as const), weight: 8 },
  { arbitrary: fc.constant("forget" as const), weight: 1 },
  { arbitrary: fc.constant("refresh" as const), weight: 1 },
  { arbitrary: fc.constant("import" as const), weight: 1 },
  { arbitrary: fc.constant("destroy" as const), weight: 1 },
);

const what = { verb, pick: fc.nat(7) };

/** Effects of several consecutive runs show best if some of them succeed. */
const phase: fc.Arbitrary<Phase> = fc.oneof(
  fc.record({ ...what, trouble: fc.constant(noTrouble), way: wayArbitrary(true) }),
  fc.record({ ...what, trouble: troubleArbitrary, way: wayArbitrary(false) }),
);

/** Random runs with only these parts and kinds of resources. */
export const scenarioArbitrary = (
  only: readonly string[] = features,
  kinds?: readonly ResourceName[],
): fc.Arbitrary<Scenario> =>
  fc
    .record({
      design: designArbitrary(kinds),
      phases: fc.array(phase, { minLength: 1, maxLength: 6, size: "max" }),
      parallel: fc.constantFrom(1, 4),
    })
    .map(({ design, phases, parallel }) => ({ ...limited(design, phases, only), parallel }));

function limited(
  { slots, apps }: Design,
  phases: readonly Phase[],
  only: readonly string[],
): Omit<Scenario, "parallel"> {
  const isMoving = apps !== undefined && only.includes("app");
  // Unknown objects stay in an App, which then cannot be deleted.
  const mayForget = only.includes("forget") && !isMoving;
  return {
    slots: slots.map((slot) => limitedSlot(slot, isMoving ? only.filter((part) => part !== "option") : only)),
    ...(isMoving ? { apps } : {}),
    phases: phases.map(({ verb: one, way = {}, ...rest }) => ({
      ...rest,
      verb: one === "forget" && !mayForget ? "refresh" : one,
      way: limitedWay(way, only),
    })),
  };
}

/** A slot without the parts that a campaign omits. */
function limitedSlot({ isGuarded, renames, option, ...slot }: Slot, only: readonly string[]): Slot {
  return {
    ...slot,
    ...(isGuarded && only.includes("guard") ? { isGuarded } : {}),
    ...(renames && only.includes("rename") ? { renames } : {}),
    ...(option && only.includes("option") ? { option } : {}),
  };
}
