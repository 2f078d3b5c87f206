// TLS certificates (docs/interface.md#certificates, docs/interface.md#certificate-checks).
import { X509Certificate } from "node:crypto";
import type { contract } from "../../api/index.ts";
import { validateHostname } from "../lifecycle/certificates.ts";
import { findingsOf, requirementsOf } from "../lifecycle/hostnameDns.ts";
import {
  changeHostname,
  findHostname,
  holderAgainst,
  isExpired,
  isServiceName,
  keyNames,
  subjectOfHostname,
} from "../lifecycle/hostnames.ts";
import { rfc3339 } from "../time/clock.ts";
import { refuse } from "../refusal.ts";
import type { AppRow, HostnameRow } from "../store/rows.ts";
import { touch, type Context } from "../context.ts";
import { organizationOf, readCustom, typeOf } from "./customCertificate.ts";
import { appOf, openAppOf, type Asking } from "./find.ts";
import { pageOf } from "./pages.ts";
import type { Input, Rules } from "./rule.ts";

type Group = typeof contract.certificates;

// ASSUMED: a missing hostname, or a missing certificate of a hostname, is 404 `certificate not found`.
const missing = () => refuse(404, "certificate not found");

function hostnameOf(asking: Asking): HostnameRow {
  const row = findHostname(asking.context, appOf(asking).id, String(asking.params["hostname"]));
  if (!row) throw missing();
  return row;
}

/** An active uploaded certificate takes precedence over an issued one. */
function statusOf(context: Context, row: HostnameRow): string {
  const [custom, { acme_status }] = [customStatus(context, row), row];
  if (acme_status === "active" || custom === "active") return "active";
  return custom ?? acme_status ?? "pending_validation";
}

const customStatus = (context: Context, row: HostnameRow): string | null =>
  row.custom_status !== null && isExpired(context, row) ? "expired" : row.custom_status;

function entries(context: Context, row: HostnameRow) {
  const time = (ms: number | null) => rfc3339(ms ?? row.created_at);
  const custom =
    row.custom_status === null
      ? []
      : [
          {
            source: "custom",
            status: customStatus(context, row) ?? "",
            created_at: time(row.custom_created_at),
            expires_at: time(row.custom_expires_at),
            issuer: row.custom_issuer,
            // ASSUMED: the certificate authority of an uploaded certificate is its issuer, or `unknown` without one.
            issued: [
              {
                certificate_authority: row.custom_issuer ?? "unknown",
                expires_at: time(row.custom_expires_at),
                type: row.custom_type ?? "rsa",
              },
            ],
          },
        ];
  if (row.acme_status === null) return custom;
  const active = row.acme_status === "active";
  const expires_at = time(row.expires_at);
  const { issuer, authority, types } = issuedBy(row);
  return [
    ...custom,
    {
      source: "fly",
      status: row.acme_status,
      created_at: time(row.acme_created_at),
      ...(active
        ? { expires_at, issued: types.map((type) => ({ certificate_authority: authority, expires_at, type })), issuer }
        : { issued: [], issuer: null }),
    },
  ];
}

/** The authority of an issued certificate. The simulated ones are as the platform's: one of each type, by Let's Encrypt. */
function issuedBy({ issued_chain }: HostnameRow) {
  if (issued_chain === null) return { issuer: "Let's Encrypt", authority: "lets_encrypt", types: ["rsa", "ecdsa"] };
  const certificate = new X509Certificate(issued_chain);
  const issuer = organizationOf(certificate) ?? "unknown";
  const authority = issuer
    .toLowerCase()
    .replaceAll("'", "")
    .replaceAll(/[^a-z\d]+/g, "_");
  return { issuer, authority, types: [typeOf(certificate.publicKey)] };
}

const problemsOf = (row: HostnameRow) =>
  JSON.parse(row.problems) as { code: string; message: string; remediation: string; timestamp: string }[];

function detail(context: Context, row: HostnameRow) {
  const { rate_limited_until } = row;
  const needs = requirementsOf(context, row);
  return {
    hostname: row.hostname,
    status: statusOf(context, row),
    acme_requested: row.acme_requested === 1,
    configured: row.dns_seen === 1,
    dns_provider: context.resolver?.name ?? "simulated",
    certificates: entries(context, row),
    dns_requirements: { ...needs, a: [...needs.a], aaaa: [...needs.aaaa] },
    rate_limited_until:
      rate_limited_until !== null && rate_limited_until > context.clock.now() ? rfc3339(rate_limited_until) : null,
    validation: validationOf(row),
    validation_errors: problemsOf(row),
  };
}

const validationOf = ({ dns_seen, ownership_seen, hostname }: HostnameRow) => ({
  alpn_configured: dns_seen === 1 && !hostname.startsWith("*."),
  dns_configured: dns_seen === 1,
  http_configured: dns_seen === 1 && !hostname.startsWith("*."),
  ownership_txt_configured: ownership_seen === 1,
});

function summary(context: Context, row: HostnameRow) {
  const { alpn_configured, dns_configured, http_configured, ownership_txt_configured } = validationOf(row);
  return {
    hostname: row.hostname,
    status: statusOf(context, row),
    dns_provider: context.resolver?.name ?? "simulated",
    acme_dns_configured: dns_configured,
    acme_alpn_configured: alpn_configured,
    acme_http_configured: http_configured,
    ownership_txt_configured,
    configured: row.dns_seen === 1,
    acme_requested: row.acme_requested === 1,
    has_custom_certificate: row.custom_status !== null,
    has_fly_certificate: row.acme_status !== null,
    created_at: rfc3339(row.created_at),
    updated_at: rfc3339(row.updated_at),
  };
}

/** A hostname without an ACME certificate, */
const noAcme = {
  acme_requested: 0,
  acme_status: null,
  acme_created_at: null,
  issued_at: null,
  expires_at: null,
  issued_chain: null,
  issued_key: null,
  issued_by: null,
  acme_order: null,
} as const;

/** and without an uploaded one. */
const noCustom = {
  custom_chain: null,
  custom_key: null,
  custom_status: null,
  custom_created_at: null,
  custom_expires_at: null,
  custom_issuer: null,
  custom_type: null,
} as const;

/** Refuses names that no App can have. */
function requireName(context: Context, hostname: string): void {
  const quoted = JSON.stringify(hostname.toLowerCase());
  // Names of Apps on this computer, and those of the API, would otherwise lead to the App of whoever asks for them.
  if (isServiceName(context, hostname))
    throw refuse(422, `Validation failed: hostname ${quoted} is a name of the service; use a name of your own domain`);
  if (/\.\d+$/.test(hostname))
    throw refuse(422, `Validation failed: hostname ${quoted} is an address; use a name such as "www.example.com"`);
}

/**
 * Refuses a hostname that another App of the organization has. ASSUMED: it does not move by itself, because the other App would
 * lose its visitors; of another organization's hostname the request waits for proof.
 */
function requireFree({ context, caller }: Pick<Input, "context" | "caller">, row: HostnameRow): void {
  const holder = holderAgainst(context, row);
  if (holder?.hostname !== row.hostname || holder.org !== caller.org) return;
  const sql = "SELECT name FROM apps WHERE id = ?";
  const { name = "" } = caller.app === null ? (context.store.get<{ name: string }>(sql, holder.app) ?? {}) : {};
  const [which, where] = name === "" ? ["another App", "there"] : [`App ${name}`, `from App ${name}`];
  throw refuse(
    422,
    `Validation failed: hostname ${JSON.stringify(row.hostname)} belongs to ${which} of this organization; remove it ${where} first`,
  );
}

function ensureHostname(input: Pick<Input, "context" | "caller">, app: AppRow, hostname: string): HostnameRow {
  const { context } = input;
  requireName(context, hostname);
  const row = findHostname(context, app.id, hostname) ?? addHostname(context, app, hostname.toLowerCase());
  requireFree(input, row);
  return row;
}

function addHostname(context: Context, app: AppRow, hostname: string): HostnameRow {
  const now = context.clock.now();
  const row: HostnameRow = {
    app: app.id,
    hostname,
    owner_code: context.ids.code(),
    owned_at: null,
    ...noAcme,
    ...noCustom,
    dns_seen: 0,
    ownership_seen: 0,
    attempts: "[]",
    rate_limited_until: null,
    problems: "[]",
    created_at: now,
    updated_at: now,
  };
  context.store.insert("hostnames", row);
  return row;
}

function remove(context: Context, row: HostnameRow): void {
  context.timers.cancel(subjectOfHostname(row), "certificate.issue", "certificate.renew");
  context.store.run("DELETE FROM hostnames WHERE app = ? AND hostname = ?", row.app, row.hostname);
  touch(context, row.app);
}

/** The rules of the certificate operations. */
export const certificates: Rules<Group> = {
  list(input) {
    const { context, query } = input;
    const app = appOf(input);
    const sql = "SELECT hostname, created_at FROM hostnames WHERE app = ? ORDER BY created_at, hostname";
    const found = context.store.all<Pick<HostnameRow, "hostname" | "created_at">>(sql, app.id);
    const part = query.filter?.toLowerCase() ?? "";
    const matching = found.filter(({ hostname }) => hostname.includes(part));
    const { page, next } = pageOf(
      matching,
      { limit: query.limit ?? 25, cursor: query.cursor },
      ({ created_at, hostname }) => [created_at, hostname],
    );
    return {
      certificates: page.flatMap(({ hostname }) => {
        const row = findHostname(context, app.id, hostname);
        return row ? [summary(context, row)] : [];
      }),
      ...(next === undefined ? {} : { next_cursor: next }),
      total_count: matching.length,
    };
  },

  // A new hostname is checked at once; if that fails, it waits for the next check request.
  createAcme(input: Input<Group["createAcme"]>) {
    const { context, body } = input;
    const row = ensureHostname(input, openAppOf(input), body.hostname);
    // ASSUMED: a second request for an ACME certificate is 422, as for a hostname that the App has already
    // (docs/interface.md#certificates).
    if (row.acme_requested === 1)
      throw refuse(422, `hostname ${JSON.stringify(row.hostname)} already exists on the app`);
    const asked = { acme_requested: 1, acme_status: "pending_validation", acme_created_at: context.clock.now() };
    return detail(context, validateHostname(context, changeHostname(context, row, asked), input.found));
  },

  createCustom(input: Input<Group["createCustom"]>) {
    const { context, body } = input;
    const app = openAppOf(input);
    const certificate = readCustom(body, context.clock.now());
    const row = ensureHostname(input, app, body.hostname);
    // ASSUMED: a second upload of a certificate replaces the first.
    const uploaded = {
      custom_chain: certificate.chain,
      custom_key: context.vault.seal(keyNames.custom(row), certificate.key),
      custom_status: "pending_ownership",
      custom_created_at: context.clock.now(),
      custom_expires_at: certificate.expiresAt,
      custom_issuer: certificate.issuer,
      custom_type: certificate.type,
    };
    return detail(context, validateHostname(context, changeHostname(context, row, uploaded), input.found));
  },

  get: (input) => detail(input.context, hostnameOf(input)),

  delete(input) {
    remove(input.context, hostnameOf(input));
  },

  deleteAcme(input) {
    const { context } = input;
    const row = hostnameOf(input);
    if (row.acme_status === null) throw missing();
    context.timers.cancel(subjectOfHostname(row), "certificate.issue", "certificate.renew");
    return detail(context, changeHostname(context, row, { ...noAcme, problems: "[]" }));
  },

  deleteCustom(input) {
    const { context } = input;
    const row = hostnameOf(input);
    if (row.custom_status === null) throw missing();
    const left = changeHostname(context, row, noCustom);
    const warning = "no certificate serves this hostname now; request an ACME certificate or upload another";
    return { ...detail(context, left), ...(left.acme_status === "active" ? {} : { warning }) };
  },

  check(input) {
    const { context } = input;
    const row = validateHostname(context, hostnameOf(input), input.found);
    const { records } = findingsOf(context, row, input.found);
    const [a, aaaa] = [[...(records.a ?? [])], [...(records.aaaa ?? [])]];
    return {
      ...detail(context, row),
      dns_records: {
        a,
        aaaa,
        cname: [...(records.cname ?? [])],
        acme_challenge_cname: records.acme_challenge_cname ?? null,
        ownership_txt: records.ownership_txt ?? null,
        resolved_addresses: [...a, ...aaaa],
        soa: records.soa ?? null,
      },
    };
  },
};
