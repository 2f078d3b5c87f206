// What issues the certificates of hostnames. The rules decide when a hostname gets one; an issuer gets it.
import type { FastifyBaseLogger } from "fastify";
import type { Clock } from "../time/clock.ts";
import type { Resolver } from "./resolver.ts";

/** An issued certificate, both parts in PEM. */
export interface IssuedCertificate {
  /** The certificate of the hostname, then its intermediates. */
  readonly chain: string;
  readonly key: string;
}

/** A hostname that needs a certificate. */
export interface WantedCertificate {
  /** Names it in reports. */
  readonly subject: string;
  readonly hostname: string;
  /** Whose it is: an organization, or the service. */
  readonly owner: string;
  /** What the issuer asked to keep with its last refusal of it. */
  readonly kept: string | undefined;
}

/** Why a hostname got no certificate. */
export interface IssueProblem {
  readonly code: string;
  readonly message: string;
  readonly remediation: string;
  /** When the authority accepts the next request, in milliseconds since 1970; if omitted, it has not limited them. */
  readonly limitedUntil?: number;
  /** Whether the authority has checked the hostname, and counts this as a failure. */
  readonly isFailedCheck: boolean;
  /** Goes with the next request for the hostname. */
  readonly keep?: string;
}

/** Leads the requests of an authority to this service, on an engine whose own ways lead to Machines. */
export interface ChallengeRoutes {
  /**
   * Leads requests at a hostname for the answer to a token to this service, until the returned function is called. Resolves once the
   * engine knows that; those who route may follow a moment later.
   */
  open(hostname: string, token: string, signal: AbortSignal): Promise<() => void>;
}

/** The service as an issuer sees it. */
export interface IssuerHost {
  readonly clock: Clock;
  readonly log: Pick<FastifyBaseLogger, "info" | "warn" | "error">;
  /** Folder of the data; undefined in memory. */
  readonly folder: string | undefined;
  /** Undefined with the simulated DNS. */
  readonly resolver: Resolver | undefined;
  /** Undefined where the proxy of the service answers an authority. */
  readonly challengeRoutes: ChallengeRoutes | undefined;
  readonly events: {
    /** Without a certificate if the issuer is a simulation. */
    issued(subject: string, certificate?: IssuedCertificate): void;
    refused(subject: string, problem: IssueProblem): void;
  };
  /** Resolves when everything that was decided is durable. */
  settled(): Promise<void>;
}

/** Where an authority requests the answer to a token, at port 80 of the hostname (RFC 8555). */
export const challengeFolder = "/.well-known/acme-challenge/";

/** How an authority proves that the service controls a hostname. The proxy gives the answers. */
export interface Challenges {
  /** The answer to an HTTP request for a token; undefined for unknown ones. */
  answerOf(token: string): string | undefined;
  /** The certificate for a TLS connection that asks for this proof; undefined for a name that proves nothing now. */
  proofOf(name: string): { readonly cert: string; readonly key: string } | undefined;
}

/** Issues certificates. */
export interface CertificateIssuer {
  /** Its name, which is stored with each certificate: `simulated`, `local`, or the address of an ACME directory. */
  readonly name: string;
  /** Whether the authority itself checks that the service controls a hostname. */
  readonly checksItself?: boolean;
  /** Whether it may issue for any name, so that the DNS has to say first that a hostname is the App's. */
  readonly needsOwnership?: boolean;
  /**
   * Requests a certificate, inside a transaction or outside. The issuer reports `issued` or `refused` once, unless the service
   * ends before. A second request for a hostname has no effect while the first one is open.
   */
  request(wanted: WantedCertificate): void;
  readonly challenges?: Challenges;
  /** Ends what is open, without a report. */
  close?(): Promise<void>;
}

/** Creates an issuer. */
export type IssuerFactory = (host: IssuerHost) => CertificateIssuer;

/** Issues at once, and only by word: there is nothing that could serve a certificate. */
export const simulatedIssuer: IssuerFactory = ({ events }) => ({
  name: "simulated",
  request: ({ subject }) => events.issued(subject),
});
