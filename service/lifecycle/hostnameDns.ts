// The DNS of hostnames: the required records, and the current ones (docs/interface.md#certificate-checks).
import { lookUp, type DnsRecords } from "../runtime/dns.ts";
import { LookupNeeded, type Found } from "../runtime/lookup.ts";
import type { HostnameRow, IpRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import { challengeDomain, cnameOf, holderAgainst, type OwnedHostname } from "./hostnames.ts";

/** The DNS records that a hostname needs. */
export interface Requirements {
  readonly a: readonly string[];
  readonly aaaa: readonly string[];
  readonly cname: string;
  readonly acme_challenge: { readonly name: string; readonly target: string };
  readonly ownership: { readonly name: string; readonly app_value: string; readonly org_value: string };
}

/** The records that a hostname needs. Those of a wildcard belong to the name without `*.`. */
export function requirementsOf(context: Context, row: HostnameRow): Requirements {
  const bare = row.hostname.replace(/^\*\./, "");
  const app = context.store.get<{ name: string; org: number }>("SELECT name, org FROM apps WHERE id = ?", row.app);
  const ips = context.store.all<IpRow>("SELECT * FROM ips WHERE app = ? ORDER BY number", row.app);
  const of = (types: readonly string[]): string[] => ips.filter(({ type }) => types.includes(type)).map(({ ip }) => ip);
  return {
    a: of(["v4", "shared_v4"]),
    aaaa: of(["v6"]),
    cname: cnameOf(app?.name ?? ""),
    acme_challenge: { name: `_acme-challenge.${bare}`, target: `${bare}.${row.owner_code}.${challengeDomain}` },
    ownership: {
      name: `_machines-ownership.${bare}`,
      app_value: `app-${row.owner_code}`,
      org_value: `org-${app?.org ?? 0}`,
    },
  };
}

/** The result of a DNS check. */
export interface Findings {
  readonly needs: Requirements;
  readonly records: DnsRecords;
  readonly dns: boolean;
  readonly address: boolean;
  readonly ownership: boolean;
  /** The other App that has the hostname. */
  readonly holder: OwnedHostname | undefined;
  /** Whether the DNS says that the hostname is to be this App's: nobody else has it, or the record of ownership names this App. */
  readonly isProven: boolean;
}

/**
 * The records of a hostname. Throws LookupNeeded if a resolver has to be asked first. ASSUMED: the simulated DNS leads to the App
 * that has the hostname, or else to the one that asks, so a hostname belongs to the App that asked first.
 */
function recordsOf(
  context: Context,
  { hostname }: HostnameRow,
  needs: Requirements,
  holder: OwnedHostname | undefined,
  found: Found,
): DnsRecords {
  const { resolver, store } = context;
  if (!resolver) {
    const { a, aaaa, acme_challenge, ownership } = holder ? requirementsOf(context, holder) : needs;
    return lookUp(store, hostname, { a, aaaa, challenge: acme_challenge.target, ownership: ownership.app_value });
  }
  const known = found.records.get(hostname);
  if (known) return known;
  const { acme_challenge, ownership } = needs;
  throw new LookupNeeded(`the DNS of ${hostname}`, async (all) => {
    const expected = valuesOf(needs);
    const names = { hostname, challenge: acme_challenge.name, ownership: ownership.name, expected };
    all.records.set(hostname, await resolver.recordsOf(names));
  });
}

const valuesOf = ({ ownership }: Requirements): readonly string[] => [ownership.app_value, ownership.org_value];

/** Compares the DNS with the needed records. */
export function findingsOf(context: Context, row: HostnameRow, found: Found): Findings {
  const needs = requirementsOf(context, row);
  const holder = holderAgainst(context, row);
  const records = recordsOf(context, row, needs, holder, found);
  const { a = [], aaaa = [], cname = [] } = records;
  const leads =
    cname.some((name) => name.replace(/\.$/, "") === needs.cname) ||
    a.some((ip) => needs.a.includes(ip)) ||
    aaaa.some((ip) => needs.aaaa.includes(ip));
  const dns = records.acme_challenge_cname?.replace(/\.$/, "") === needs.acme_challenge.target;
  const texts = records.ownership_texts ?? [records.ownership_txt ?? ""];
  const names = (requirements: Requirements): boolean => valuesOf(requirements).some((value) => texts.includes(value));
  const ownership = names(needs);
  const { checksItself, needsOwnership } = context.issuer;
  // ASSUMED: of a record of ownership that names both Apps the first one keeps the hostname. Otherwise each could take it back.
  const isNamedToo = holder?.hostname === row.hostname && names(requirementsOf(context, holder));
  return {
    needs,
    records,
    dns,
    // ASSUMED: an authority that checks by itself sees the service from outside, perhaps at an address that it does not know. That
    // of a cluster is its ingress controller's.
    address: leads || ((checksItself === true || needsOwnership === true) && a.length + aaaa.length > 0),
    ownership,
    holder,
    isProven: holder ? ownership && !isNamedToo : dns || leads || ownership,
  };
}
