// The rows of hostnames, and which App each hostname belongs to.
import type { HostnameRow } from "../store/rows.ts";
import { touch, type Context } from "../context.ts";

// ASSUMED: the platform's domains are `machines.test` and `acme.machines.test`, which are reserved (RFC 2606).
const appsDomain = "machines.test";
export const challengeDomain = "acme.machines.test";

/** The host name that a CNAME record for an App points at. */
export const cnameOf = (app: string): string => `${app}.${appsDomain}`;

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

/** Whether a hostname stands for all names directly below it. */
export const isWildcard = ({ hostname }: Pick<HostnameRow, "hostname">): boolean => hostname.startsWith("*.");

/** The wildcard that stands for a name. */
export const wildcardOf = (host: string): string => `*.${domainOf(host)}`;

const domainOf = (host: string): string => host.slice(host.indexOf(".") + 1);

/** Whether the uploaded certificate has expired. ASSUMED: an expired uploaded certificate has the status `expired` and no longer takes precedence over an issued one. */
export const isExpired = (context: Pick<Context, "clock">, { custom_expires_at }: HostnameRow): boolean =>
  custom_expires_at !== null && custom_expires_at <= context.clock.now();

/** The names for the encryption of private keys. */
export const keyNames = {
  custom: (row: Pick<HostnameRow, "app" | "hostname">) => `certificate/${subjectOfHostname(row)}`,
  issued: (row: Pick<HostnameRow, "app" | "hostname">) => `certificate/issued/${subjectOfHostname(row)}`,
};

/**
 * Whether a name is the service's own: no App can have it as a hostname. These are the names of Apps on this computer, the
 * targets of CNAME records, the names at which the operator lets clients reach the API, and the domain of its Apps.
 */
export function isServiceName({ ownNames, publicNames }: NamesOfService, hostname: string): boolean {
  const bare = hostname.toLowerCase().replace(/^\*\./, "");
  const isBelow = (domain: string): boolean => bare === domain || bare.endsWith(`.${domain}`);
  const { hostname: own, appsDomain: domain } = publicNames;
  return (
    isBelow("localhost") ||
    isBelow(appsDomain) ||
    ownNames.has(bare) ||
    bare === own ||
    (domain !== undefined && isBelow(domain))
  );
}

/** What knows the names of the service. */
export type NamesOfService = Pick<Context, "ownNames" | "publicNames">;

/** The App of a name directly below a domain, as `shop` of `shop.localhost`; undefined for all other names. */
export function labelBelow(domain: string | undefined, host: string): string | undefined {
  if (domain === undefined || !host.endsWith(`.${domain}`)) return undefined;
  const label = host.slice(0, -domain.length - 1);
  return /^[a-z\d][a-z\d-]*$/.test(label) ? label : undefined;
}

/** A hostname that belongs to an App, and the App's organization. */
export type OwnedHostname = HostnameRow & { readonly org: number };

const owned = `SELECT h.*, a.org FROM hostnames h JOIN apps a ON a.id = h.app
  WHERE h.owned_at IS NOT NULL AND a.deleting < 2`;

/** Who has a hostname itself. */
const ownerOf = ({ store }: Pick<Context, "store">, hostname: string): OwnedHostname | undefined =>
  store.get<OwnedHostname>(`${owned} AND h.hostname = ?`, hostname);

/** The hostname that a name means, best first: the name itself, then the wildcard for it. Never one for the service's names. */
export function hostnamesFor(context: Pick<Context, "store"> & NamesOfService, host: string): OwnedHostname[] {
  if (isServiceName(context, host)) return [];
  const itself = ownerOf(context, host);
  const wildcard = ownerOf(context, wildcardOf(host));
  return [itself, wildcard].filter((row) => row !== undefined);
}

/**
 * The App that keeps another one from having a hostname. That is another App with the same hostname, or an App of another
 * organization with the wildcard for it or with a name that the wildcard stands for.
 */
export function holderAgainst({ store }: Pick<Context, "store">, row: HostnameRow): OwnedHostname | undefined {
  const { app, hostname } = row;
  const itself = ownerOf({ store }, hostname);
  if (itself) return itself.app === app ? undefined : itself;
  const others = `${owned} AND a.org <> (SELECT org FROM apps WHERE id = ?)`;
  if (!isWildcard(row)) return store.get<OwnedHostname>(`${others} AND h.hostname = ?`, app, wildcardOf(hostname));
  const below = "substr(h.hostname, instr(h.hostname, '.') + 1) = ? AND h.hostname <> ?";
  return store.get<OwnedHostname>(`${others} AND ${below} ORDER BY h.owned_at`, app, domainOf(hostname), hostname);
}
