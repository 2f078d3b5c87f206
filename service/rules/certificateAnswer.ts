// The answers about hostnames and their certificates (docs/interface.md#certificates).
import { X509Certificate } from "node:crypto";
import { requirementsOf } from "../lifecycle/hostnameDns.ts";
import { isExpired } from "../lifecycle/hostnames.ts";
import { rfc3339 } from "../time/clock.ts";
import type { HostnameRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import { organizationOf, typeOf } from "./customCertificate.ts";

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

/** A hostname and its certificates. */
export function certificateDetail(context: Context, row: HostnameRow) {
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

/** A hostname in a list. */
export function certificateSummary(context: Context, row: HostnameRow) {
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
