// Certificates that end soon, have waited for long, or could not be issued.
import type { Context } from "../context.ts";
import type { HostnameRow } from "../store/rows.ts";
import type { Work } from "../time/costly.ts";
import { withoutStop } from "../history/exits.ts";
import type { AppProblems } from "./problems.ts";
import type { Problem, ProblemKind } from "./types.ts";

const [hour, day] = [3_600_000, 86_400_000];

/** Hostnames that are read at once. */
const hostnamesAtOnce = 500;

/** The part of a hostname that its problems come from. */
export type Certified = Pick<
  HostnameRow,
  | "hostname"
  | "created_at"
  | "acme_status"
  | "acme_created_at"
  | "issued_at"
  | "expires_at"
  | "custom_status"
  | "custom_created_at"
  | "custom_expires_at"
  | "rate_limited_until"
  | "problems"
>;

const certified = `hostname, created_at, acme_status, acme_created_at, issued_at, expires_at, custom_status,
  custom_created_at, custom_expires_at, rate_limited_until, problems`;

interface Reported {
  readonly code: string;
  readonly message: string;
}

/** What is wrong with the certificate of a hostname, as the end of a sentence; undefined if nothing is. */
export function certificateProblem(
  row: Certified,
  now: number,
): { readonly kind: ProblemKind; readonly text: Problem["text"] } | undefined {
  const [reported] = JSON.parse(row.problems) as readonly Reported[];
  const why = reported ? `: ${withoutStop(reported.message)}.` : ".";
  const ends = [
    row.acme_status === "active" ? (row.expires_at ?? Number.POSITIVE_INFINITY) : 0,
    row.custom_status === "active" ? (row.custom_expires_at ?? Number.POSITIVE_INFINITY) : 0,
  ];
  const end = Math.max(...ends);
  if (end > now) return end - now < 14 * day && isDue(row, end, now) ? ending(end, why) : undefined;
  const ended = Math.max(end, row.custom_expires_at ?? 0);
  if (ended > 0 && ended <= now) return { kind: "certificate failed", text: [" has expired at ", { at: ended }, why] };
  if (row.acme_status === null && row.custom_status === null) return undefined;
  const isRefused = (row.rate_limited_until ?? 0) > now || reported?.code.startsWith("AUTHORITY_") === true;
  if (isRefused) return { kind: "certificate failed", text: [` could not be issued${why}`] };
  const since = (row.acme_status === null ? row.custom_created_at : row.acme_created_at) ?? row.created_at;
  if (now - since <= hour) return undefined;
  return { kind: "certificate waits", text: [" has waited for its validation since ", { at: since }, why] };
}

const ending = (at: number, why: string) => ({ kind: "certificate ends", text: [" ends at ", { at }, why] }) as const;

/** ASSUMED: an issued certificate ends soon only if it should have been renewed: a short one always has less than 14 days left. */
const isDue = ({ expires_at, issued_at }: Certified, end: number, now: number): boolean =>
  end !== expires_at || issued_at === null || now > issued_at + ((end - issued_at) * 2) / 3 + hour;

/** Adds the certificates of an App that have problems. */
export async function addCertificates(
  { store, clock }: Context,
  app: { readonly id: string; readonly name: string },
  into: AppProblems,
  work: Work,
): Promise<void> {
  const sql = `SELECT ${certified} FROM hostnames WHERE app = ? AND hostname > ? ORDER BY hostname LIMIT ${hostnamesAtOnce}`;
  for (let after: string | undefined = ""; after !== undefined;) {
    const rows: readonly Certified[] = store.all<Certified>(sql, app.id, after);
    for (const row of rows) {
      const found = certificateProblem(row, clock.now());
      if (!found) continue;
      const { kind, text } = found;
      into.count(kind, 1);
      const subject = `The certificate of ${row.hostname} (${app.name})`;
      into.name(kind, row.hostname, { subject, text, place: { app: app.name, query: "view=network" } });
    }
    after = rows.length < hostnamesAtOnce ? undefined : rows.at(-1)?.hostname;
    await work.pause();
  }
}
