// Decides which updates of an App's Machines may begin, so that a run takes down only a share of them at a time. Pure.
import type { MaxUnavailable } from "../client/config.ts";
import type { Machine } from "../client/machine.ts";
import { failureOf } from "./failure.ts";

/** What an interruption of a Machine would cost: it serves (`up`), it should and does not (`failing`), or it rests. */
export type Condition = "up" | "failing" | "resting";

/** A Machine that is updated, or waits for it. */
export interface Candidate {
  readonly id: string;
  readonly condition: Condition;
}

/** How many of an App's Machines may be down at a time; at least one, or nothing could ever be updated. */
export const limitOf = (allowed: MaxUnavailable, total: number): number =>
  "machines" in allowed ? allowed.machines : Math.max(1, Math.floor((total * allowed.percent) / 100 + 1e-9));

/** Whether a limit never makes an update wait, however many Machines the App has. */
export const isUnlimited = (allowed: MaxUnavailable): boolean => "percent" in allowed && allowed.percent >= 100;

/** The condition of a Machine; one that is gone costs nothing. */
export function conditionOf(machine: Machine | undefined): Condition {
  if (machine === undefined) return "resting";
  const { state, checks = [], cordoned } = machine;
  if (state === "started") {
    if (checks.some(({ status }) => status !== "passing")) return "failing";
    return cordoned === true ? "resting" : "up";
  }
  return failureOf(machine, {}) === undefined ? "resting" : "failing";
}

/** The updates of an App, and its other Machines. */
export interface Situation<Waiting extends Candidate> {
  readonly waiting: readonly Waiting[];
  readonly underway: readonly Candidate[];
  /** How many may be down at a time. */
  readonly limit: number;
  /** How many other Machines of the App are failing. They may be about to be updated, or not. */
  readonly failing: number;
}

/**
 * The waiting updates that may begin. Machines that do not serve lose nothing, so they never wait. Failing ones go first: only
 * when they have passed is it known that the new configuration works, and others may be interrupted for it. Failing ones that
 * are not updated count as down. One update may always begin, or nothing could be repaired.
 */
export function admissible<Waiting extends Candidate>({
  waiting,
  underway,
  limit,
  failing,
}: Situation<Waiting>): readonly Waiting[] {
  const free = waiting.filter(({ condition }) => condition !== "up");
  if ([...waiting, ...underway].some(({ condition }) => condition === "failing")) return free;
  const down = underway.filter(({ condition }) => condition === "up").length;
  const room = Math.max(limit - failing, 1) - down;
  return [...free, ...waiting.filter(({ condition }) => condition === "up").slice(0, Math.max(0, room))];
}
