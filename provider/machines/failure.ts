// Whether a Machine has failed: its program ended without a request.
import { exitSince, latestExit, type Exit } from "../client/events.ts";
import type { Machine } from "../client/machine.ts";

import { isJob, type Config } from "./settings.ts";

/**
 * Milliseconds after a start by the restart policy for which a Machine counts as one that does not keep running, and by which the
 * clock of the service may be ahead. Together no longer than an update watches a Machine, or a refresh right after the update would
 * contradict it. ASSUMED: clocks of services and clients agree within half a second; otherwise such a Machine is noticed
 * later, or not at all.
 */
const justRestarted = 2500;
const mostAhead = 500;

/**
 * Why a Machine does not do what it should, as the end of a sentence; undefined if it does, and for one that someone stopped.
 * `config` is that of the program. Without `now`, a Machine that runs at the moment has not failed.
 */
export function failureOf(
  live: Machine,
  { config = live.config }: { readonly config?: Config | undefined },
  now?: number,
): string | undefined {
  const exit = latestExit(live) ?? (now === undefined ? undefined : exitBeforeRestart(live, now));
  if (live.state === "failed") return exit?.text ?? "it has failed, and no event says why";
  if (exit === undefined || exit.requested || live.state === "destroyed") return undefined;
  const isDone = exit.exitCode === 0 && config !== undefined && isJob(config);
  return isDone ? undefined : exit.text;
}

/** The exit after which the restart policy has started the program again a moment ago. */
function exitBeforeRestart(live: Machine, now: number): Exit | undefined {
  const started = live.events?.find(({ type, status }) => type === "start" && status === "started")?.timestamp;
  const isJustRestarted = started !== undefined && now - started < justRestarted && started - now <= mostAhead;
  return isJustRestarted ? exitSince(live) : undefined;
}
