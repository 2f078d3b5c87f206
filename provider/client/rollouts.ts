// Reports rollouts to a service that shows them. It says so in the answers to requests with the header `pulumi-update`; the
// platform does not, and is told nothing.
import { askerHeader } from "./asker.ts";
import type { ClientParts, Handler } from "./handler.ts";
import type { Session } from "./session.ts";
import type { Outcome } from "./transport.ts";
import { updateHeader } from "./update.ts";

const path = "/local/rollouts";

/** Milliseconds that a report may take. A rollout does not wait longer for it. */
const longest = 2000;

/** What a rollout reports: that it goes on in a phase, or how it ended. */
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

/** Records whether the service shows rollouts. */
export const noteRollouts =
  (session: Session, next: Handler<Outcome>): Handler<Outcome> =>
  async (request) => {
    const outcome = await next(request);
    if (outcome.kind === "answer" && outcome.headers["machines-rollouts"] === path) session.showsRollouts = true;
    return outcome;
  };

/** Sends a report after the ones before it. It never fails: a rollout is the same without. */
export function sendReport({ connect, transport }: ClientParts, session: Session, report: RolloutReport): Promise<void> {
  if (!session.showsRollouts) return Promise.resolve();
  const sent = session.reports.then(async () => {
    try {
      const { url, token } = await connect();
      await transport({
        method: "PUT",
        url: url + path,
        headers: {
          accept: "application/json",
          authorization: `Bearer ${token}`,
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
  });
  session.reports = sent;
  return sent;
}
