// The open requests of an issuer: each hostname has at most one, and only a few are worked on at once.
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

/** The requests of an issuer. */
export class IssuerRequests {
  readonly #host: IssuerHost;
  readonly #issue: Issue;
  readonly #waiting = new Map<string, WantedCertificate>();
  readonly #open = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();

  constructor(host: IssuerHost, issue: Issue) {
    this.#host = host;
    this.#issue = issue;
  }

  /** Adds a request, unless the hostname has one. */
  request(wanted: WantedCertificate): void {
    if (this.#open.has(wanted.subject)) return;
    this.#waiting.set(wanted.subject, wanted);
    this.#next();
  }

  /** Ends the open requests without a report. */
  async close(): Promise<void> {
    this.#waiting.clear();
    this.#closing.abort();
    await Promise.all(this.#open.values());
  }

  #next(): void {
    for (const [subject, wanted] of this.#waiting) {
      if (this.#open.size >= mostAtOnce) return;
      this.#waiting.delete(subject);
      this.#open.set(subject, this.#work(wanted));
    }
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
