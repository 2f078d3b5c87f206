// TLS certificates (docs/interface.md#certificates, docs/interface.md#certificate-checks).
import { z } from "zod";
import { appNameParam, hostname, hostnameParam } from "./names.ts";
import { operations } from "./operation.ts";
import { optional, required } from "./schema.ts";

const strings = z.array(z.string());

// ASSUMED: the PEM of a certificate's chain and that of its key may have 65,536 characters each.
const longestPem = 65_536;
const tooLong = `must not be longer than ${longestPem} characters`;

/** A certificate of a hostname, uploaded or issued by the platform. */
export const certificateEntry = z.object({
  source: optional(z.string(), "`custom` or `fly`."),
  status: optional(z.string(), "`active`, `pending_ownership` or `pending_validation`."),
  created_at: optional(z.string(), "RFC 3339 time of creation."),
  expires_at: optional(z.string(), "RFC 3339 time of expiry."),
  issuer: optional(z.string().nullable(), "Who issued it."),
  issued: optional(
    z.array(
      z.object({
        certificate_authority: optional(z.string(), "For example `lets_encrypt`."),
        expires_at: optional(z.string(), "RFC 3339 time of expiry."),
        type: optional(z.string(), "`rsa` or `ecdsa`."),
      }),
    ),
    "What has been issued.",
  ),
});

/** The required DNS records. */
export const dnsRequirements = z.object({
  a: optional(strings, "IPv4 addresses the hostname must lead to."),
  aaaa: optional(strings, "IPv6 addresses the hostname must lead to."),
  cname: optional(z.string(), "Name a CNAME record may point at instead."),
  acme_challenge: optional(
    z.object({ name: optional(z.string(), "Name of the record."), target: optional(z.string(), "Its target.") }),
    "CNAME record that answers the DNS challenge.",
  ),
  ownership: optional(
    z.object({
      name: optional(z.string(), "Name of the TXT record."),
      app_value: optional(z.string(), "Value that proves ownership for this App."),
      org_value: optional(z.string(), "Value that proves ownership for the organization."),
    }),
    "TXT record that proves ownership.",
  ),
});

/** The current DNS records. */
export const dnsRecords = z.object({
  a: optional(strings, "A records."),
  aaaa: optional(strings, "AAAA records."),
  cname: optional(strings, "CNAME records."),
  acme_challenge_cname: optional(z.string().nullable(), "Target of the challenge record, or null."),
  ownership_txt: optional(z.string().nullable(), "Value of the ownership record, or null."),
  resolved_addresses: optional(strings, "Addresses that the hostname resolves to."),
  soa: optional(z.string().nullable(), "Authoritative name server, or null."),
});

/** A hostname and its certificates. */
export const certificateDetail = z.object({
  hostname: required(z.string(), "The hostname."),
  status: optional(z.string(), "`active`, `pending_validation` or `pending_ownership`; any other: still being issued."),
  acme_requested: optional(z.boolean(), "Whether an ACME certificate was requested."),
  configured: optional(z.boolean(), "Whether the DNS leads to the App."),
  dns_provider: optional(z.string(), "Provider of the hostname's DNS."),
  certificates: optional(z.array(certificateEntry), "The certificates; a custom one wins."),
  dns_requirements: optional(dnsRequirements, "What must be in the DNS."),
  rate_limited_until: optional(
    z.string().nullable(),
    "RFC 3339 time from which the service tries again to issue, if the certificate authority limits requests; otherwise null.",
  ),
  validation: optional(
    z.object({
      alpn_configured: optional(z.boolean(), "Whether the TLS-ALPN challenge can pass."),
      dns_configured: optional(z.boolean(), "Whether the DNS challenge can pass."),
      http_configured: optional(z.boolean(), "Whether the HTTP challenge can pass."),
      ownership_txt_configured: optional(z.boolean(), "Whether the ownership record is there."),
    }),
    "What has been found so far.",
  ),
  validation_errors: optional(
    z.array(
      z.object({
        code: optional(z.string().nullable(), "Code of the problem."),
        message: optional(z.string(), "What is wrong."),
        remediation: optional(z.string(), "What to do."),
        timestamp: optional(z.string(), "RFC 3339 time it was found."),
      }),
    ),
    "What keeps the certificate from being valid.",
  ),
});

/** A hostname in a list. */
export const certificateSummary = z.object({
  hostname: required(z.string(), "The hostname."),
  status: optional(
    z.string(),
    "Status of the hostname: `active`, `pending_validation` or `pending_ownership`; any other: still being issued.",
  ),
  dns_provider: optional(z.string(), "Provider of the hostname's DNS."),
  acme_dns_configured: optional(z.boolean(), "Whether the DNS challenge can pass."),
  acme_alpn_configured: optional(z.boolean(), "Whether the TLS-ALPN challenge can pass."),
  acme_http_configured: optional(z.boolean(), "Whether the HTTP challenge can pass."),
  ownership_txt_configured: optional(z.boolean(), "Whether the ownership record is there."),
  configured: optional(z.boolean(), "Whether the DNS leads to the App."),
  acme_requested: optional(z.boolean(), "Whether an ACME certificate was requested."),
  has_custom_certificate: optional(z.boolean(), "Whether there is an uploaded certificate."),
  has_fly_certificate: optional(z.boolean(), "Whether there is an issued certificate."),
  created_at: optional(z.string(), "RFC 3339 time of creation."),
  updated_at: optional(z.string(), "RFC 3339 time of the last change."),
});

/** Body of a request for an ACME certificate. */
export const createAcme = z.object({
  hostname: required(hostname, "Hostname, also a wildcard such as `*.example.com`."),
});

/** Body of an upload. */
export const createCustom = z.object({
  hostname: required(hostname, "Hostname; the certificate must be for it."),
  fullchain: required(z.string().max(longestPem, tooLong), "PEM of the certificate and its chain."),
  private_key: required(z.string().max(longestPem, tooLong), "PEM of the private key; it must match the certificate.", {
    secret: true,
  }),
});

const path = "/v1/apps/{app_name}/certificates";
const one = z.object({ app_name: appNameParam, hostname: hostnameParam });
const missing = "no such App or hostname";

export const certificates = operations("certificates", {
  list: {
    method: "GET",
    path,
    source: "docs/interface.md#certificates, docs/interface.md#paging",
    summary: "Lists the hostnames of an App.",
    params: z.object({ app_name: appNameParam }),
    query: z.object({
      filter: optional(z.string(), "Only hostnames that contain this text."),
      cursor: optional(z.string(), "`next_cursor` of the previous answer."),
      limit: optional(z.int().min(1).max(500), "Hostnames in one answer, 1 to 500.", { wireDefault: 25 }),
    }),
    status: 200,
    answer: z.object({
      certificates: required(z.array(certificateSummary), "The hostnames."),
      next_cursor: optional(z.string(), "Where the next answer begins; absent at the end."),
      total_count: optional(z.int(), "Number of hostnames that match the filter."),
    }),
    failures: { 400: "bad limit or cursor", 404: "no such App" },
    repeat: "read",
  },
  createAcme: {
    method: "POST",
    path: `${path}/acme`,
    source: "docs/interface.md#certificates",
    summary: "Requests an ACME certificate.",
    params: z.object({ app_name: appNameParam }),
    body: createAcme,
    status: 201,
    answer: certificateDetail,
    failures: {
      400: "bad field",
      404: "no such App",
      422: "hostname empty, not allowed, or on this App or another one already",
    },
    repeat: "once",
  },
  createCustom: {
    method: "POST",
    path: `${path}/custom`,
    source: "docs/interface.md#uploaded-certificates",
    summary: "Uploads a certificate.",
    params: z.object({ app_name: appNameParam }),
    body: createCustom,
    status: 201,
    answer: certificateDetail,
    failures: {
      400: "bad field",
      404: "no such App",
      422: "not PEM, expired, weak, another key or another hostname, or one that is not allowed or on another App",
    },
    repeat: "once",
  },
  get: {
    method: "GET",
    path: `${path}/{hostname}`,
    source: "docs/interface.md#certificates",
    summary: "Shows a hostname and its certificates.",
    params: one,
    status: 200,
    answer: certificateDetail,
    failures: { 404: missing },
    repeat: "read",
  },
  delete: {
    method: "DELETE",
    path: `${path}/{hostname}`,
    source: "docs/interface.md#certificates",
    summary: "Removes a hostname with its ACME and uploaded certificates.",
    params: one,
    status: 204,
    failures: { 404: missing },
    repeat: "repeatable",
  },
  deleteAcme: {
    method: "DELETE",
    path: `${path}/{hostname}/acme`,
    source: "docs/interface.md#certificates",
    summary: "Removes the ACME certificates of a hostname; the hostname stays.",
    params: one,
    status: 200,
    answer: certificateDetail,
    failures: { 404: "no such App, hostname, or no ACME certificate" },
    repeat: "repeatable",
  },
  deleteCustom: {
    method: "DELETE",
    path: `${path}/{hostname}/custom`,
    source: "docs/interface.md#certificates",
    summary: "Removes the uploaded certificate of a hostname; the hostname stays.",
    params: one,
    status: 200,
    answer: certificateDetail.extend({
      warning: optional(
        z.string(),
        "Consequences of the removal, for example that the hostname has no certificate now.",
      ),
    }),
    failures: { 404: "no such App, hostname, or no uploaded certificate" },
    repeat: "repeatable",
  },
  check: {
    method: "POST",
    path: `${path}/{hostname}/check`,
    source: "docs/interface.md#certificate-checks",
    summary: "Checks the DNS of a hostname and validates it again.",
    params: one,
    status: 200,
    answer: certificateDetail.extend({ dns_records: optional(dnsRecords, "What is in the DNS now.") }),
    failures: { 404: missing },
    repeat: "repeatable",
  },
});
