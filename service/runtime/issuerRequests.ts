// The open requests of an issuer: each hostname has at most one, and only a few are worked on at once. Organizations take turns.
import type { IssuedCertificate, IssueProblem, IssuerHost, WantedCertificate } from "./certificateIssuer.ts";

/** Thrown when a hostname gets no certificate. */
export class IssueRefused extends Error {
  readonly problem: IssueProblem;

  constructor(problem: IssueProblem) {
    super(problem.message);
    this.problem = problem;
  }
}

/** Gets a certificate, or throws IssueRefused. */
export type Issue = (wanted: WantedCertificate, signal: AbortSignal) => Promise<IssuedCertificate>;

// ASSUMED: four at once, so that a thousand new hostnames do not use up what an authority allows.
const mostAtOnce = 4;
// ASSUMED: an organization has at most three of the four certificates that are requested at once, because an authority may look for
// minutes at names that lead elsewhere.
const mostOfOwner = 3;

/** The requests of an issuer. */
export class IssuerRequests {
  readonly #host: IssuerHost;
  readonly #issue: Issue;
  /** By owner, whose turn is next first, and by subject. */
  readonly #waiting = new Map<string, Map<string, WantedCertificate>>();
  readonly #open = new Map<string, { readonly owner: string; readonly ended: Promise<void> }>();
  readonly #closing = new AbortController();

  constructor(host: IssuerHost, issue: Issue) {
    this.#host = host;
    this.#issue = issue;
  }

  /** Adds a request, unless the hostname has one. */
  request(wanted: WantedCertificate): void {
    if (this.#open.has(wanted.subject)) return;
    const others = this.#waiting.get(wanted.owner);
    if (others) others.set(wanted.subject, wanted);
    else this.#waiting.set(wanted.owner, new Map([[wanted.subject, wanted]]));
    this.#next();
  }

  /** Ends the open requests without a report. */
  async close(): Promise<void> {
    this.#waiting.clear();
    this.#closing.abort();
    await Promise.all([...this.#open.values()].map(({ ended }) => ended));
  }

  #next(): void {
    while (this.#open.size < mostAtOnce) {
      const [owner, requests] = [...this.#waiting].find(([one]) => this.#openOf(one) < mostOfOwner) ?? [];
      const [wanted] = requests?.values() ?? [];
      if (owner === undefined || !requests || !wanted) return;
      requests.delete(wanted.subject);
      // The next turn is that of another one.
      this.#waiting.delete(owner);
      if (requests.size > 0) this.#waiting.set(owner, requests);
      this.#open.set(wanted.subject, { owner, ended: this.#work(wanted) });
    }
  }

  #openOf(owner: string): number {
    return [...this.#open.values()].filter((one) => one.owner === owner).length;
  }

  async #work(wanted: WantedCertificate): Promise<void> {
    const { subject, hostname } = wanted;
    const { events, log } = this.#host;
    const { signal } = this.#closing;
    let report: () => void;
    try {
      // The request came inside a transaction, which may still be undone.
      await new Promise(setImmediate);
      await this.#host.settled();
      const issued = await this.#issue(wanted, signal);
      report = () => events.issued(subject, issued);
    } catch (error) {
      const problem = error instanceof IssueRefused ? error.problem : failed;
      if (!signal.aborted)
        log.warn({ hostname, reason: error instanceof Error ? error.message : "unknown" }, "no certificate");
      report = () => events.refused(subject, problem);
    }
    this.#open.delete(subject);
    if (signal.aborted) return;
    report();
    this.#next();
  }
}

const failed: IssueProblem = {
  code: "CERTIFICATE_NOT_ISSUED",
  message: "the service could not get a certificate, because of a fault of its own",
  remediation: "Look at the log of the service. It tries again by itself.",
  isFailedCheck: false,
};
