// The rules of the firewall around Machines, as input of `iptables-restore`.
import type { Endpoint } from "../postgresEngine.ts";
import { privateNetworks } from "./addresses.ts";

/** A network's bridge on this computer. */
export interface Bridge {
  readonly name: string;
  /** The Postgres servers on this computer that it may reach. */
  readonly databases: readonly Endpoint[];
}

interface Known {
  readonly chains: { readonly host: string; readonly forward: string };
  /** What the names of all bridges of the service begin with; one that is created later has no rule of its own yet. */
  readonly prefix: string;
  readonly bridges: readonly Bridge[];
}

/** Refuses packets at once. Kernels limit how many ICMP messages they send, and TCP resets they do not. */
const refuse = (match: string): string[] => [
  `${match} -p tcp -j REJECT --reject-with tcp-reset`,
  `${match} -j REJECT --reject-with icmp-admin-prohibited`,
];
const answered = "-m conntrack --ctstate RELATED,ESTABLISHED -j RETURN";

/** All bridges of the service in as few patterns as possible; an earlier version has left the names to the engine. */
const patternsOf = ({ prefix, bridges }: Known): string[] => [
  `${prefix}+`,
  ...bridges.map(({ name }) => name).filter((name) => !name.startsWith(prefix)),
];

/** The rules for IPv4. */
export function rulesOf(
  known: Known & { readonly reach: readonly string[]; readonly nameservers: readonly string[] },
): string {
  const { chains, bridges, reach, nameservers } = known;
  const { host, forward } = chains;
  const all = patternsOf(known);
  const resolvers = (chain: string, from: string): string[] =>
    nameservers.flatMap((address) =>
      ["udp", "tcp"].map((protocol) => `-A ${chain} -i ${from} -d ${address} -p ${protocol} --dport 53 -j RETURN`),
    );
  return textOf(
    [host, forward],
    [
      ...all.map((from) => `-A ${host} -i ${from} ${answered}`),
      ...bridges.flatMap(({ name, databases }) =>
        databases.map((one) => `-A ${host} -i ${name} -d ${one.host} -p tcp --dport ${one.port} -j RETURN`),
      ),
      ...all.flatMap((from) => [...resolvers(host, from), ...refuse(`-A ${host} -i ${from}`)]),
      ...all.map((from) => `-A ${forward} -i ${from} ${answered}`),
      ...bridges.map(({ name }) => `-A ${forward} -i ${name} -o ${name} -j RETURN`),
      ...all.flatMap((from) => [
        ...all.flatMap((to) => refuse(`-A ${forward} -i ${from} -o ${to}`)),
        ...resolvers(forward, from),
        ...reach.map((network) => `-A ${forward} -i ${from} -d ${network} -j RETURN`),
        ...privateNetworks.flatMap((network) => refuse(`-A ${forward} -i ${from} -d ${network}`)),
      ]),
    ],
  );
}

/** The rules for IPv6: the networks have none, so nothing comes from them. */
export const v6RulesOf = (known: Known): string =>
  textOf(
    [known.chains.host],
    patternsOf(known).map((from) => `-A ${known.chains.host} -i ${from} -j DROP`),
  );

/** Everything at once: there is no moment without the rules. */
const textOf = (chains: readonly string[], rules: readonly string[]): string =>
  ["*filter", ...chains.map((chain) => `:${chain} - [0:0]`), ...rules, "COMMIT", ""].join("\n");
