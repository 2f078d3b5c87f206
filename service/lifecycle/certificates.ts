// The lifecycle of certificates: validated against the DNS, issued, renewed (docs/interface.md#certificate-checks).
import { X509Certificate } from "node:crypto";
import type { IssuedCertificate, IssueProblem } from "../runtime/certificateIssuer.ts";
import { LookupNeeded, nothingFound, type Found } from "../runtime/lookup.ts";
import type { HostnameRow } from "../store/rows.ts";
import { touch, type Context } from "../context.ts";
import { rfc3339 } from "../time/clock.ts";
import { periods } from "../time/delays.ts";
import { findingsOf, type Findings } from "./hostnameDns.ts";
import { counting, forgetLimits, hour } from "./hostnameLimits.ts";
import { isWaiting, orgOf, take, waitFor, type Problem } from "./hostnameOwners.ts";
import {
  changeHostname,
  findHostname,
  holderAgainst,
  isExpired,
  isWildcard,
  keyNames,
  subjectOfHostname,
} from "./hostnames.ts";

// ASSUMED: after five failed validations in an hour a hostname has to wait, as with Let's Encrypt.
const mostAttempts = 5;

function problemsOf(context: Context, row: HostnameRow, findings: Findings): Problem[] {
  const { needs, records, ownership } = findings;
  const timestamp = rfc3339(context.clock.now());
  const wildcard = isWildcard(row);
  const problems: Problem[] = [];
  if (records.unreachable !== undefined)
    return [
      {
        code: "DNS_UNREACHABLE",
        message: `the DNS of ${row.hostname} could not be read: ${records.unreachable}`,
        remediation: `Make the resolver ${JSON.stringify(context.resolver?.name)} reachable, or start the service with another --dns.`,
        timestamp,
      },
    ];
  const isUnproven = context.issuer.needsOwnership === true && row.owned_at === null;
  if (row.acme_requested === 1 && !isUnproven && !isReady(context, row, findings))
    problems.push({
      code: wildcard ? "DNS_CHALLENGE_MISSING" : "HOSTNAME_NOT_POINTED",
      message: wildcard
        ? `${needs.acme_challenge.name} has no CNAME record that points at ${needs.acme_challenge.target}`
        : `${row.hostname} does not lead to the app`,
      remediation: wildcard
        ? `Create a CNAME record ${needs.acme_challenge.name} with the value ${needs.acme_challenge.target}.`
        : `Create a CNAME record ${row.hostname} with the value ${needs.cname}, or A and AAAA records with the app's addresses.`,
      timestamp,
    });
  if ((row.custom_status !== null || (row.acme_requested === 1 && isUnproven)) && !ownership)
    problems.push({
      code: "OWNERSHIP_NOT_PROVEN",
      message: `${needs.ownership.name} has no TXT record that proves who owns the hostname`,
      remediation: `Create a TXT record ${needs.ownership.name} with the value ${needs.ownership.app_value}.`,
      timestamp,
    });
  if (isExpired(context, row))
    problems.push({
      code: "CERTIFICATE_EXPIRED",
      message: `the uploaded certificate expired at ${rfc3339(row.custom_expires_at ?? 0)}`,
      remediation: "Upload a new certificate.",
      timestamp,
    });
  return problems;
}

/** Problems of an uploaded certificate, and of the hostname itself. All others are of an issued one. */
const ofUpload = ["OWNERSHIP_NOT_PROVEN", "CERTIFICATE_EXPIRED"];
const ofHostname = ["DNS_UNREACHABLE", "HOSTNAME_TAKEN", "HOSTNAME_TAKEN_OVER"];

/** The problems of a hostname that are left when one of its certificates is removed, as JSON. */
export function problemsWithout({ issuer }: Context, row: HostnameRow, removed: "acme" | "custom"): string {
  const { acme_status, custom_status, acme_requested, owned_at } = row;
  if ((removed === "acme" ? custom_status : acme_status) === null) return "[]";
  const needsOwnership = issuer.needsOwnership === true && acme_requested === 1 && owned_at === null;
  const isLeft = ({ code }: Problem): boolean => {
    if (ofHostname.includes(code)) return true;
    if (removed === "acme") return ofUpload.includes(code);
    return !ofUpload.includes(code) || (code === "OWNERSHIP_NOT_PROVEN" && needsOwnership);
  };
  return JSON.stringify((JSON.parse(row.problems) as Problem[]).filter(isLeft));
}

const isSimulated = ({ issuer }: Context): boolean => issuer.name === "simulated";

/** Whether a certificate can be requested; a wildcard needs the DNS challenge. */
function isReady({ issuer }: Context, row: HostnameRow, { dns, address }: Findings): boolean {
  const { checksItself = false, needsOwnership = false } = issuer;
  if (needsOwnership && row.owned_at === null) return false;
  return isWildcard(row) ? dns || checksItself || needsOwnership : dns || address;
}

/** Checks the DNS; if it is right, a certificate is requested, or an uploaded one becomes active. */
export function validateHostname(context: Context, before: HostnameRow, found: Found): HostnameRow {
  const now = context.clock.now();
  const findings = findingsOf(context, before, found);
  const { holder, isProven } = findings;
  const isTaken = before.owned_at === null && isProven && findings.records.unreachable === undefined;
  const row = isTaken ? take(context, before, holder) : before;
  const ready = isReady(context, row, findings);
  const limited = isLimited(context, row);
  const problems = [...problemsOf(context, row, findings), ...(ready ? refusalsIn(context, row) : [])];
  if (row.owned_at === null && holder) return waitFor(context, row, holder, problems);
  // What was found before still holds.
  if (findings.records.unreachable !== undefined)
    return changeHostname(context, row, { problems: JSON.stringify(problems) });
  const changes: Partial<HostnameRow> = {
    dns_seen: ready ? 1 : 0,
    ownership_seen: findings.ownership ? 1 : 0,
    problems: JSON.stringify(problems),
    rate_limited_until: limited ? row.rate_limited_until : null,
    ...(row.custom_status === null ? {} : { custom_status: findings.ownership ? "active" : "pending_ownership" }),
    ...(isWaiting(row) ? { acme_status: "pending_validation" } : {}),
  };
  if (row.acme_status === null || row.acme_status === "active" || limited) return changeHostname(context, row, changes);
  if (ready) {
    const ms = isSimulated(context) ? context.delays.certificate : 0;
    context.timers.after(ms, "certificate.issue", subjectOfHostname(row));
    return changeHostname(context, row, changes);
  }
  return changeHostname(context, row, { ...changes, ...failedAttempt(row, now) });
}

const isLimited = ({ clock }: Context, { rate_limited_until }: HostnameRow): boolean =>
  rate_limited_until !== null && rate_limited_until > clock.now();

/** The next failed attempt of a hostname. */
function failedAttempt(row: HostnameRow, now: number): Pick<HostnameRow, "attempts" | "rate_limited_until"> {
  const attempts = [...counting(JSON.parse(row.attempts) as number[], now), now];
  if (attempts.length < mostAttempts) return { attempts: JSON.stringify(attempts), rate_limited_until: null };
  return { attempts: "[]", rate_limited_until: now + hour };
}

/** What the authority has reported, until it issues. */
const refusalsIn = ({ issuer }: Context, { problems }: HostnameRow): Problem[] =>
  issuer.checksItself === true
    ? (JSON.parse(problems) as Problem[]).filter(({ code }) => /^(?:AUTHORITY|DNS_CHALLENGE)_/.test(code))
    : [];

function atSubject(context: Context, subject: string): HostnameRow | undefined {
  const slash = subject.indexOf("/");
  return findHostname(context, subject.slice(0, slash), subject.slice(slash + 1));
}

// ASSUMED: a certificate is renewed after two thirds of its time.
/** Milliseconds from the issue of a certificate to its renewal, of those to its end. */
export const renewedAfter = (lifetimeMs: number): number => (lifetimeMs * 2) / 3;

// ASSUMED: what was not issued is requested again after ten minutes, and a renewal that failed after a day.
const againMs = 10 * 60 * 1000;

/** Requests a certificate from the issuer, as soon as the authority accepts requests. */
export function requestCertificate(context: Context, subject: string): void {
  const row = atSubject(context, subject);
  if (!row || row.acme_status === null || isWaiting(row)) return;
  const holder = row.owned_at === null ? holderAgainst(context, row) : undefined;
  if (holder) return void waitFor(context, row, holder);
  if (isLimited(context, row)) {
    const ms = (row.rate_limited_until ?? 0) - context.clock.now();
    return context.timers.after(ms, "certificate.issue", subject);
  }
  // The service may be killed before the issuer reports.
  if (!isSimulated(context)) context.timers.after(againMs, "certificate.issue", subject);
  const owner = `organization ${orgOf(context, row.app).org}`;
  context.issuer.request({ subject, hostname: row.hostname, owner, kept: row.acme_order ?? undefined });
}

/** The issuer has issued a certificate. Its authority has seen the hostname lead here, which makes it the App's if nobody has it. */
export function issued(context: Context, subject: string, certificate?: IssuedCertificate): void {
  const row = atSubject(context, subject);
  if (!row || row.acme_status === null || isWaiting(row)) return;
  const holder = row.owned_at === null ? holderAgainst(context, row) : undefined;
  if (holder) return void waitFor(context, row, holder);
  if (row.owned_at === null) take(context, row);
  const now = context.clock.now();
  const expires = certificate ? Date.parse(new X509Certificate(certificate.chain).validTo) : now + periods.certificate;
  changeHostname(context, row, {
    acme_status: "active",
    acme_created_at: row.acme_created_at ?? now,
    issued_at: now,
    expires_at: expires,
    issued_chain: certificate?.chain ?? null,
    issued_key: certificate ? context.vault.seal(keyNames.issued(row), certificate.key) : null,
    issued_by: context.issuer.name,
    acme_order: null,
    attempts: "[]",
    rate_limited_until: null,
    problems: "[]",
  });
  forgetLimits(context, row);
  context.timers.cancel(subject, "certificate.issue", "certificate.renew");
  context.timers.after(Math.max(Math.floor(renewedAfter(expires - now)), 1), "certificate.renew", subject);
}

/** The issuer got no certificate. One that a hostname has is served until it expires. */
export function refused(context: Context, subject: string, problem: IssueProblem): void {
  const row = atSubject(context, subject);
  if (!row || row.acme_status === null || isWaiting(row)) return;
  const now = context.clock.now();
  const { code, message, remediation, limitedUntil, isFailedCheck, keep } = problem;
  const limits: Partial<HostnameRow> = isFailedCheck ? failedAttempt(row, now) : {};
  const until = limitedUntil ?? limits.rate_limited_until ?? null;
  changeHostname(context, row, {
    ...limits,
    ...(until === null ? {} : { rate_limited_until: until }),
    acme_order: keep ?? null,
    problems: JSON.stringify([{ code, message, remediation, timestamp: rfc3339(now) }]),
  });
  if (row.acme_status === "active") return; // it has a timer for the next renewal
  context.timers.after(until === null ? againMs : until - now, "certificate.issue", subject);
}

/** Renews a certificate. While the DNS is wrong it retries, and the old certificate stays until it expires. */
export function renew(context: Context, subject: string): void {
  const row = atSubject(context, subject);
  if (!row || row.acme_status === null || isWaiting(row)) return;
  const left = (row.expires_at ?? 0) - context.clock.now();
  context.timers.after(
    left > 0 ? Math.min(periods.day, Math.ceil(left / 3)) : periods.day,
    "certificate.renew",
    subject,
  );
  if (left <= 0)
    changeHostname(context, row, {
      ...{ acme_status: "pending_validation", issued_at: null, expires_at: null },
      ...{ issued_chain: null, issued_key: null, issued_by: null },
    });
  withRecords(context, (found) => {
    const current = atSubject(context, subject);
    if (!current || current.acme_status === null || isWaiting(current)) return;
    const findings = findingsOf(context, current, found);
    if (isReady(context, current, findings)) {
      changeHostname(context, current, { dns_seen: 1 });
      return requestCertificate(context, subject);
    }
    changeHostname(context, current, {
      dns_seen: 0,
      problems: JSON.stringify(problemsOf(context, current, findings)),
    });
  });
}

/** A hostname with the end of its uploaded certificate. */
type Upload = Pick<HostnameRow, "app" | "hostname" | "custom_expires_at">;

/** Sets the timer for the end of an uploaded certificate. */
export function expireUpload({ clock, timers }: Context, row: Upload): void {
  const left = (row.custom_expires_at ?? 0) - clock.now();
  timers.after(Math.max(left, 1), "certificate.expire", subjectOfHostname(row));
}

/** Sets the timers for the ends of uploaded certificates, of one App or of all, that a version before these timers has stored. */
export function expireUploads(context: Context, app?: string): void {
  const { clock, store, timers } = context;
  const uploads =
    "SELECT app, hostname, custom_expires_at FROM hostnames WHERE custom_expires_at > ?1 AND (?2 IS NULL OR app = ?2)";
  for (const row of store.all<Upload>(uploads, clock.now(), app ?? null))
    if (!timers.pending(subjectOfHostname(row), "certificate.expire")) expireUpload(context, row);
}

/** An uploaded certificate has expired: an engine that has a copy of it takes another one, or none. */
export function expired(context: Context, subject: string): void {
  const row = atSubject(context, subject);
  if (row && row.custom_status !== null) touch(context, row.app);
}

/** Makes a change within this transaction, or in one of its own if the DNS has to be read first. */
function withRecords(context: Context, change: (found: Found) => void): void {
  try {
    change(nothingFound());
  } catch (error) {
    if (!(error instanceof LookupNeeded)) throw error;
    const found = nothingFound();
    error
      .find(found)
      .then(() => context.store.write(() => change(found)))
      .catch((failure: unknown) => context.log.error({ err: failure }, "the DNS could not be checked"));
  }
}

/** Requests what the issuer has not reported before the service ended, and what another issuer has issued. */
export function recoverCertificates(context: Context): void {
  const { issuer, store, timers } = context;
  expireUploads(context);
  if (isSimulated(context)) return;
  const rows = store.all<HostnameRow>("SELECT * FROM hostnames WHERE acme_status IS NOT NULL");
  for (const row of rows) {
    if (isWaiting(row)) continue;
    const subject = subjectOfHostname(row);
    if (row.acme_status === "active" && row.issued_chain === null)
      changeHostname(context, row, { acme_status: "pending_validation", issued_at: null, expires_at: null });
    const isActive = row.acme_status === "active" && row.issued_chain !== null;
    if (isActive && row.issued_by !== issuer.name) timers.after(1, "certificate.renew", subject);
    else if (!isActive && row.dns_seen === 1) timers.after(1, "certificate.issue", subject);
  }
}
