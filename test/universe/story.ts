// Stories of the universe: people with their programs, and what goes wrong meanwhile. All of a story is drawn, so that it can be shrunk.
import fc from "fast-check";
import type { ResourceName } from "../../provider/registry.ts";
import { scenarioArbitrary, type Scenario } from "../faults/scenario.ts";
import { strikes } from "./fate.ts";

/** What goes wrong at a member, or in a network. */
export const disturbances = [
  ...["kill", "pause", "cut", "hand over", "clock of the log"],
  ...strikes,
  ...["requests late", "log late"],
] as const;

/** One thing that goes wrong. */
export interface Disturbance {
  readonly what: (typeof disturbances)[number];
  /** When, in seconds from the first run. */
  readonly at: number;
  /** For how many seconds. */
  readonly seconds: number;
  /** The member, counted from 0; the one that leads if it is past the last one. */
  readonly member: number;
}

/** A story. */
export interface Story {
  readonly members: number;
  /** What the networks do in detail. */
  readonly luck: number;
  /** A scenario for each person; they begin at the same time. */
  readonly people: readonly Scenario[];
  readonly disturbances: readonly Disturbance[];
}

/** Kinds whose names are an organization's own, so that people do not compete for them. */
const kinds: readonly ResourceName[] = [
  ...["Machine", "Fleet", "Volume", "Secret", "AppSecrets", "SecretKey", "Ciphertext", "Signature"],
  ...["IpAssignment", "DeployToken", "MachineMetadata", "MachineCommand", "VolumeSnapshot"],
] as ResourceName[];
const features = ["rename", "force", "guard", "hook", "target", "elsewhere", "continue", "option"];

const scenario: fc.Arbitrary<Scenario> = scenarioArbitrary(features, kinds).map(({ phases, ...rest }) => ({
  ...rest,
  phases: phases.slice(0, 3).map(({ verb, trouble, ...phase }) => ({
    ...phase,
    verb: verb === "forget" || verb === "import" ? "up" : verb,
    // What the service's planned faults do, members and networks do here.
    trouble: { ...trouble, faults: [] },
  })),
}));

const disturbance: fc.Arbitrary<Disturbance> = fc.record({
  what: fc.constantFrom(...disturbances),
  at: fc.integer({ min: 0, max: 20 }),
  seconds: fc.integer({ min: 1, max: 20 }),
  member: fc.nat(5),
});

/** Random stories. */
export const storyArbitrary: fc.Arbitrary<Story> = fc.record({
  members: fc.constantFrom(3, 2),
  luck: fc.nat(2 ** 31),
  people: fc.array(scenario, { minLength: 1, maxLength: 2 }),
  disturbances: fc.array(disturbance, { minLength: 0, maxLength: 12, size: "max" }),
});
