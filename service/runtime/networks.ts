// Networks of addresses, as an operator names them.
import { networkInterfaces } from "node:os";
import { BlockList, isIP } from "node:net";

/** The addresses of this computer. */
export const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address));

/** A network such as `10.0.0.0/8`, or a single address. */
function partsOf(
  text: string,
): { readonly ip: string; readonly bits: number; readonly family: "ipv4" | "ipv6" } | undefined {
  const [, ip = "", digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const [version, most] = isIP(ip) === 4 ? (["ipv4", 32] as const) : (["ipv6", 128] as const);
  const bits = digits === undefined ? most : Number(digits);
  return isIP(ip) === 0 || bits > most ? undefined : { ip, bits, family: version };
}

/** Whether a text names a network or an address. */
export const isNetwork = (text: string): boolean => partsOf(text) !== undefined;

/** An address as others write it: sockets of IPv6 show those of IPv4 with a prefix. */
export const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, "");

/** A set of networks. */
export class Networks {
  readonly #list = new BlockList();

  /** The texts must be networks. */
  constructor(texts: readonly string[]) {
    for (const text of texts) {
      const { ip, bits, family } = partsOf(text) ?? {};
      if (ip !== undefined && bits !== undefined) this.#list.addSubnet(ip, bits, family);
    }
  }

  /** Whether an address is in one of them. */
  has(address: string | undefined): boolean {
    const plain = plainAddress(address ?? "");
    const version = isIP(plain);
    return version !== 0 && this.#list.check(plain, version === 4 ? "ipv4" : "ipv6");
  }
}
