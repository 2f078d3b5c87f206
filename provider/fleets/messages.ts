// What a rollout says: how many Machines run the new and how many the old configuration, what is being done, and what failed.
import type { Clock } from "../client/clock.ts";
import { MachinesError, messageOf } from "../client/errors.ts";
import type { Machine } from "../client/machine.ts";
import { equal } from "../core/values.ts";
import { machineView, membersOf, type Found, type Rollout } from "./members.ts";
import { regionsOf, totalOf } from "./placement.ts";
import type { Step } from "./planner.ts";

/** A step in words. */
export function describe(step: Step): string {
  switch (step.kind) {
    case "release":
      return "run the release command";
    case "create":
      return `create ${step.name}${step.isGreen ? " without traffic" : ""}${step.copyOf === undefined ? "" : `, with a copy of the volume of ${step.copyOf}`}`;
    case "move":
      return `move ${step.name} with its volume to ${step.to}`;
    case "update":
      return `update ${step.name}${step.isRepair ? ", which is down" : ""}`;
    case "relabel":
      return `change ${step.name} in place`;
    case "await":
      return `start ${step.name} if it is stopped, and wait until it passes`;
    case "expose":
      return `let traffic reach ${step.name}`;
    case "destroy":
      return `destroy ${step.name}`;
    case "keep":
      return `stop ${step.name} and keep it`;
    case "observe":
      return "watch the canaries";
  }
}

/** What a step does, as a heading of the Machines that it is done with. */
const doing: Readonly<Record<Step["kind"], string>> = {
  release: "running the release command in",
  create: "creating",
  move: "moving",
  update: "updating",
  relabel: "changing in place",
  await: "waiting for",
  expose: "letting traffic reach",
  destroy: "destroying",
  keep: "stopping and keeping",
  observe: "watching the",
};

/** What a step does, and has done, beside the name of its Machine. */
const beside: Readonly<Partial<Record<Step["kind"], readonly [during: string, after: string]>>> = {
  create: ["creating", "created, and ready"],
  move: ["creating, with a copy of the volume", "moved here, and ready"],
  update: ["updating", "updated, and ready"],
  relabel: ["changing in place", "changed in place"],
  await: ["waiting until it is ready", "ready"],
  expose: ["letting traffic reach it", "has traffic"],
  destroy: ["destroying", "destroyed"],
  keep: ["stopping", "stopped, and kept"],
};

/** Shows beside a Machine what a step does with it; with the result, what it did. */
export function showStep({ call: { views }, fleet }: Rollout, step: Step, ended?: { readonly error: unknown }): void {
  const [during, after] = beside[step.kind] ?? [];
  if (during === undefined || after === undefined) return;
  const name = step.kind === "move" ? step.to : step.name;
  const text = ended === undefined ? during : ended.error === undefined ? after : `failed: ${reasonOf(ended.error)}`;
  views?.status(machineView(fleet, name), text);
}

/** Names that a line of progress has at most: terminals cut its end. */
const mostNames = 3;

/** What is under way, for example `updating web-ams-3`. */
export function underwayText(steps: readonly Step[]): string {
  const names = new Map<string, string[]>();
  for (const { kind, name } of steps.slice(0, mostNames))
    names.set(doing[kind], [...(names.get(doing[kind]) ?? []), name]);
  const more = steps.length > mostNames ? `, and ${steps.length - mostNames} more` : "";
  return [...names].map(([what, some]) => `${what} ${some.join(", ")}`).join(", ") + more;
}

/** How many members have which configuration. */
interface Counts {
  readonly total: number;
  /** Names of those that have the new configuration. */
  readonly fresh: readonly string[];
  /** How many of these are ready. */
  readonly freshReady: number;
  /** How many have the old configuration, and how many of these are ready. */
  readonly old: number;
  readonly oldReady: number;
  readonly ready: number;
}

/** Counts the members, by the new and the old configuration of the whole rollout, also while it goes back. */
function countsOf(rollout: Rollout, machines: readonly Machine[]): Counts {
  const { fleet, template, committed, failed } = rollout;
  const having = (config: typeof committed, before: typeof committed): readonly Found[] =>
    config === undefined
      ? []
      : membersOf(machines, fleet, { ...template, config }, before).filter(
          (one) => one.template !== "outdated" && (one.phase === "serving" || one.phase === "green"),
        );
  const serving = membersOf(machines, fleet, template, undefined).filter(({ phase }) => phase === "serving");
  const fresh = having(failed ?? template.config, committed);
  const old = committed !== undefined && equal(committed, failed ?? template.config) ? [] : having(committed, failed);
  const readyIn = (some: readonly Found[]): number => some.filter(({ isReady }) => isReady).length;
  return {
    total: serving.length,
    fresh: fresh.map(({ name }) => name),
    freshReady: readyIn(fresh),
    old: old.length,
    oldReady: readyIn(old),
    ready: readyIn(serving),
  };
}

/** Whether an update gives the Machines another configuration, and not only another number. */
const isChange = ({ committed, failed, template }: Rollout): boolean =>
  failed !== undefined || (committed !== undefined && !equal(committed, template.config));

/** The beginning of a line of progress, for example `2/10 new`. */
export function countText(rollout: Rollout, machines: readonly Machine[]): string {
  const { freshReady, oldReady, ready } = countsOf(rollout, machines);
  const total = totalOf(regionsOf(rollout.wanted));
  if (rollout.failed !== undefined) return `${oldReady}/${total} old again`;
  return isChange(rollout) ? `${freshReady}/${total} new` : `${ready}/${total} ready`;
}

const verb = (count: number): string => (count === 1 ? "has" : "have");

/** How many Machines have which configuration, in a sentence. */
export function countSentence(rollout: Rollout, machines: readonly Machine[] | undefined): string {
  if (machines === undefined)
    return "How many Machines have the new configuration is unknown: the service did not answer.";
  const { total, fresh, old, ready } = countsOf(rollout, machines);
  const names = fresh.length === 0 || fresh.length > 10 ? "" : ` (${fresh.join(", ")})`;
  const isOldKnown = rollout.committed !== undefined;
  const others = Math.max(0, total - fresh.length - old);
  const rest = [
    ...(isOldKnown && isChange(rollout) ? [`${old} ${verb(old)} the old one`] : []),
    ...(others > 0 ? [`${others} ${verb(others)} another one`] : []),
    `${ready} ${ready === 1 ? "is" : "are"} ready`,
  ];
  return `${fresh.length} of ${total} Machines ${verb(fresh.length)} the new configuration${names}, ${rest.join(", ")}.`;
}

/** Says what a rollout does. Its lines begin with the count, and a wait is not repeated while nothing changes. */
export class Voice {
  readonly #count: () => string;
  readonly #say: (message: string) => void;
  readonly #clock: Clock;
  readonly #beside: (name: string, message: string) => void;
  /** What was said last about each Machine, without numbers, and when. */
  readonly #last = new Map<string, { readonly text: string; readonly at: number }>();

  /** `count` gives the beginning of each line. */
  constructor(count: () => string, { call, fleet }: Pick<Rollout, "call" | "fleet">) {
    this.#count = count;
    this.#say = call.progress;
    this.#clock = call.api.clock;
    this.#beside = (name, message) => call.views?.status(machineView(fleet, name), message);
  }

  /** Says one thing. */
  say(text: string): void {
    this.#say(`${this.#count()} · ${text}`);
  }

  /** Says what a wait for a Machine waits for; the same again after a minute. */
  about(name: string): (message: string) => void {
    return (message) => {
      const text = message.replaceAll(/\d+ s\b/g, "");
      const last = this.#last.get(name);
      const now = this.#clock.now();
      if (last?.text === text && now - last.at < 60_000) return;
      this.#last.set(name, { text, at: now });
      this.say(message.includes(name) ? message : `${name}: ${message}`);
      this.#beside(name, message);
    };
  }
}

/** What other errors say at their end. The rollout has one such sentence, and others may be wrong for all of it. */
const advice = [
  / Correct the configuration and run up again\./g,
  / The next up continues from here\./g,
  / Nothing was changed; try again after it expired\./g,
  / Objects that were created are kept in the state, and the next up continues from there\./g,
];

/** An error in the words of a rollout. */
export const reasonOf = (error: unknown): string =>
  advice.reduce((text, pattern) => text.replaceAll(pattern, ""), messageOf(error)).replace(/[^.!?]$/, "$&.");

/** A rollout that stopped. */
export class RolloutFailure extends MachinesError {
  /** Why, in sentences. */
  readonly reason: string;
  /** The Machines afterwards; undefined if the service did not answer. */
  readonly machines: readonly Machine[] | undefined;
  /** The steps that failed, and why each did. */
  readonly steps: readonly { readonly step: Step; readonly error: string }[];

  constructor(
    rollout: Rollout,
    { reason, code, cause, steps }: Pick<RolloutFailure, "reason" | "code" | "cause" | "steps">,
    machines: readonly Machine[] | undefined,
  ) {
    const { fleet } = rollout;
    super(
      code,
      `the rollout of Fleet ${fleet.app}/${fleet.name} stopped. ${reason} ${countSentence(rollout, machines)} ` +
        (code === "cancelled" ? "Run up again to continue." : "Correct the cause and run up again to continue."),
      { cause },
    );
    this.name = "RolloutFailure";
    this.reason = reason;
    this.machines = machines;
    this.steps = steps;
  }
}

/** The error of a rollout that failed, after all Machines got the old configuration again. */
export const rolledBack = (why: RolloutFailure, back: Rollout, machines: readonly Machine[]): MachinesError =>
  new MachinesError(
    why.code,
    `the rollout of Fleet ${back.fleet.app}/${back.fleet.name} failed, and was rolled back. ${why.reason} ${countSentence(back, machines)}`,
    { cause: why },
  );

/** The error of a rollout that failed, and could not be rolled back. */
export const notRolledBack = (why: RolloutFailure, back: Rollout, error: unknown): MachinesError => {
  const also = error instanceof RolloutFailure ? error.reason : reasonOf(error);
  const machines = error instanceof RolloutFailure ? error.machines : undefined;
  return new MachinesError(
    why.code,
    `the rollout of Fleet ${back.fleet.app}/${back.fleet.name} failed. ${why.reason} The rollback to the old configuration also failed: ${also} ${countSentence(back, machines)} Correct the cause and run up again.`,
    { cause: why },
  );
};

/** The warning of a rollout that waits for its promotion. */
export function waitingText(rollout: Rollout, machines: readonly Machine[], state: "canary" | "green"): string {
  const { fleet, wanted } = rollout;
  const { fresh, total } = countsOf(rollout, machines);
  const waiting =
    state === "canary"
      ? `${fresh.length} of ${total} Machines run the new configuration and wait for its promotion.`
      : `${fresh.length} new Machines run without traffic beside the old ones, and wait for their promotion.`;
  const promote = wanted.promoted
    ? "promoted was true before they ran, which promotes nothing: set it to false and run up, then set it to true and run up again."
    : "To promote it, set promoted: true and run up.";
  return `Fleet ${fleet.app}/${fleet.name}: ${waiting} ${promote} To roll back, set the old config and run up.`;
}
