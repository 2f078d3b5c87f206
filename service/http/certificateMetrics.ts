// Metrics of the certificates of hostnames: when they end, and how many there are.
import type { Context } from "../context.ts";
import { renewedAfter } from "../lifecycle/certificates.ts";
import type { HostnameRow } from "../store/rows.ts";
import { operatorOrg } from "../store/tokens.ts";
import type { Work } from "../time/costly.ts";
import { otherApps } from "../watch/byApp.ts";
import { certificateMetrics as of } from "../watch/catalogue.ts";
import type { Measured } from "../watch/exposition.ts";

/** Hostnames that are read at once. */
const pieceSize = 200;
// ASSUMED: metrics name the 500 hostnames of organization `personal` whose certificates end first. Of other organizations they have
// one time without a name: that of the certificate that is overdue, or else ends first.
const mostNamed = 500;
/** The label of hostnames of other organizations. */
const otherHostnames = "other hostnames";
/** A renewal may take this long. */
const renewalMs = 3_600_000;

type Row = Pick<
  HostnameRow,
  "hostname" | "acme_status" | "issued_at" | "expires_at" | "custom_status" | "custom_expires_at"
> & { readonly row: number; readonly app: string; readonly own: number };

// A row whose App is being removed is read too: the next piece begins after the last row.
const inPiece = `SELECT h.rowid AS row, iif(a.deleting < 2, a.name, '') AS app, h.hostname, h.acme_status, h.issued_at, h.expires_at,
    h.custom_status, h.custom_expires_at, o.slug = ?1 AS own
  FROM hostnames h JOIN apps a ON a.id = h.app JOIN orgs o ON o.id = a.org WHERE h.rowid > ?2 ORDER BY h.rowid LIMIT ${pieceSize}`;

interface Ending {
  readonly app: string;
  readonly hostname: string;
  /** Milliseconds since 1970. */
  readonly end: number;
  /** When it is renewed; undefined if it never is. */
  readonly renewal: number | undefined;
}

/** The certificates of the service. */
export interface CertificateCounts {
  readonly states: Readonly<Record<"valid" | "expired" | "waiting", number>>;
  /** Those of the operator's organization that end first, in this order. */
  readonly first: readonly Ending[];
  /** The worst of all others. */
  readonly other: Ending | undefined;
}

/** When the certificate ends that is served for a hostname; undefined if there is none. */
function endingOf(row: Row): Ending | undefined {
  const { app, hostname, acme_status, issued_at, expires_at, custom_status, custom_expires_at } = row;
  const issued = acme_status === "active" ? expires_at : null;
  const uploaded = custom_status === "active" ? custom_expires_at : null;
  const end = Math.max(issued ?? 0, uploaded ?? 0);
  if (end === 0) return undefined;
  const renewal = end === issued && issued_at !== null ? issued_at + renewedAfter(end - issued_at) : undefined;
  return { app, hostname, end, renewal };
}

const firstOf = (endings: readonly Ending[]): Ending[] =>
  [...endings].sort((a, b) => a.end - b.end || (a.hostname < b.hostname ? -1 : 1)).slice(0, mostNamed);

/** Reads the certificates of all hostnames. */
export async function countCertificates(
  { store, clock, publicNames }: Pick<Context, "store" | "clock" | "publicNames">,
  work: Work,
): Promise<CertificateCounts> {
  const states = { valid: 0, expired: 0, waiting: 0 };
  let endings: Ending[] = [];
  let other: Ending | undefined;
  const now = clock.now();
  for (let after: number | undefined = 0; after !== undefined;) {
    const rows: readonly Row[] = store.all<Row>(inPiece, operatorOrg, after);
    for (const row of rows) {
      if (row.app === "" || (row.acme_status === null && row.custom_status === null)) continue;
      const ending = endingOf(row);
      states[ending === undefined ? "waiting" : ending.end > now ? "valid" : "expired"]++;
      if (!ending) continue;
      if (row.own === 1) endings.push(ending);
      else if (!other || isWorse(ending, other, now)) other = ending;
    }
    if (endings.length > 4 * mostNamed) endings = firstOf(endings);
    after = rows.length < pieceSize ? undefined : rows.at(-1)?.row;
    await work.pause();
  }
  const own = ownEndings(store, publicNames);
  for (const { end } of own) states[end > now ? "valid" : "expired"]++;
  await work.pause();
  const hostname = own.filter(({ hostname: name }) => name === publicNames.hostname);
  for (const ending of own) if (!hostname.includes(ending) && (!other || isWorse(ending, other, now))) other = ending;
  return { states, first: [...hostname, ...firstOf(endings)], other };
}

/** The label of the App of the service's own hostname, which no App can have. */
const noApp = "(service)";

/** When the certificates end that an authority has issued for names of the service. */
function ownEndings(store: Context["store"], { hostname }: Context["publicNames"]): Ending[] {
  const sql = "SELECT name, issued_at, expires_at FROM own_certificates WHERE expires_at IS NOT NULL";
  return store
    .all<{ readonly name: string; readonly issued_at: number; readonly expires_at: number }>(sql)
    .map(({ name, issued_at, expires_at: end }) => ({
      ...{ app: name === hostname ? noApp : otherApps, hostname: name, end },
      renewal: issued_at + renewedAfter(end - issued_at),
    }));
}

/** Whether a certificate that should have been renewed is compared with one that will be, or ends before it. */
function isWorse(one: Ending, other: Ending, now: number): boolean {
  const isDue = ({ renewal }: Ending): boolean => renewal === undefined || renewal + renewalMs <= now;
  return isDue(one) === isDue(other) ? one.end < other.end : isDue(one);
}

/** The metrics. */
export function certificateMetrics({ states, first, other }: CertificateCounts): readonly Measured[] {
  const shown = other ? [...first, { ...other, app: otherApps, hostname: otherHostnames }] : first;
  return [
    [of.states, Object.entries(states).map(([state, n]) => [{ state }, n])],
    [of.expires, shown.map(({ app, hostname, end }) => [{ app, hostname }, end / 1000])],
    [
      of.renewal,
      shown.flatMap(({ app, hostname, renewal }) =>
        renewal === undefined ? [] : [[{ app, hostname }, renewal / 1000] as const],
      ),
    ],
  ];
}
