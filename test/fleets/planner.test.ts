// The planner of rollouts: what it promises for every fleet, strategy and sequence of results (F50).
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { totalOf } from "../../provider/fleets/placement.ts";
import {
  Best,
  bringsUp,
  isReleaseDue,
  mostAttempts,
  plan,
  planAll,
  promised,
  type Member,
  type Step,
  type Wanted,
} from "../../provider/fleets/planner.ts";

const regions = ["ams", "iad", "fra"];
const strategies = ["rolling", "canary", "bluegreen", "immediate"] as const;

const wanted: fc.Arbitrary<Wanted> = fc
  .record({
    regions: fc.dictionary(fc.constantFrom(...regions), fc.integer({ min: 0, max: 4 }), { maxKeys: 3 }),
    strategy: fc.constantFrom(...strategies),
    maxUnavailable: fc.integer({ min: 0, max: 3 }),
    maxSurge: fc.integer({ min: 0, max: 3 }),
    canaries: fc.integer({ min: 1, max: 3 }),
    isObserved: fc.constant(false),
    isPromoted: fc.boolean(),
    keepOld: fc.boolean(),
    needsRelease: fc.boolean(),
    isTied: fc.boolean(),
  })
  // With volumes, there are no extra members.
  .map((one) => (one.isTied ? { ...one, maxSurge: 0 } : one))
  .filter(({ maxUnavailable, maxSurge }) => maxUnavailable + maxSurge > 0);

const members: fc.Arbitrary<Member[]> = fc
  .array(
    fc.record({
      region: fc.constantFrom(...regions),
      template: fc.constantFrom("current" as const, "outdated" as const, "outdated" as const, "metadata" as const),
      isReady: fc.boolean(),
      phase: fc.constantFrom(
        "serving" as const,
        "serving" as const,
        "serving" as const,
        "green" as const,
        "kept" as const,
        "lost" as const,
      ),
      createdAt: fc.integer({ min: 10, max: 40 }).map((day) => `2026-01-${day}`),
    }),
    { maxLength: 9 },
  )
  .map((list) =>
    list.map((one, i) => ({
      ...one,
      name: `web-${one.region}-${i + 1}`,
      isReady: one.isReady && one.phase !== "kept" && one.phase !== "lost",
    })),
  );

const noNames = { used: new Set<string>(), taken: new Set<string>() };

/** A service that applies steps in any order, as the rollout would. */
class World {
  readonly members = new Map<string, Member>();
  readonly underway: Step[] = [];
  #day = 100;
  constructor(list: readonly Member[]) {
    for (const one of list) this.members.set(one.name, one);
  }

  begin(step: Step): void {
    this.underway.push(step);
    const one = this.members.get(step.name);
    if (step.kind === "create")
      this.#set({
        name: step.name,
        region: step.region,
        template: "current",
        isReady: false,
        phase: step.isGreen ? "green" : "serving",
        createdAt: `2026-02-${this.#day++}`,
      });
    else if (one && step.kind === "move") {
      this.#set({ ...one, isReady: false, movesTo: { name: step.to, region: step.region } });
      this.#set({
        ...{ name: step.to, region: step.region, template: "current", isReady: false, phase: "serving" },
        createdAt: `2026-02-${this.#day++}`,
      });
    } else if (one && ["update", "destroy", "keep"].includes(step.kind)) this.#set({ ...one, isReady: false });
    if (one && step.kind === "update") this.#set({ ...one, template: "current", isReady: false });
  }

  end(step: Step): void {
    this.underway.splice(this.underway.indexOf(step), 1);
    const one = this.members.get(step.name);
    if (!one) return;
    if (step.kind === "move") {
      const moved = this.members.get(step.to);
      if (moved) this.#set({ ...moved, isReady: true });
      this.members.delete(step.name);
    } else if (step.kind === "destroy") this.members.delete(step.name);
    else if (step.kind === "expose") this.#set({ ...one, phase: "serving" });
    else if (step.kind === "keep") this.#set({ ...one, phase: "kept", isReady: false });
    else if (step.kind === "relabel") this.#set({ ...one, template: "current" });
    // One that was kept is started without traffic.
    else this.#set({ ...one, template: "current", isReady: true, phase: one.phase === "kept" ? "green" : one.phase });
  }

  #set(one: Member): void {
    this.members.set(one.name, one);
  }

  ready(): number {
    return [...this.members.values()].filter(({ isReady, phase }) => isReady && phase === "serving").length;
  }
}

interface Played {
  readonly state: "complete" | "canary" | "green" | "stuck" | "failed";
  readonly world: World;
  readonly steps: readonly Step[];
}

/** Plays a rollout to its end. `pick` chooses which step under way ends next, and whether it fails. */
function play(
  first: Wanted,
  world: World,
  pick: (count: number) => number,
  fails: (step: Step) => boolean,
  check: (begun: readonly Step[], broughtUp: ReadonlyMap<string, number>) => void,
  /** Called before each plan: members may crash. */
  crash: () => void = () => undefined,
): Played {
  let want = { ...first, needsRelease: first.needsRelease && isReleaseDue(first, [...world.members.values()]) };
  const steps: Step[] = [];
  const broughtUp = new Map<string, number>();
  let hasFailed = false;
  for (let turn = 0; turn < 500; turn++) {
    crash();
    const { begin, state } = hasFailed
      ? { begin: [], state: world.underway.length > 0 ? ("working" as const) : ("failed" as const) }
      : plan({
          wanted: want,
          members: [...world.members.values()],
          underway: world.underway,
          fleet: "web",
          ...noNames,
          broughtUp,
        });
    // What is under way ends first.
    if (state === "stuck" && world.underway.length > 0) hasFailed = true;
    else if (state !== "working") return { state, world, steps };
    for (const step of begin) {
      steps.push(step);
      world.begin(step);
    }
    check(begin, broughtUp);
    expect(world.underway.length, "a plan that does nothing never ends").toBeGreaterThan(0);
    const step = world.underway[pick(world.underway.length)];
    if (!step) continue;
    if (fails(step)) {
      hasFailed = true;
      world.underway.splice(world.underway.indexOf(step), 1);
      continue;
    }
    world.end(step);
    if (bringsUp(step)) broughtUp.set(step.name, (broughtUp.get(step.name) ?? 0) + 1);
    if (step.kind === "observe") want = { ...want, isObserved: true };
    if (step.kind === "release") want = { ...want, needsRelease: false };
  }
  throw new Error(`the rollout does not end: ${JSON.stringify(steps.slice(-20))}`);
}

/** What is wanted while hosts cannot be reached: what is lost is not replaced where its volume is. */
function reachableIn({ isTied, regions: counts }: Wanted, list: readonly Member[]): Readonly<Record<string, number>> {
  const lost = (region: string): number =>
    isTied ? list.filter((one) => one.phase === "lost" && one.region === region).length : 0;
  return Object.fromEntries(
    Object.entries(counts).map(([region, count]) => [region, Math.max(0, count - lost(region))]),
  );
}

describe("F50: a rollout", () => {
  test("a rollout keeps its promises at every step, also when steps fail, and is empty afterwards", () => {
    fc.assert(
      fc.property(
        wanted,
        members,
        fc.array(fc.nat(), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 0, max: 9 }),
        (want, list, order, failing) => {
          const world = new World(list);
          const before = world.ready();
          const reachable = reachableIn(want, list);
          const total = totalOf(reachable);
          const isSafe = want.strategy === "rolling" || want.strategy === "canary";
          const floor = want.strategy === "immediate" ? 0 : Math.min(before, promised({ ...want, regions: reachable }));
          let at = 0;
          const next = (): number => order[at++ % order.length] ?? 0;
          const check = (begun: readonly Step[]): void => {
            expect(world.ready(), JSON.stringify(begun)).toBeGreaterThanOrEqual(floor);
            if (isSafe)
              for (const region of regions) {
                const inRegion = (some: Iterable<Member>): number =>
                  [...some].filter((one) => one.region === region).length;
                const allowed = Math.max(
                  inRegion(list),
                  (want.regions[region] ?? 0) +
                    want.maxSurge +
                    inRegion(list.filter(({ phase }) => phase !== "serving")),
                );
                expect(inRegion(world.members.values())).toBeLessThanOrEqual(allowed);
              }
            if (begun.some(({ kind }) => kind === "release")) expect(world.underway).toHaveLength(1);
            expect(
              list.some((one) => one.phase === "lost" && begun.some(({ name }) => name === one.name)),
              "a step for a lost member",
            ).toBe(false);
            expect(new Set(world.underway.map(({ name }) => name)).size, "one step for each member").toBe(
              world.underway.length,
            );
            const names = begun.filter(({ kind }) => kind === "create").map(({ name }) => name);
            expect(new Set(names).size).toBe(names.length);
            // Blue is never touched before green is committed.
            if (
              want.strategy === "bluegreen" &&
              begun.some((step) =>
                list.some((one) => one.name === step.name && one.phase === "serving" && one.template === "outdated"),
              )
            )
              expect(
                [...world.members.values()].filter(
                  ({ template, isReady, phase }) => template !== "outdated" && isReady && phase === "serving",
                ).length,
              ).toBeGreaterThanOrEqual(total);
          };
          const fails = (step: Step): boolean => failing > 6 && step.kind !== "observe" && next() % 7 === 0;
          const named = ({ kind, name }: Step): string => `${kind} ${name}`;
          const previewed = planAll({ wanted: want, members: list, fleet: "web", ...noNames })
            .flat()
            .map(named);
          const played = play(want, world, (count) => next() % count, fails, check);
          const hasTemplate = list.some(({ template, phase }) => template !== "outdated" && phase !== "lost");
          const releases = played.steps.filter(({ kind }) => kind === "release").length;
          expect(releases).toBe(want.needsRelease && totalOf(want.regions) > 0 && !hasTemplate ? 1 : 0);
          // A step that fails may leave others to be done in another way.
          if (played.state === "failed") return;
          // After an interrupted rollout, or with a move to another region, the order of the steps decides which member is
          // one too many.
          const isOrdinary = (one: Member): boolean =>
            one.isReady &&
            one.phase === "serving" &&
            one.template === list[0]?.template &&
            (want.regions[one.region] ?? 0) > 0;
          if (list.every(isOrdinary)) expect(previewed).toEqual(expect.arrayContaining(played.steps.map(named)));
          const left = [...world.members.values()];
          for (const region of regions) {
            const count = left.filter((one) => one.region === region && one.phase === "serving").length;
            // A move takes capacity, so it may have to wait for the promotion.
            if (!want.isTied && played.state !== "green") expect(count).toBeGreaterThanOrEqual(reachable[region] ?? 0);
            // Before the canaries are promoted, an extra member or one of another region may be needed for the capacity.
            if (played.state === "complete") expect(count).toBe(reachable[region] ?? 0);
          }
          if (played.state === "complete") {
            expect(
              left
                .filter(({ phase }) => phase === "serving")
                .every(({ template, isReady }) => template === "current" && isReady),
            ).toBe(true);
          } else
            expect([want.strategy, want.isPromoted]).toEqual([
              played.state === "green" ? "bluegreen" : "canary",
              false,
            ]);
          expect(
            plan({
              wanted: { ...want, isObserved: true, needsRelease: false },
              members: left,
              underway: [],
              fleet: "web",
              ...noNames,
              broughtUp: new Map(),
            }).begin,
          ).toEqual([]);
        },
      ),
      { numRuns: Number(process.env["FLEET_RUNS"] ?? 1000) },
    );
  });

  test("a rollout removes the same members in whichever order its steps end", () => {
    const wanted: Wanted = {
      ...{
        regions: { ams: 1, fra: 2 },
        strategy: "rolling",
        maxUnavailable: 0,
        maxSurge: 2,
        canaries: 1,
        isTied: false,
      },
      ...{ isObserved: false, isPromoted: false, keepOld: false, needsRelease: false },
    };
    const list = [1, 2, 3].map((n): Member => ({
      ...{ name: `web-fra-${n}`, region: "fra", template: "outdated", isReady: true, phase: "serving" },
      createdAt: "2026-01-10",
    }));
    for (const order of [0, 1]) {
      const { steps } = play(
        wanted,
        new World(list),
        (count) => Math.min(order, count - 1),
        () => false,
        () => undefined,
      );
      expect(steps).toContainEqual({ kind: "destroy", name: "web-fra-3" });
      expect(steps.filter(({ kind }) => kind === "update")).toHaveLength(2);
    }
  });

  test("a rollout that failed is repaired by another template, however many members are down", () => {
    fc.assert(
      fc.property(wanted, members, fc.array(fc.nat(), { minLength: 1, maxLength: 40 }), (want, list, order) => {
        const world = new World(list);
        let at = 0;
        const next = (): number => order[at++ % order.length] ?? 0;
        const first = play(
          want,
          world,
          (count) => next() % count,
          (step) => step.kind === "update" || step.kind === "create",
          () => undefined,
        );
        // The corrected template: nothing has it yet.
        for (const one of [...world.members.values()]) world.members.set(one.name, { ...one, template: "outdated" });
        const reachable = reachableIn(want, list);
        const floor =
          want.strategy === "immediate" ? 0 : Math.min(world.ready(), promised({ ...want, regions: reachable }));
        const second = play(
          { ...want, isPromoted: true },
          world,
          (count) => next() % count,
          () => false,
          () => {
            expect(world.ready()).toBeGreaterThanOrEqual(floor);
          },
        );
        expect([first.state, second.state]).toEqual([expect.anything(), "complete"]);
        expect(world.ready()).toBe(totalOf(reachable));
      }),
      { numRuns: Number(process.env["FLEET_RUNS"] ?? 1000) },
    );
  });
});

describe("F53: a rollout whose members crash after they were ready", () => {
  test("ends, brings each of them up a few times at most, and interrupts no other one while one is down", () => {
    fc.assert(
      fc.property(
        wanted,
        members,
        fc.array(fc.nat(), { minLength: 1, maxLength: 40 }),
        fc.array(fc.nat(4), { minLength: 1, maxLength: 40 }),
        (want, list, order, crashes) => {
          const world = new World(list);
          let [at, turn] = [0, 0];
          let before: readonly Member[] = [];
          const isUnderway = (name: string): boolean => world.underway.some((step) => step.name === name);
          const crash = (): void => {
            const able = [...world.members.values()].filter(
              (one) => one.template !== "outdated" && one.isReady && one.phase === "serving" && !isUnderway(one.name),
            );
            const chosen = able[crashes[turn++ % crashes.length] ?? 0];
            if (chosen) world.members.set(chosen.name, { ...chosen, isReady: false });
            before = [...world.members.values()];
          };
          const counts = new Map<string, number>();
          const check = (begun: readonly Step[], broughtUp: ReadonlyMap<string, number>): void => {
            for (const step of begun.filter(bringsUp)) counts.set(step.name, (counts.get(step.name) ?? 0) + 1);
            const isDown = (one: Member): boolean =>
              one.template !== "outdated" &&
              one.phase === "serving" &&
              !one.isReady &&
              (broughtUp.get(one.name) ?? 0) > 0;
            if (want.strategy !== "rolling" || !before.some(isDown)) return;
            const isReadyOld = (name: string): boolean =>
              before.some((one) => one.name === name && one.template === "outdated" && one.isReady);
            expect(begun.filter(({ kind, name }) => kind === "update" && isReadyOld(name))).toEqual([]);
          };
          const played = play(
            { ...want, isPromoted: true },
            world,
            (count) => (order[at++ % order.length] ?? 0) % count,
            () => false,
            check,
            crash,
          );
          expect(["complete", "stuck", "failed"]).toContain(played.state);
          for (const count of counts.values()) expect(count).toBeLessThanOrEqual(mostAttempts);
        },
      ),
      { numRuns: Number(process.env["FLEET_RUNS"] ?? 1000) },
    );
  });

  test("a rollout whose members crash after they were ready makes progress only as often as it has members, however often these crash", () => {
    fc.assert(
      fc.property(members, fc.array(fc.tuple(fc.nat(8), fc.boolean()), { maxLength: 200 }), (list, changes) => {
        const best = new Best();
        const all = list.map((one) => ({ ...one }));
        let progress = 0;
        for (const [i, isReady] of changes) {
          const one = all[i];
          if (one) all[i] = { ...one, template: "current", isReady };
          if (best.isBeatenBy(all, { ams: 3 })) progress++;
        }
        expect(progress).toBeLessThanOrEqual(2 * (all.length + 1));
      }),
    );
  });
});
