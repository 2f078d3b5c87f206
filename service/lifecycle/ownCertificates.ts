// Certificates of the service's own names, which an authority issues: the hostname of the service, and the names of Apps below its
// domain. A client that asks for a name causes the first request, so what is requested has bounds.
import { X509Certificate } from "node:crypto";
import type { Context } from "../context.ts";
import type { IssuedCertificate, IssueProblem } from "../runtime/certificateIssuer.ts";
import type { OwnCertificateRow } from "../store/rows.ts";
import { periods } from "../time/delays.ts";
import { renewedAfter } from "./certificates.ts";
import { labelBelow } from "./hostnames.ts";

const hour = 60 * 60 * 1000;
// ASSUMED: what was not issued is requested again after ten minutes, then after twice the pause each time, at most a day.
const againMs = 10 * 60 * 1000;
// ASSUMED: certificates are requested for at most 40 new names of Apps in an hour, so that these do not use up what an authority allows.
// Renewals and repetitions do not count, nor does the name of the service itself.
const mostInHour = 40;

// ASSUMED: a start repeats a request that was refused more than a minute ago. A service that ends again and again asks no more often.
const oneStart = 60 * 1000;

/** The proxy listens by then, which the authority asks. */
const soon = 2000;

// The identifier of an App is never empty, so these are no hostnames of Apps.
const prefix = "/";

/** The subject of the certificate of a name of the service, for the issuer and timers. */
export const ownSubject = (name: string): string => `${prefix}${name}`;

/** Whether a subject is a name of the service. */
export const isOwnSubject = (subject: string): boolean => subject.startsWith(prefix);

const nameOf = (subject: string): string => subject.slice(prefix.length);

const keyName = (name: string): string => `certificate/own/${name}`;

const find = ({ store }: Pick<Context, "store">, name: string): OwnCertificateRow | undefined =>
  store.get<OwnCertificateRow>("SELECT * FROM own_certificates WHERE name = ?", name);

/** The certificate of a name of the service; undefined if none is valid. */
export function ownCertificate(
  context: Context,
  name: string,
): { readonly chain: string; readonly key: () => string } | undefined {
  const { chain, key, expires_at } = find(context, name) ?? {};
  if (typeof chain !== "string" || !key || (expires_at ?? 0) <= context.clock.now()) return undefined;
  return { chain, key: () => context.vault.open(keyName(name), key).toString() };
}

/** Whether a name is one of the service still: its hostname, or that of an App that has Machines. */
function isOwn({ publicNames, store }: Context, name: string): boolean {
  if (name === publicNames.hostname) return true;
  const app = labelBelow(publicNames.appsDomain, name);
  const sql = `SELECT 1 FROM apps a JOIN machines m ON m.app = a.id
    WHERE a.name = ? AND a.deleting < 2 AND m.destroyed_at IS NULL LIMIT 1`;
  return app !== undefined && store.get(sql, app) !== undefined;
}

/** When a request is possible at the earliest: the authority or this service may have limited them. */
function possibleFrom({ store, publicNames }: Context, row: OwnCertificateRow | undefined, name: string): number {
  const limited =
    store.get<{ until: number | null }>("SELECT max(limited_until) AS until FROM own_certificates")?.until ?? 0;
  const own = Math.max(row?.again_at ?? 0, limited);
  if (row || name === publicNames.hostname) return own;
  const latest = store.get<{ added_at: number }>(
    "SELECT added_at FROM own_certificates WHERE name <> ? ORDER BY added_at DESC LIMIT 1 OFFSET ?",
    ...[publicNames.hostname ?? "", mostInHour - 1],
  );
  return Math.max(own, (latest?.added_at ?? -hour) + hour);
}

/** Whether a certificate of a name of the service can be requested now. Clients cause no write before. */
export const mayRequest = (context: Context, name: string): boolean =>
  possibleFrom(context, find(context, name), name) <= context.clock.now();

/**
 * Requests a certificate for a name of the service, in a transaction. Returns whether the authority has been asked: it may be too
 * early.
 */
export function requestOwnCertificate(context: Context, name: string): boolean {
  const { store, clock, timers, issuer } = context;
  if (issuer.checksItself !== true || !isOwn(context, name)) return false;
  const [row, now, subject] = [find(context, name), clock.now(), ownSubject(name)];
  const from = possibleFrom(context, row, name);
  if (from > now) {
    if (row) timers.after(from - now, "certificate.own", subject);
    return false;
  }
  const failures = row?.failures ?? 0;
  if (!row) store.insert("own_certificates", { name, added_at: now, failures });
  // The service may be killed before the issuer reports.
  timers.after(pauseAfter(failures), "certificate.own", subject);
  issuer.request({ subject, hostname: name, owner: "the service", kept: undefined });
  return true;
}

const pauseAfter = (failures: number): number => Math.min(againMs * 2 ** failures, periods.day);

/** A certificate is to be renewed, or requested again. One of a name that is no longer the service's is removed. */
export function ownCertificateDue(context: Context, subject: string): void {
  const name = nameOf(subject);
  if (context.issuer.checksItself !== true) return;
  if (isOwn(context, name)) requestOwnCertificate(context, name);
  else context.store.run("DELETE FROM own_certificates WHERE name = ?", name);
}

/** The issuer has issued a certificate. */
export function ownIssued(context: Context, subject: string, certificate?: IssuedCertificate): void {
  const name = nameOf(subject);
  const { store, clock, timers, vault, issuer, log } = context;
  if (!certificate || !find(context, name)) return;
  const now = clock.now();
  const expires = Date.parse(new X509Certificate(certificate.chain).validTo);
  store.run(
    `UPDATE own_certificates SET chain = ?, key = ?, issued_by = ?, issued_at = ?, expires_at = ?, failures = 0, again_at = NULL,
      limited_until = NULL, problem = NULL WHERE name = ?`,
    ...[certificate.chain, vault.seal(keyName(name), certificate.key), issuer.name, now, expires, name],
  );
  timers.after(Math.max(Math.floor(renewedAfter(expires - now)), 1), "certificate.own", subject);
  store.touch(subject);
  log.info({ hostname: name, expires: new Date(expires).toISOString() }, "a name of the service has a certificate");
}

/** The issuer got no certificate. One that the name has is served until it expires. */
export function ownRefused(context: Context, subject: string, { message, limitedUntil }: IssueProblem): void {
  const name = nameOf(subject);
  const { store, clock, timers } = context;
  const row = find(context, name);
  if (!row) return;
  const again = limitedUntil ?? clock.now() + pauseAfter(row.failures);
  store.run(
    "UPDATE own_certificates SET failures = failures + 1, again_at = ?, limited_until = ?, problem = ? WHERE name = ?",
    ...[again, limitedUntil ?? null, message, name],
  );
  timers.after(Math.max(again - clock.now(), 1), "certificate.own", subject);
  store.touch(subject);
}

/**
 * When a refused request is repeated after a start: soon, because its reason has probably been corrected, unless the authority limits
 * requests.
 */
function againAfterStart({ failures, limited_until }: OwnCertificateRow, again: number, now: number): number {
  if ((limited_until ?? 0) > now) return again;
  const asked = again - pauseAfter(Math.max(failures - 1, 0));
  return Math.min(again, Math.max(now, asked + oneStart));
}

/** After a start: what was requested is requested again when it is due, and what another authority has issued at once. */
export function recoverOwnCertificates(context: Context): void {
  const { store, clock, timers, issuer } = context;
  if (issuer.checksItself !== true) return;
  const now = clock.now();
  for (const row of store.all<OwnCertificateRow>("SELECT * FROM own_certificates")) {
    const { name, issued_by, issued_at, expires_at, again_at } = row;
    const isCurrent = issued_by === issuer.name && issued_at !== null && expires_at !== null;
    const again = again_at === null ? null : againAfterStart(row, again_at, now);
    if (again !== again_at) store.run("UPDATE own_certificates SET again_at = ? WHERE name = ?", again, name);
    const due = again ?? (isCurrent ? issued_at + renewedAfter(expires_at - issued_at) : 0);
    timers.after(Math.max(Math.ceil(due - now), soon), "certificate.own", ownSubject(name));
  }
}
