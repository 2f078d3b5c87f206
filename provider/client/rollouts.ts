// Rollouts of a service that shows them: reports to it, and what it has. It says so in the answers to requests with the header `pulumi-update`; the
// platform does not, and gets no report.
import { z } from "zod";
import { askerHeader } from "./asker.ts";
import { bearer, type ClientParts, type Handler } from "./handler.ts";
import { readOwn } from "./ownRoutes.ts";
import type { Session } from "./session.ts";
import type { Outcome } from "./transport.ts";
import { updateHeader } from "./update.ts";

const path = "/local/rollouts";

/** Milliseconds that a report may take. A rollout does not wait longer for it. */
const longest = 2000;

/** What a rollout reports: that it continues in a phase, or how it ended. */
export interface RolloutReport {
  readonly app: string;
  readonly fleet: string;
  readonly strategy: string;
  readonly from: string | null;
  readonly to: string;
  readonly phase: "rolling out" | "rolling back";
  readonly result?: "succeeded" | "failed" | "rolled back" | "waiting" | "interrupted";
  /** Why it ended so, without secrets. */
  readonly reason?: string;
}

/** A rollout as the service shows it. */
const shown = z.object({
  id: z.string(),
  app: z.string(),
  /** Null for one by plain Machines. */
  fleet: z.string().nullable(),
  /** Id of the run of Pulumi. */
  update: z.string(),
  urn: z.string().nullable(),
  token: z.string(),
  tokenName: z.string().nullable(),
  strategy: z.string().nullable(),
  from: z.string().nullable(),
  to: z.string().nullable(),
  phase: z.string(),
  /** Milliseconds since 1970. */
  began: z.number(),
  /** Null while it is under way. */
  ended: z.number().nullable(),
  result: z.string().nullable(),
  reason: z.string().nullable(),
  /** Number of its Machines by what they do. */
  machines: z.record(z.string(), z.number()),
});
const answer = z.object({ rollouts: z.array(shown), now: z.number() });

/** A rollout as the service shows it. */
export type ShownRollout = z.infer<typeof shown>;

/** Which rollouts are read, newest first. */
export interface RolloutQuery {
  readonly app?: string | undefined;
  /** At most 200. */
  readonly limit: number;
}

/**
 * The rollouts that the service has, and its time; undefined if it keeps none, as the platform.
 * @throws MachinesError if it does not answer, or refuses
 */
export async function readRollouts(
  parts: ClientParts,
  { app, limit }: RolloutQuery,
): Promise<{ readonly rollouts: readonly ShownRollout[]; readonly now: number } | undefined> {
  const query = new URLSearchParams({ limit: String(limit), ...(app === undefined ? {} : { app }) });
  const { status, text } = await readOwn(parts, `${path}?${query.toString()}`);
  if (status !== 200) return undefined;
  try {
    return answer.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Records whether the service shows rollouts. */
export const noteRollouts =
  (session: Session, next: Handler<Outcome>): Handler<Outcome> =>
  async (request) => {
    const outcome = await next(request);
    if (outcome.kind === "answer" && outcome.headers["machines-rollouts"] === path) session.showsRollouts = true;
    return outcome;
  };

/** Sends a report after the ones before it. It never fails: a rollout is the same without. */
export function sendReport(parts: ClientParts, session: Session, report: RolloutReport): Promise<void> {
  if (session.showsRollouts) session.reports = sendAfter(session.reports, parts, report);
  return session.reports;
}

async function sendAfter(
  before: Promise<void>,
  { connect, transport }: ClientParts,
  { app, ...report }: RolloutReport,
): Promise<void> {
  await before;
  try {
    const { url, token } = await connect();
    await transport({
      method: "PUT",
      url: `${url}/local/apps/${encodeURIComponent(app)}/rollouts`,
      headers: {
        accept: "application/json",
        authorization: bearer(token),
        "user-agent": "pulumi-machines",
        "content-type": "application/json",
        ...askerHeader(),
        ...updateHeader(),
      },
      body: JSON.stringify(report),
      timeout: longest,
      held: false,
      signal: undefined,
    });
  } catch {
    // The service shows the rollout without it, from what happens to the Machines.
  }
}
