// ASSUMED: a hostname belongs to one App at a time: the first that proved it, until another one proves by the TXT record of ownership
// that it is its own. An App that has to wait gets no certificate, and no requests. A wildcard and a name below it are a hostname of
// two organizations too; within one organization they may belong to different Apps.
import type { HostnameRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import { rfc3339 } from "../time/clock.ts";
import { requirementsOf } from "./hostnameDns.ts";
import { changeHostname, holderAgainst, isWildcard, subjectOfHostname, type OwnedHostname } from "./hostnames.ts";

/** Why a hostname has no certificate. */
export interface Problem {
  readonly code: string;
  readonly message: string;
  readonly remediation: string;
  readonly timestamp: string;
}

// ASSUMED: certificates of a hostname that belongs to another App are `pending_ownership`, also those that ACME issues.
const waiting = "pending_ownership";
/** Problems of a wildcard, of which many names may be taken. */
const mostProblems = 10;
const takenOver = "HOSTNAME_TAKEN_OVER";

/** Whether an ACME certificate waits for the ownership of its hostname. */
export const isWaiting = ({ acme_status }: Pick<HostnameRow, "acme_status">): boolean => acme_status === waiting;

/** The organization of an App. */
export const orgOf = (
  { store }: Context,
  app: string,
): { readonly org: number; readonly slug: string; readonly name: string } =>
  store.get<{ org: number; slug: string; name: string }>(
    "SELECT a.org, a.name, o.slug FROM apps a JOIN orgs o ON o.id = a.org WHERE a.id = ?",
    app,
  ) ?? { org: 0, slug: "", name: "" };

/** An owner in messages. Other organizations' Apps are not named. */
function describe(context: Context, row: HostnameRow, owner: OwnedHostname): string {
  const isSameOrg = orgOf(context, row.app).org === owner.org;
  const has = owner.hostname === row.hostname ? "" : `, which has ${owner.hostname}`;
  return `${isSameOrg ? "another App of this organization" : "an App of another organization"}${has}`;
}

/** How an App gets a hostname that another one has. */
function wayToProve(context: Context, row: HostnameRow): string {
  const { name, app_value } = requirementsOf(context, row).ownership;
  return `Create a TXT record ${name} with the value ${app_value}, remove others of that name, and have the hostname checked.`;
}

function problem(context: Context, row: HostnameRow, code: string, message: string): Problem {
  return { code, message, remediation: wayToProve(context, row), timestamp: rfc3339(context.clock.now()) };
}

const notServed = { issued_at: null, expires_at: null, issued_chain: null, issued_key: null, issued_by: null } as const;

/** What a hostname that is not the App's is changed to. */
function withoutHostname(row: HostnameRow, problems: readonly Problem[]): Partial<HostnameRow> {
  return {
    owned_at: null,
    ...(row.acme_status === null ? {} : { acme_status: waiting, acme_order: null, ...notServed }),
    ...(row.custom_status === null ? {} : { custom_status: waiting }),
    rate_limited_until: null,
    problems: JSON.stringify(problems),
  };
}

/** Another App has the hostname: this one waits for the proof that it is its own. */
export function waitFor(
  context: Context,
  row: HostnameRow,
  owner: OwnedHostname,
  others: readonly Problem[] = [],
): HostnameRow {
  // When it was taken stays visible.
  const before = (JSON.parse(row.problems) as Problem[]).filter(({ code }) => code === takenOver);
  const message = `${row.hostname} belongs to ${describe(context, row, owner)}`;
  const own = before.length > 0 ? before : [problem(context, row, "HOSTNAME_TAKEN", message)];
  const unread = others.filter(({ code }) => code === "DNS_UNREACHABLE");
  context.timers.cancel(subjectOfHostname(row), "certificate.issue", "certificate.renew");
  const seen = unread.length > 0 ? {} : { dns_seen: 0, ownership_seen: 0 };
  return changeHostname(context, row, { ...withoutHostname(row, [...own, ...unread]), ...seen });
}

/** Gives a hostname to an App, and takes it from the App that has it. */
export function take(context: Context, row: HostnameRow, holder = holderAgainst(context, row)): HostnameRow {
  const { store } = context;
  const rows = store.all<HostnameRow & { readonly deleting: number }>(
    "SELECT h.*, a.deleting FROM hostnames h JOIN apps a ON a.id = h.app WHERE h.hostname = ? AND h.app <> ?",
    ...[row.hostname, row.app],
  );
  for (const other of rows.filter(({ owned_at }) => owned_at !== null))
    if (other.deleting < 2) lose(context, other, row);
    else changeHostname(context, other, { owned_at: null });
  const taken = changeHostname(context, row, { owned_at: context.clock.now() });
  const owner = { ...taken, org: orgOf(context, row.app).org };
  for (const other of rows) if (other.owned_at === null && other.deleting < 2) waitFor(context, other, owner);
  // Its wildcard continues without this name.
  if (holder && holder.hostname !== row.hostname && !isWildcard(row)) tell(context, holder, row);
  return taken;
}

function lose(context: Context, row: HostnameRow, winner: HostnameRow): void {
  context.timers.cancel(subjectOfHostname(row), "certificate.issue", "certificate.renew");
  changeHostname(context, row, withoutHostname(row, [tell(context, row, winner)]));
}

/** Tells the organization of an owner that another App has taken a name, and returns the problem. */
function tell(context: Context, row: HostnameRow, winner: HostnameRow): Problem {
  const [from, to] = [orgOf(context, row.app), orgOf(context, winner.app)];
  const by = from.org === to.org ? "another App of this organization" : "an App of another organization";
  const message = `${winner.hostname} was taken over by ${by}, which the DNS names as its owner`;
  context.note({
    event: "certificates.takenOver",
    path: `/v1/apps/${encodeURIComponent(from.name)}/certificates/${encodeURIComponent(row.hostname)}`,
    org: from.slug,
  });
  context.log.warn({ hostname: winner.hostname, from: from.name, to: to.name }, "a hostname was taken over by proof");
  const found = problem(context, row, takenOver, message);
  if (row.hostname === winner.hostname) return found;
  const remediation = `If it is yours, request a certificate of ${winner.hostname}, which says how to prove that.`;
  const problems = [...(JSON.parse(row.problems) as Problem[]), { ...found, remediation }];
  changeHostname(context, row, { problems: JSON.stringify(problems.slice(-mostProblems)) });
  return found;
}
