// The DNS as the service sees it: nowhere. Every hostname is set up as its App needs it, except names below `.invalid`,
// which never are (RFC 2606), and hostnames the table says otherwise about (seed, admin listener).
import type { Store } from "../store/database.ts";

/** What the DNS answers for a hostname. What is left out is not there. */
export interface DnsAnswer {
  readonly a?: readonly string[];
  readonly aaaa?: readonly string[];
  readonly cname?: readonly string[];
  readonly acme_challenge_cname?: string;
  readonly ownership_txt?: string;
  readonly soa?: string;
}

/** What a hostname needs, for the usual answer. */
export interface Needs {
  readonly a: readonly string[];
  readonly aaaa: readonly string[];
  readonly challenge: string;
  readonly ownership: string;
}

/** Asks the DNS. */
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

/** Says what the DNS answers for a hostname; undefined brings the usual answer back. */
export function setDns(store: Pick<Store, "run">, hostname: string, answer: DnsAnswer | undefined): void {
  store.run("DELETE FROM dns WHERE hostname = ?", hostname.toLowerCase());
  if (answer)
    store.run("INSERT INTO dns (hostname, records) VALUES (?, ?)", hostname.toLowerCase(), JSON.stringify(answer));
}
