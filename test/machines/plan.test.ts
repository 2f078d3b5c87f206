// The plan of a Machine: the steps of an update, a rollback and an end, over pairs of configurations and states, against a model of the
// service.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Machine } from "../../provider/client/machine.ts";
import {
  after,
  created,
  failed,
  mayRollBack,
  observed,
  plan,
  planEnd,
  refusalOf,
  type KnownMachine,
  type Observed,
  type Step,
  type WantedMachine,
} from "../../provider/machines/plan.ts";
import { isJob, type Config, type Power } from "../../provider/machines/settings.ts";

const image = "registry.example.com/web:1";
const passing = ["created", "starting", "stopping", "replacing"] as const;
const resting = ["stopped", "suspended", "failed"] as const;
const configs: readonly Config[] = [
  { image },
  { image: `${image}2` },
  { image, metadata: { team: "web" } },
  { image, metadata: { owner: "ops", team: "db" } },
  { image, env: { A: "1" }, metadata: { team: "web" }, services: [{ internalPort: 80, protocol: "tcp" }] },
  { image, restart: { policy: "no" } },
  { image, autoDestroy: true },
];

const arbitrary = fc.record({
  state: fc.constantFrom("started", ...passing, ...resting),
  /** The state in which a Machine comes to rest that is between two states. */
  settlesIn: fc.constantFrom("started", ...resting),
  crashed: fc.boolean(),
  cordoned: fc.constantFrom(undefined, false, true),
  limit: fc.constantFrom(undefined, 128),
  old: fc.constantFrom(...configs),
  next: fc.constantFrom(...configs),
  wantedState: fc.constantFrom(undefined, "started", "stopped", "suspended"),
  wantedCordoned: fc.boolean(),
  newSecrets: fc.boolean(),
  newTriggers: fc.constantFrom("none", "restart", "reload", "both"),
  unfinished: fc.boolean(),
  rollback: fc.boolean(),
});
type Case = typeof arbitrary extends fc.Arbitrary<infer T> ? T : never;

const theirs = { theirs: "1" };

/** What the case makes of the two sides. */
function sides(one: Case): { live: Machine; known: KnownMachine; wanted: WantedMachine } {
  const exit = {
    id: "2",
    type: "exit",
    status: "stopped",
    request: { exit_event: { exit_code: 1, requested_stop: false } },
  };
  const config = { ...one.old, metadata: { ...theirs, ...one.old.metadata } };
  const events = one.crashed ? [exit] : [];
  const live = {
    id: "m",
    version: "v1",
    state: one.state,
    cordoned: one.cordoned,
    config,
    events,
  } as unknown as Machine;
  const has = (trigger: string) => one.newTriggers === trigger || one.newTriggers === "both";
  return {
    live,
    known: {
      config: one.old,
      minSecretsVersion: 1,
      version: "v1",
      unfinished: one.unfinished,
      memoryLimitMb: one.limit,
    },
    wanted: {
      ...{ config: one.next, state: one.wantedState, cordoned: one.wantedCordoned, memoryLimitMb: one.limit },
      minSecretsVersion: one.newSecrets ? 2 : 1,
      onUpdateFailure: one.rollback ? "rollback" : "keep",
      ...(has("restart") ? { restart: { triggers: { at: "1" } } } : {}),
      ...(has("reload") ? { reload: { triggers: { at: "1" }, signal: "SIGHUP" } } : {}),
    },
  };
}

const nothing: Case = {
  ...{ state: "started", settlesIn: "started", crashed: false, cordoned: false, limit: undefined },
  ...{ old: { image }, next: { image }, wantedState: undefined, wantedCordoned: false, newSecrets: false },
  ...{ newTriggers: "none", unfinished: false, rollback: false },
};

/** A service with one Machine. */
class Model {
  live: Machine;
  version = 1;
  readonly settlesIn: string;

  constructor(live: Machine, settlesIn: string) {
    this.live = live;
    this.settlesIn = settlesIn;
  }

  /** Carries out a step and returns what its answer shows. */
  answer(step: Step): Partial<Machine> | undefined {
    const set = (change: Partial<Machine>): void => void (this.live = { ...this.live, ...change });
    switch (step.kind) {
      case "update":
      case "roll back": {
        expect(step.body?.currentVersion).toBe(`v${this.version}`);
        const { config, skipLaunch, skipServiceRegistration } = step.body ?? {};
        const cordoned = skipServiceRegistration === true ? true : this.live.cordoned;
        set({ config, version: `v${++this.version}`, cordoned, state: skipLaunch ? "stopping" : "replacing" });
        return this.live;
      }
      case "metadata": {
        const metadata: Record<string, string | null> = { ...this.live.config?.metadata, ...step.metadata };
        const kept = Object.entries(metadata).filter((entry): entry is [string, string] => entry[1] !== null);
        set({ config: { ...this.live.config, metadata: Object.fromEntries(kept) } as Machine["config"] });
        return undefined;
      }
      case "cordon":
      case "uncordon":
        return set({ cordoned: step.kind === "cordon" }) as undefined;
      case "start":
        // The service refuses a start, a stop and a suspension in between.
        expect(resting).toContain(this.live.state);
        return set({ state: "starting", events: [] }) as undefined;
      case "restart":
        expect(this.live.state).toBe("started");
        return undefined;
      case "stop":
        return set({ state: "stopping" }) as undefined;
      case "suspend":
        expect(this.live.state).toBe("started");
        return set({ state: "suspending" }) as undefined;
      case "destroy":
        return { state: (this.live = { ...this.live, state: "destroying" }).state };
      case "read":
      case "memory":
        return this.live;
      case "signal":
        return undefined;
      case "wait":
        return this.#wait(step);
    }
  }

  #wait(step: Step & { kind: "wait" }): Partial<Machine> {
    const { until } = step;
    const isEnded = until === "ready" && isJob(step.expected.config, step.expected.state);
    const state =
      until === "settled"
        ? this.settlesIn
        : until === "ready"
          ? isEnded
            ? "stopped"
            : "started"
          : until === "at rest"
            ? "stopped"
            : until;
    this.live = { ...this.live, state };
    return until === "ready" || until === "stopped" || until === "suspended" ? this.live : { state };
  }
}

/** Carries out a plan on the model, up to a step. */
function follow(model: Model, from: Observed, next: (seen: Observed) => Step[], isLast = (_: Step) => false) {
  let seen = from;
  const steps: Step[] = [];
  for (let [step] = next(seen); step; [step] = next(seen)) {
    steps.push(step);
    expect(steps.length, JSON.stringify(steps)).toBeLessThan(10);
    if (isLast(step)) return { seen, steps };
    seen = after(seen, step, model.answer(step));
  }
  return { seen, steps };
}

const update = (one: Case) => {
  const { live, known, wanted } = sides(one);
  const model = new Model(live, one.settlesIn);
  return {
    model,
    wanted,
    known,
    first: plan(wanted, known, observed(live)),
    ...follow(model, observed(live), (seen) => plan(wanted, known, seen)),
  };
};
const kindsOf = (steps: readonly Step[]): string[] =>
  steps.map((step) => (step.kind === "wait" ? `wait ${step.until}` : step.kind));

/** Checks a property of pairs of configurations and states. */
const always = (check: (one: Case) => void): void => fc.assert(fc.property(arbitrary, check), { numRuns: 300 });

describe("the plan of an update of a Machine", () => {
  test("has no step for an unchanged Machine", () => {
    for (const old of configs.filter((config) => !isJob(config))) {
      for (const [state, wantedState] of [
        ["started", undefined],
        ["stopped", undefined],
        ["suspended", undefined],
        ["stopped", "stopped"],
        ["suspended", "suspended"],
      ] as const)
        expect(update({ ...nothing, old, next: old, state, wantedState }).steps).toEqual([]);
    }
  });

  test("ends, and makes the Machine what is wanted", () => {
    always((one) => {
      const { model, wanted, steps, seen } = update(one);
      const { live } = model;
      const { metadata: _, ...config } = live.config ?? {};
      const { metadata = {}, ...rest } = one.next;
      expect(config).toEqual(rest);
      expect(live.config?.metadata).toEqual({ ...theirs, ...metadata });
      if (one.cordoned !== undefined || kindsOf(steps).includes("update"))
        expect(live.cordoned ?? false).toBe(wanted.cordoned);
      if (wanted.state !== undefined && !isJob(one.next, wanted.state)) expect(live.state).toBe(wanted.state);
      // What is returned is what the service shows.
      expect(seen.live).toEqual(live);
    });
  });

  test("sends each request once at most, and waits first for a Machine between two states", () => {
    // The model refuses a start or a suspension that comes too early.
    always((one) => {
      const requests = kindsOf(update(one).steps).filter((kind) => !kind.startsWith("wait"));
      expect(new Set(requests).size).toBe(requests.length);
    });
  });

  test("says all steps before the first one, unless a Machine between two states settles or a job ends", () => {
    always((one) => {
      const { first, steps } = update(one);
      if (kindsOf(first).includes("wait settled") || isJob(one.next, one.wantedState)) return;
      expect(kindsOf(steps)).toEqual(kindsOf(first));
    });
  });

  test("posts a new version only for the versioned part of the configuration, or for new secrets", () => {
    always((one) => {
      const { metadata: _, ...old } = one.old;
      const { metadata: __, ...next } = one.next;
      const differs = JSON.stringify(old) !== JSON.stringify(next);
      expect(kindsOf(update(one).steps).includes("update")).toBe(differs || one.newSecrets);
    });
  });

  test("leaves metadata, power and triggers to the new version, if there is one", () => {
    always((one) => {
      const kinds = kindsOf(update(one).steps);
      if (!kinds.includes("update")) return;
      for (const other of ["metadata", "start", "stop", "restart", "signal"]) expect(kinds).not.toContain(other);
    });
  });

  test("leaves a stopped or suspended Machine as it is if the program does not set its state (R10)", () => {
    always((one) => {
      if (one.wantedState !== undefined || one.crashed || !["stopped", "suspended"].includes(one.state)) return;
      const { steps, model } = update(one);
      const isRenewed = kindsOf(steps).includes("update");
      expect(model.live.state).toBe(isRenewed ? "stopped" : one.state);
      expect(kindsOf(steps)).not.toContain("start");
    });
  });

  test("starts a crashed or failed Machine and waits for it", () => {
    for (const one of [
      { ...nothing, state: "stopped", crashed: true } as const,
      { ...nothing, state: "failed" } as const,
    ])
      expect(kindsOf(update(one).steps)).toEqual(["start", "wait ready"]);
  });

  test("restarts or signals only a Machine that runs and is otherwise unchanged", () => {
    always((one) => {
      const kinds = kindsOf(update(one).steps);
      const triggered = kinds.filter((kind) => kind === "restart" || kind === "signal");
      const runsOn =
        one.state === "started" && (one.wantedState ?? "started") === "started" && !kinds.includes("update");
      const wanted = one.newTriggers === "reload" ? "signal" : "restart";
      expect(triggered).toEqual(runsOn && one.newTriggers !== "none" ? [wanted] : []);
    });
  });

  test("waits for what it begins, and for what the last update did not reach", () => {
    always((one) => {
      const { steps } = update(one);
      const kinds = kindsOf(steps);
      const begins = ["update", "start", "stop", "suspend", "restart"].some((kind) => kinds.includes(kind));
      const settles = kinds.includes("wait settled");
      const repeats =
        one.unfinished && one.newTriggers === "none" && one.state === "started" && one.wantedState !== "stopped";
      const waits = kinds.some((kind) => kind.startsWith("wait"));
      expect(waits).toBe(
        begins ||
          settles ||
          (repeats && (one.wantedState ?? "started") === "started") ||
          (waits && isJob(one.next, one.wantedState)),
      );
    });
  });

  test("sets the memory limit of a Machine that runs in the end", () => {
    always((one) => {
      const { steps, model } = update(one);
      expect(kindsOf(steps).includes("memory")).toBe(one.limit !== undefined && model.live.state === "started");
    });
  });
});

describe("the plan of a new Machine", () => {
  test("waits for the wanted power state, and changes nothing else", () => {
    always((one) => {
      const { live, wanted, known } = sides(one);
      const target: Power = wanted.state ?? "started";
      const model = new Model({ ...live, state: "starting" }, "started");
      const from = created(model.live, target === "stopped" ? target : "started");
      const kinds = kindsOf(follow(model, from, (seen) => plan(wanted, known, seen)).steps);
      const waits = {
        started: ["wait ready"],
        stopped: ["wait stopped"],
        suspended: isJob(one.next, "suspended") ? ["wait ready"] : ["wait started", "suspend", "wait suspended"],
      }[target];
      const limits = one.limit !== undefined && model.live.state === "started";
      expect(kinds).toEqual(limits ? [...waits, "memory"] : waits);
    });
  });
});

describe("the plan of a rollback", () => {
  test("restores the previous configuration, with what others have written since, in its power state", () => {
    always((one) => {
      const { live, wanted, known } = sides({ ...one, rollback: true });
      const model = new Model(live, one.settlesIn);
      const next = (seen: Observed) => plan(wanted, known, seen);
      const isLast = (step: Step) => step.kind === "wait" && step.until !== "settled";
      const { seen } = follow(model, observed(live), next, isLast);
      if (!mayRollBack(wanted, known, seen)) return;
      // Another client writes meanwhile.
      const metadata = { ...model.live.config?.metadata, later: "1" };
      model.live = { ...model.live, state: "failed", config: { ...model.live.config, metadata } as Machine["config"] };
      const { steps } = follow(model, failed(seen), next);
      expect(kindsOf(steps).slice(0, 2)).toEqual(["read", "roll back"]);
      expect(model.live.config).toEqual({ ...one.old, metadata: { ...theirs, later: "1", ...one.old.metadata } });
      if (!isJob(one.old, one.wantedState))
        expect(model.live.state).toBe(one.state === "started" ? "started" : "stopped");
      if (one.cordoned !== undefined) expect(model.live.cordoned).toBe(one.cordoned);
    });
  });

  test("happens once, for a new version, if the program requests it and the Machine was well before", () => {
    const { wanted, known, seen } = update({ ...nothing, next: { image: `${image}2` }, rollback: true });
    expect(mayRollBack(wanted, known, seen)).toBe(true);
    expect(mayRollBack({ ...wanted, onUpdateFailure: "keep" }, known, seen)).toBe(false);
    expect(mayRollBack(wanted, { ...known, unfinished: true }, seen)).toBe(false);
    expect(mayRollBack(wanted, known, { ...seen, done: ["start"] })).toBe(false);
    expect(mayRollBack(wanted, known, { ...seen, before: { ...seen.before, state: "failed" } })).toBe(false);
    expect(mayRollBack(wanted, known, { ...failed(seen), done: ["update"] })).toBe(false);
  });
});

describe("the plan of a Machine's end", () => {
  test("ends traffic first, then the program, then the Machine; each once", () => {
    always((one) => {
      const { live } = sides(one);
      const model = new Model(live, one.settlesIn);
      const { steps } = follow(model, observed(live), (seen) => planEnd(one.old, false, seen));
      const serves = (one.old.services ?? []).length > 0 && one.cordoned !== true;
      const isPassing = ["stopping", "replacing"].includes(one.state);
      const at = isPassing ? one.settlesIn : one.state;
      const runs = !["created", ...resting].includes(at);
      expect(kindsOf(steps)).toEqual([
        ...(serves ? ["cordon"] : []),
        ...(isPassing ? ["wait settled"] : []),
        ...(runs ? ["stop", "wait at rest"] : []),
        ...["destroy", "wait destroyed"],
      ]);
      expect(steps.find((step) => step.kind === "destroy")).toEqual({ kind: "destroy", force: false });
    });
  });

  test("destroys a Machine that a wait did not find: it may be hidden for a moment (F13)", () => {
    for (const [state, until] of [
      ["started", "at rest"],
      ["stopping", "settled"],
    ] as const) {
      const before = observed({ ...sides(nothing).live, state });
      const stopping = state === "started" ? after(before, { kind: "stop", body: {} }, undefined) : before;
      const hidden = after(stopping, { kind: "wait", until }, { state: "destroyed" });
      expect(kindsOf(planEnd(undefined, false, hidden))).toEqual(["destroy", "wait destroyed"]);
    }
  });

  test("destroys a Machine that must be killed at once, and waits for one that is leaving", () => {
    const at = (state: string) => observed({ ...sides(nothing).live, state });
    expect(planEnd(undefined, true, at("started"))).toEqual([
      { kind: "destroy", force: true },
      { kind: "wait", until: "destroyed" },
    ]);
    expect(kindsOf(planEnd(undefined, false, at("destroying")))).toEqual(["wait destroyed"]);
    expect(planEnd(undefined, false, at("destroyed"))).toEqual([]);
  });
});

describe("an update of a Machine is refused", () => {
  const key = { appName: "shop", machineId: "m" };

  test("if others have changed it meanwhile, unless they made it what is wanted", () => {
    always((one) => {
      const { live, wanted, known } = sides({ ...one, old: { image } });
      const seen = (config: Config): Machine => ({ ...live, version: "v2", config });
      expect(refusalOf(key, wanted, known, live)).toBeUndefined();
      expect(refusalOf(key, wanted, known, seen({ image: "registry.example.com/other:1" }))?.code).toBe(
        "stale-version",
      );
      expect(refusalOf(key, wanted, known, seen({ ...wanted.config, metadata: {} }))).toBeUndefined();
    });
  });

  test("if the Machine is gone", () => {
    const { live, wanted, known } = sides(nothing);
    expect(refusalOf(key, wanted, known, { ...live, state: "destroyed" })?.message).toMatch(
      /destroyed outside of this program/,
    );
  });
});
