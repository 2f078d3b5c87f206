// TLS certificates (docs/interface.md#certificates, docs/interface.md#certificate-checks).
import type { contract } from "../../api/index.ts";
import { expireUpload, problemsWithout, validateHostname } from "../lifecycle/certificates.ts";
import { findingsOf } from "../lifecycle/hostnameDns.ts";
import { keepLimits, keptLimits } from "../lifecycle/hostnameLimits.ts";
import {
  changeHostname,
  findHostname,
  holderAgainst,
  isServiceName,
  keyNames,
  subjectOfHostname,
} from "../lifecycle/hostnames.ts";
import { refuse } from "../refusal.ts";
import type { AppRow, HostnameRow } from "../store/rows.ts";
import { touch, type Context } from "../context.ts";
import { certificateDetail, certificateSummary } from "./certificateAnswer.ts";
import { readCustom } from "./customCertificate.ts";
import { appOf, openAppOf, type Asking } from "./find.ts";
import { pageOf } from "./pages.ts";
import type { Input, Rules } from "./rule.ts";
import { isForAll } from "../store/tokens.ts";

type Group = typeof contract.certificates;

// ASSUMED: a missing hostname, or a missing certificate of a hostname, is 404 `certificate not found`.
const missing = () => refuse(404, "certificate not found");

function hostnameOf(asking: Asking): HostnameRow {
  const row = findHostname(asking.context, appOf(asking).id, String(asking.params["hostname"]));
  if (!row) throw missing();
  return row;
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
  const { name = "" } = isForAll(caller) ? (context.store.get<{ name: string }>(sql, holder.app) ?? {}) : {};
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
    ...keptLimits(context, { app: app.id, hostname }),
    problems: "[]",
    created_at: now,
    updated_at: now,
  };
  context.store.insert("hostnames", row);
  return row;
}

function remove(context: Context, row: HostnameRow): void {
  keepLimits(context, row);
  context.timers.cancel(subjectOfHostname(row), "certificate.issue", "certificate.renew", "certificate.expire");
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
        return row ? [certificateSummary(context, row)] : [];
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
    return certificateDetail(context, validateHostname(context, changeHostname(context, row, asked), input.found));
  },

  createCustom(input: Input<Group["createCustom"]>) {
    const { context, body } = input;
    const app = openAppOf(input);
    const certificate = readCustom(body, context.clock.now());
    const row = ensureHostname(input, app, body.hostname);
    // What was found before still holds, if the DNS does not answer now.
    const isProven = row.owned_at !== null && row.ownership_seen === 1;
    // ASSUMED: a second upload of a certificate replaces the first.
    const uploaded = {
      custom_chain: certificate.chain,
      custom_key: context.vault.seal(keyNames.custom(row), certificate.key),
      custom_status: isProven ? "active" : "pending_ownership",
      custom_created_at: context.clock.now(),
      custom_expires_at: certificate.expiresAt,
      custom_issuer: certificate.issuer,
      custom_type: certificate.type,
    };
    const changed = changeHostname(context, row, uploaded);
    expireUpload(context, changed);
    return certificateDetail(context, validateHostname(context, changed, input.found));
  },

  get: (input) => certificateDetail(input.context, hostnameOf(input)),

  delete(input) {
    remove(input.context, hostnameOf(input));
  },

  deleteAcme(input) {
    const { context } = input;
    const row = hostnameOf(input);
    if (row.acme_status === null) throw missing();
    context.timers.cancel(subjectOfHostname(row), "certificate.issue", "certificate.renew");
    return certificateDetail(
      context,
      changeHostname(context, row, { ...noAcme, problems: problemsWithout(context, row, "acme") }),
    );
  },

  deleteCustom(input) {
    const { context } = input;
    const row = hostnameOf(input);
    if (row.custom_status === null) throw missing();
    context.timers.cancel(subjectOfHostname(row), "certificate.expire");
    const left = changeHostname(context, row, { ...noCustom, problems: problemsWithout(context, row, "custom") });
    const warning = "no certificate serves this hostname now; request an ACME certificate or upload another";
    return { ...certificateDetail(context, left), ...(left.acme_status === "active" ? {} : { warning }) };
  },

  check(input) {
    const { context } = input;
    const row = validateHostname(context, hostnameOf(input), input.found);
    const { records } = findingsOf(context, row, input.found);
    const [a, aaaa] = [[...(records.a ?? [])], [...(records.aaaa ?? [])]];
    return {
      ...certificateDetail(context, row),
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
