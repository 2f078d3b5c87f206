// Addresses that are not on the internet: of this computer, of private networks, or of no one.
import { ownAddresses } from "../networks.ts";
import { BlockList, isIP } from "node:net";

/** The IPv4 networks that are not on the internet. 169.254.0.0/16 has the metadata of virtual machines in clouds. */
export const privateNetworks: readonly string[] = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "224.0.0.0/3",
];

// Of IPv6, all but 2000::/3. In it, 2002::/16 and 2001::/32 lead to IPv4 addresses.
const publicV6 = blockListOf(["2000::/3"]);
const privateV6 = blockListOf(["2001::/23", "2001:db8::/32", "2002::/16"]);
const privateV4 = blockListOf(privateNetworks);

function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

/** Whether an IP address is on the internet, and not one of this computer. */
export function isPublic(address: string): boolean {
  if (ownAddresses().includes(address)) return false;
  if (isIP(address) === 4) return !privateV4.check(address);
  return isIP(address) === 6 && publicV6.check(address, "ipv6") && !privateV6.check(address, "ipv6");
}

/** Whether a text is an IPv4 network such as 10.1.2.0/24, or one address. */
export function isNetwork(text: string): boolean {
  const [, address = "", bits = "32"] = /^([\d.]+)(?:\/(\d{1,2}))?$/.exec(text) ?? [];
  return isIP(address) === 4 && Number(bits) <= 32;
}
