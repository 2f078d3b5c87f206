// Runs that every campaign plays first: cases in which users have lost data or secrets, each as a short story.
import type { ResourceName } from "../../provider/registry.ts";
import { noTrouble } from "./faultPlans.ts";
import type { Slot } from "./programs.ts";
import type { Phase, Scenario } from "./scenario.ts";
import type { Way } from "./ways.ts";

const up = (way: Way = {}, pick = 0): Phase => ({ verb: "up", pick, trouble: noTrouble, way });
const same = (way: Way = {}, pick = 0): Phase => up({ ...way, stays: true }, pick);

/** A slot that stays the same in all versions, except for the given fields. */
const slot = (kind: ResourceName, more: Partial<Slot> = {}): Slot => ({ kind, pick: 1, life: [0, 0, 0, 0], ...more });
const renamed: Partial<Slot> = { renames: [null, "bare", null, null] };

const story = (slots: readonly Slot[], ...phases: readonly Phase[]): Scenario => ({ slots, phases, parallel: 4 });

/** An unfinished rename, because something else fails: the next up deletes the old name. */
const unfinished = (...kinds: readonly ResourceName[]): Scenario[] =>
  [{}, { elsewhere: true } as const].map((way) =>
    story(
      kinds.map((kind, i) => slot(kind, i === kinds.length - 1 ? renamed : {})),
      up(),
      up({ sibling: true }),
      same(way),
    ),
  );

/** The stories, by subject. */
export const examples: Readonly<Record<string, readonly Scenario[]>> = {
  "an unfinished rename": [
    ...unfinished("Secret"),
    ...unfinished("AppSecrets"),
    ...unfinished("PostgresCluster", "PostgresAttachment"),
    ...unfinished("Machine", "MachineMetadata"),
  ],
  "an unfinished rename, and the old name as a target": [
    story([slot("Secret", renamed)], up(), up({ sibling: true }), same({ target: true })),
    story([slot("AppSecrets", renamed)], up(), up({ sibling: true }), same({ target: true })),
  ],
  "a rename killed before its deletions": [{}, { elsewhere: true } as const].map((way) => ({
    ...story(
      // The volume is deleted first, and the run is killed at that point.
      [slot("Secret", renamed), slot("Volume", { life: [0, null, null, null] })],
      up(),
      { ...up(), trouble: { ...noTrouble, death: { request: 3, when: "before" } } },
      same(way),
    ),
    parallel: 1,
  })),
  "a rename with another value that is refused, and undone": (["Secret", "AppSecrets"] as const).map((kind) =>
    story(
      [slot(kind, { ...renamed, life: [0, 1, 1, 1] }), slot("Volume", { isGuarded: true, life: [0, 10, 10, 10] })],
      up(),
      up(),
      same(),
    ),
  ),
  "a secret that moves to another type": [
    story(
      [slot("Secret", { life: [0, null, null, null] }), slot("AppSecrets", { renames: [null, null, null, null] })],
      up(),
      up({ sibling: true }),
      same(),
    ),
  ],
  "an attachment with its name and its secret changed at once": [
    story(
      [slot("PostgresCluster"), slot("PostgresAttachment", { ...renamed, life: [0, 1, 0, 0] })],
      up(),
      up(),
      same(),
    ),
  ],
  "a forced replacement": (["replace", "taint"] as const).flatMap((force) => [
    story([slot("Volume", { isGuarded: true })], up(), same({ force }, 1), same(), same()),
    story([slot("PostgresCluster", { pick: 2, isGuarded: true })], up(), same({ force }, 1), same(), same()),
  ]),
  "an unfinished forced replacement, then a rename with an alias": (["replace", "taint"] as const).flatMap((force) =>
    [slot("Volume", { isGuarded: true }), slot("PostgresCluster", { pick: 2, isGuarded: true })].map((guarded) =>
      story(
        [{ ...guarded, renames: [null, "alias", "alias", null] }],
        up(),
        same({ force, sibling: true }, 1),
        up(),
        same({ elsewhere: true }),
        up(),
        same(),
      ),
    ),
  ),
  "a tainted key whose replacement was refused, renamed": [
    story(
      [slot("SecretKey", { isGuarded: true, option: "first", renames: [null, "alias", null, null] })],
      up(),
      same({ force: "taint" }, 1),
      up(),
    ),
  ],
  // Its replacement is under another name, and the program returns to the first name before the original is deleted.
  "an original whose deletion is pending, and whose name is wanted again": [
    story([slot("App", { life: [6, 0, 6, 0] }), slot("Machine")], up(), up({ force: "replace", sibling: true }), up()),
  ],
  "a renamed App with volumes": [
    { ...story([slot("Volume", { isGuarded: true })], up(), up(), same()), apps: [false, true, false, false] },
  ],
  // Without a fixed name the new one is created before the old one is deleted; after an update without a preview, only
  // undo-replacement restores it.
  "another plan of a cluster with databases": [
    story(
      [slot("PostgresCluster", { pick: 1, life: [0, 3, 0, 0] }), slot("PostgresDatabase", { isGuarded: true })],
      up(),
      up(),
      same(),
    ),
  ],
  // Removed in the same up, the database must first be deleted with `--target`: the engine uses its inputs from the state.
  "another plan of a cluster whose database is removed from the program": [
    story(
      [
        slot("PostgresCluster", { pick: 1, life: [0, 3, 0, 0] }),
        slot("PostgresDatabase", { isGuarded: true, life: [0, null, null, null] }),
      ],
      up(),
      up({}, 1),
    ),
  ],
  // The extension is deleted with the database, although it has no change of its own.
  "a database replaced under its name, with its contents": [
    story(
      [slot("Secret", { option: "strict" }), slot("PostgresExtension")],
      up(),
      same({ force: "replace" }, 3),
      same(),
    ),
  ],
  "another endpoint": [
    story([slot("Volume", { isGuarded: true }), slot("Secret")], up(), same({ isLost: true }), same()),
    {
      ...story([slot("Volume", { isGuarded: true })], up(), { ...same({ isLost: true }), verb: "refresh" }, same()),
    },
  ],
  "a create that is repeated after it succeeded in part": [
    story([slot("PostgresCluster", { pick: 2 })], {
      ...up({ hooks: 1 }),
      trouble: { ...noTrouble, faults: [{ operation: "postgres.get", when: "before", status: 401, nth: 1, times: 1 }] },
    }),
    story([slot("Machine", { pick: 2 })], {
      ...up({ hooks: 1 }),
      trouble: {
        ...noTrouble,
        faults: [{ operation: "machines.wait", when: "before", status: 400, nth: 1, times: 1 }],
      },
    }),
  ],
};
