// The lifecycle of certificates: validated against the DNS, issued, renewed (docs/interface.md#certificate-checks).
import { lookUp, type DnsAnswer } from "../runtime/dns.ts";
import type { HostnameRow, IpRow } from "../store/rows.ts";
import { touch, type Context } from "../context.ts";
import { rfc3339 } from "../time/clock.ts";
import { periods } from "../time/delays.ts";

/** The subject of the timers of a hostname. */
export const subjectOfHostname = ({ app, hostname }: Pick<HostnameRow, "app" | "hostname">): string =>
  `${app}/${hostname}`;

/** A hostname of an App. */
export const findHostname = (context: Context, app: string, hostname: string): HostnameRow | undefined =>
  context.store.get<HostnameRow>("SELECT * FROM hostnames WHERE app = ? AND hostname = ?", app, hostname.toLowerCase());

/** Changes a hostname's row. */
export function changeHostname(context: Context, row: HostnameRow, changes: Partial<HostnameRow>): HostnameRow {
  const all = { ...changes, updated_at: context.clock.now() };
  const names = Object.keys(all);
  const sql = `UPDATE hostnames SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE app = ? AND hostname = ?`;
  context.store.run(sql, ...Object.values<string | number | null | Uint8Array>(all), row.app, row.hostname);
  touch(context, row.app);
  return { ...row, ...all };
}

/** The DNS records that a hostname needs. */
export interface Requirements {
  readonly a: readonly string[];
  readonly aaaa: readonly string[];
  readonly cname: string;
  readonly acme_challenge: { readonly name: string; readonly target: string };
  readonly ownership: { readonly name: string; readonly app_value: string; readonly org_value: string };
}

// ASSUMED: the platform's domains are `machines.test` and `acme.machines.test`, which are reserved (RFC 2606).
const appsDomain = "machines.test";
const challengeDomain = "acme.machines.test";

/** The records that a hostname needs. Those of a wildcard belong to the name without `*.`. */
export function requirementsOf(context: Context, row: HostnameRow): Requirements {
  const bare = row.hostname.replace(/^\*\./, "");
  const app = context.store.get<{ name: string; org: number }>("SELECT name, org FROM apps WHERE id = ?", row.app);
  const ips = context.store.all<IpRow>("SELECT * FROM ips WHERE app = ? ORDER BY number", row.app);
  const of = (types: readonly string[]): string[] => ips.filter(({ type }) => types.includes(type)).map(({ ip }) => ip);
  return {
    a: of(["v4", "shared_v4"]),
    aaaa: of(["v6"]),
    cname: `${app?.name ?? ""}.${appsDomain}`,
    acme_challenge: { name: `_acme-challenge.${bare}`, target: `${bare}.${row.owner_code}.${challengeDomain}` },
    ownership: {
      name: `_machines-ownership.${bare}`,
      app_value: `app-${row.owner_code}`,
      org_value: `org-${app?.org ?? 0}`,
    },
  };
}

interface Problem {
  readonly code: string;
  readonly message: string;
  readonly remediation: string;
  readonly timestamp: string;
}

/** The result of a DNS check. */
export interface Findings {
  readonly needs: Requirements;
  readonly records: DnsAnswer;
  readonly dns: boolean;
  readonly address: boolean;
  readonly ownership: boolean;
}

/** Compares the DNS with the needed records. */
export function findingsOf(context: Context, row: HostnameRow): Findings {
  const needs = requirementsOf(context, row);
  const records = lookUp(context.store, row.hostname, {
    a: needs.a,
    aaaa: needs.aaaa,
    challenge: needs.acme_challenge.target,
    ownership: needs.ownership.app_value,
  });
  const leads =
    records.cname?.some((name) => name.replace(/\.$/, "") === needs.cname) === true ||
    (records.a ?? []).some((ip) => needs.a.includes(ip)) ||
    (records.aaaa ?? []).some((ip) => needs.aaaa.includes(ip));
  return {
    needs,
    records,
    dns: records.acme_challenge_cname?.replace(/\.$/, "") === needs.acme_challenge.target,
    address: leads,
    ownership:
      records.ownership_txt === needs.ownership.app_value || records.ownership_txt === needs.ownership.org_value,
  };
}

const hour = 60 * 60 * 1000;
// ASSUMED: after five failed validations in an hour a hostname has to wait, as with Let's Encrypt.
const mostAttempts = 5;

function problemsOf(context: Context, row: HostnameRow, { needs, dns, address, ownership }: Findings): Problem[] {
  const timestamp = rfc3339(context.clock.now());
  const wildcard = row.hostname.startsWith("*.");
  const problems: Problem[] = [];
  if (row.acme_requested === 1 && !dns && (wildcard || !address))
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
  if (row.custom_status !== null && !ownership)
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

/** Whether the uploaded certificate has expired. ASSUMED: an expired uploaded certificate has the status `expired` and no longer takes precedence over an issued one. */
export const isExpired = (context: Context, { custom_expires_at }: HostnameRow): boolean =>
  custom_expires_at !== null && custom_expires_at <= context.clock.now();

/** Whether a certificate can be issued; a wildcard needs the DNS challenge. */
const isReady = ({ hostname }: HostnameRow, { dns, address }: Findings): boolean =>
  dns || (address && !hostname.startsWith("*."));

/** Checks the DNS; if it is right, a certificate is issued, or an uploaded one becomes active. */
export function validateHostname(context: Context, row: HostnameRow): HostnameRow {
  const now = context.clock.now();
  const findings = findingsOf(context, row);
  const problems = problemsOf(context, row, findings);
  const ready = isReady(row, findings);
  const limited = row.rate_limited_until !== null && row.rate_limited_until > now;
  const changes: Partial<HostnameRow> = {
    dns_seen: ready ? 1 : 0,
    ownership_seen: findings.ownership ? 1 : 0,
    problems: JSON.stringify(problems),
    rate_limited_until: limited ? row.rate_limited_until : null,
    ...(row.custom_status === null ? {} : { custom_status: findings.ownership ? "active" : "pending_ownership" }),
  };
  if (row.acme_status === null || row.acme_status === "active" || limited) return changeHostname(context, row, changes);
  if (ready) {
    issueLater(context, row);
    return changeHostname(context, row, { ...changes, attempts: "[]" });
  }
  const attempts = [...(JSON.parse(row.attempts) as number[]).filter((at) => at > now - hour), now];
  if (attempts.length < mostAttempts)
    return changeHostname(context, row, { ...changes, attempts: JSON.stringify(attempts) });
  return changeHostname(context, row, { ...changes, attempts: "[]", rate_limited_until: now + hour });
}

function issueLater(context: Context, row: HostnameRow): void {
  const subject = subjectOfHostname(row);
  if (!context.timers.pending(subject, "certificate.issue"))
    context.timers.after(context.delays.certificate, "certificate.issue", subject);
}

function atSubject(context: Context, subject: string): HostnameRow | undefined {
  const slash = subject.indexOf("/");
  return findHostname(context, subject.slice(0, slash), subject.slice(slash + 1));
}

/** The certificate authority has issued the certificate. */
export function issue(context: Context, subject: string): void {
  const row = atSubject(context, subject);
  if (!row || row.acme_status === null) return;
  const now = context.clock.now();
  changeHostname(context, row, {
    acme_status: "active",
    acme_created_at: row.acme_created_at ?? now,
    issued_at: now,
    expires_at: now + periods.certificate,
    problems: "[]",
  });
  context.timers.cancel(subject, "certificate.renew");
  context.timers.after(periods.renewal, "certificate.renew", subject);
}

/** Renews a certificate. While the DNS is wrong it retries every day, and the old certificate stays until it expires. */
export function renew(context: Context, subject: string): void {
  const row = atSubject(context, subject);
  if (!row || row.acme_status === null) return;
  const findings = findingsOf(context, row);
  if (isReady(row, findings)) return issue(context, subject);
  const expired = row.expires_at !== null && row.expires_at <= context.clock.now();
  changeHostname(context, row, {
    dns_seen: 0,
    problems: JSON.stringify(problemsOf(context, row, findings)),
    ...(expired ? { acme_status: "pending_validation", issued_at: null, expires_at: null } : {}),
  });
  context.timers.after(periods.day, "certificate.renew", subject);
}
