// Real DNS: looks the records of hostnames up with the resolvers of this computer, or with one of the user's choice.
import { Resolver as DnsResolver } from "node:dns/promises";
import { isIP } from "node:net";
import { codeOf } from "./errorCode.ts";
import type { DnsNames, DnsRecords } from "./dns.ts";

/** Looks DNS records up. */
export interface Resolver {
  /** `system`, or the address of the resolver. */
  readonly name: string;
  recordsOf(names: DnsNames): Promise<DnsRecords>;
  /** The addresses of a name, IPv4 first. */
  addressesOf(name: string): Promise<readonly string[]>;
  /** The texts of the TXT records of a name. */
  textsOf(name: string): Promise<readonly string[]>;
}

// ASSUMED: a resolver that has not answered after two attempts of two seconds is unreachable.
const patience = { timeout: 2000, tries: 2 };

/** The name exists without such a record, or does not exist. */
const absent = ["ENODATA", "ENOTFOUND"];

/** Whether a text names a resolver: an IP address, or one with a port as in `127.0.0.1:53` or `[::1]:53`. */
export function isResolver(text: string): boolean {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/.exec(text) ?? [];
  const isPort = port === undefined || (Number(port) > 0 && Number(port) < 65536);
  return isIP(text) > 0 || (isPort && (isIP(bracketed ?? "") === 6 || isIP(plain ?? "") === 4));
}

/** A resolver at an address, or those of this computer. */
export function createResolver(address: string): Resolver {
  const dns = new DnsResolver(patience);
  if (address !== "system") dns.setServers([address]);

  const find = async <T>(looked: Promise<readonly T[]>): Promise<readonly T[]> => {
    try {
      return await looked;
    } catch (error) {
      if (absent.includes(codeOf(error))) return [];
      throw error;
    }
  };
  const textsOf = async (name: string): Promise<readonly string[]> =>
    (await find(dns.resolveTxt(name))).map((parts) => parts.join(""));

  /** The authority of the nearest zone above a name. It is only shown, and some resolvers do not give it. */
  async function soaOf(name: string): Promise<string | undefined> {
    for (let zone = name; zone.includes("."); zone = zone.slice(zone.indexOf(".") + 1)) {
      const soa = await dns.resolveSoa(zone).catch(() => undefined);
      if (soa) return soa.nsname;
    }
    return undefined;
  }

  return {
    name: address,
    textsOf,
    addressesOf: async (name) =>
      (await Promise.all([find(dns.resolve4(name)), find(dns.resolve6(name))])).flatMap((found) => found),
    async recordsOf({ hostname, challenge, ownership, expected }) {
      try {
        const [a, aaaa, cname, challenges, texts, soa] = await Promise.all([
          find(dns.resolve4(hostname)),
          find(dns.resolve6(hostname)),
          find(dns.resolveCname(hostname)),
          find(dns.resolveCname(challenge)),
          textsOf(ownership),
          soaOf(hostname.replace(/^\*\./, "")),
        ]);
        const text = texts.find((one) => expected.includes(one)) ?? texts[0];
        const [acme_challenge_cname] = challenges;
        return {
          a,
          aaaa,
          cname,
          ...(acme_challenge_cname === undefined ? {} : { acme_challenge_cname }),
          ...(text === undefined ? {} : { ownership_txt: text, ownership_texts: texts }),
          ...(soa === undefined ? {} : { soa }),
        };
      } catch (error) {
        return { unreachable: codeOf(error) };
      }
    },
  };
}
