// The simulated DNS. Every hostname has the records that its App needs, except names below `.invalid` (RFC 2606) and hostnames
// in the table, which seed files and the admin listener fill.
import type { Store } from "../store/database.ts";

/** The DNS records of a hostname; absent members do not exist. */
export interface DnsAnswer {
  readonly a?: readonly string[];
  readonly aaaa?: readonly string[];
  readonly cname?: readonly string[];
  readonly acme_challenge_cname?: string;
  readonly ownership_txt?: string;
  readonly soa?: string;
}

/** The DNS records of a hostname, or why the resolver did not give them. */
export type DnsRecords = DnsAnswer & {
  /** All texts at the name of the record of ownership. */
  readonly ownership_texts?: readonly string[];
  readonly unreachable?: string;
};

/** The names to look up for a hostname. */
export interface DnsNames {
  readonly hostname: string;
  /** The name of the challenge's CNAME record. */
  readonly challenge: string;
  /** The name of the TXT records that prove the ownership, and the values that do. */
  readonly ownership: string;
  readonly expected: readonly string[];
}

/** The records that a hostname needs, which are the default answer. */
export interface Needs {
  readonly a: readonly string[];
  readonly aaaa: readonly string[];
  readonly challenge: string;
  readonly ownership: string;
}

/** Looks up a hostname. */
export function lookUp(store: Pick<Store, "get">, hostname: string, needs: Needs): DnsAnswer {
  const listed = store.get<{ records: string }>("SELECT records FROM dns WHERE hostname = ?", hostname.toLowerCase());
  if (listed) return JSON.parse(listed.records) as DnsAnswer;
  if (/\.invalid$/i.test(hostname)) return {};
  return {
    a: needs.a,
    aaaa: needs.aaaa,
    acme_challenge_cname: needs.challenge,
    ownership_txt: needs.ownership,
    soa: `ns1.${hostname.split(".").slice(-2).join(".")}`,
  };
}

/** Sets the DNS records of a hostname; undefined restores the default. */
export function setDns(store: Pick<Store, "run">, hostname: string, answer: DnsAnswer | undefined): void {
  store.run("DELETE FROM dns WHERE hostname = ?", hostname.toLowerCase());
  if (answer)
    store.run("INSERT INTO dns (hostname, records) VALUES (?, ?)", hostname.toLowerCase(), JSON.stringify(answer));
}
