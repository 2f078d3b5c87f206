// How other computers reach the proxy: its public addresses, the names that lead there, and what to say if it cannot listen.
import { isIP } from "node:net";
import type { PublicNames } from "../context.ts";
import { NotListening } from "../runtime/entrance.ts";
import type { ProxyPorts, Public } from "../proxy/proxy.ts";
import type { Service } from "../service.ts";
import { isNetwork } from "../runtime/networks.ts";
import { hostInUrl } from "./listen.ts";
import { listenerAt } from "./listenerAt.ts";
import { optionOf, type LocalOptions } from "./options.ts";
import { Problem } from "./problem.ts";
import type { Sockets } from "./sockets.ts";

/** How other computers reach the proxy. */
export interface Reached {
  readonly open: Public;
  readonly names: PublicNames;
  /** Networks of proxies in front of the service. */
  readonly trusted: readonly string[] | undefined;
}

/** Whether other computers are to reach the proxy, by addresses or by sockets that were given. */
export const isPublic = ({ public: addresses }: Pick<LocalOptions, "public">, { http, https }: Sockets): boolean =>
  addresses !== undefined || http.length + https.length > 0;

/** Checks the options. Throws a Problem for the first that is wrong. */
export function reachedOf(options: LocalOptions, sockets: Sockets): Reached {
  const { http, https } = sockets;
  const { public: addresses, hostname, appsDomain, runtime } = options;
  const wrong = addresses?.find((one) => isIP(one) === 0);
  if (wrong !== undefined)
    throw new Problem(`--public takes IP addresses such as 0.0.0.0 or 203.0.113.5, got ${JSON.stringify(wrong)}`);
  const { proxyProtocol: hasProxyProtocol = false } = options;
  const trusted = trustedOf(options.trustProxy, hasProxyProtocol);
  if (hasProxyProtocol && runtime !== "docker")
    throw new Problem("--proxy-protocol needs --runtime docker: other runtimes have no proxy of this service");
  const hasSockets = http.length + https.length > 0;
  if (isPublic(options, sockets) && runtime !== "docker")
    throw new Problem(
      `${addresses ? "--public" : "the sockets http and https"} needs --runtime docker: other runtimes have no proxy of this service`,
    );
  for (const name of ["hostname", "appsDomain"] as const)
    if (options[name] !== undefined && !isPublic(options, sockets))
      throw new Problem(`${optionOf(name)} needs --public: without it, other computers do not reach the proxy`);
  return {
    trusted,
    open: {
      hasProxyProtocol,
      ...(addresses ? { addresses } : {}),
      ...(hasSockets ? { sockets: { http, https } } : {}),
    },
    names: {
      ...(hostname === undefined ? {} : { hostname: nameOf(hostname, "--hostname", "machines.example.com") }),
      ...(appsDomain === undefined ? {} : { appsDomain: nameOf(appsDomain, "--apps-domain", "apps.example.com") }),
    },
  };
}

/** The networks of proxies in front. */
export function trustedOf(
  trusted: readonly string[] | undefined,
  hasProxyProtocol: boolean,
): readonly string[] | undefined {
  const noNetwork = trusted?.find((one) => !isNetwork(one));
  if (noNetwork !== undefined)
    throw new Problem(
      `--trust-proxy takes networks or addresses such as 10.0.0.0/8 or 203.0.113.5, got ${JSON.stringify(noNetwork)}`,
    );
  if (hasProxyProtocol && !trusted)
    throw new Problem("--proxy-protocol needs --trust-proxy, the networks whose connections begin with it");
  return trusted;
}

/** A name in the DNS, in lower case. */
export function nameOf(text: string, option: string, example: string): string {
  const name = text.toLowerCase();
  const isName = name.length <= 190 && /^(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.)+[a-z][a-z\d-]*[a-z\d]$/.test(name);
  // These lead to this computer, or are names of the platform.
  if (isName && !/(?:^|\.)(?:localhost|machines\.test)$/.test(name)) return name;
  throw new Problem(`${option} takes a name in the DNS such as ${example}, got ${JSON.stringify(text)}`);
}

/** Lets the proxy of a service listen. Throws a Problem if it cannot. */
export async function openProxy(
  { ports, reached }: { readonly ports: ProxyPorts; readonly reached: Pick<Reached, "open"> },
  { proxy }: Pick<Service, "proxy">,
): Promise<ProxyPorts | undefined> {
  try {
    return await proxy?.listen(ports, undefined, reached.open);
  } catch (error) {
    throw error instanceof NotListening ? problemOf(error) : error;
  }
}

/** Why the proxy cannot listen, as a sentence. */
function problemOf({ place, code }: NotListening): Problem {
  if ("fd" in place)
    return new Problem(`the socket with descriptor ${place.fd} cannot be used (${code}); it must listen for streams`);
  const { host, port } = place;
  const at = `${hostInUrl(host)}:${port}`;
  if (code === "EACCES")
    return new Problem(
      `the proxy may not listen at ${at} as this user; give the service the capability CAP_NET_BIND_SERVICE (in a systemd unit, AmbientCapabilities=), or the ports by a socket unit`,
    );
  if (code === "EADDRINUSE") {
    const user = listenerAt(port);
    return new Problem(
      `${at} is in use by ${user ?? "another program"}; stop that, or choose other ports with --http and --https`,
    );
  }
  if (code === "EADDRNOTAVAIL")
    return new Problem(`${host} is not an address of this computer; choose another with --public`);
  return new Problem(`the proxy cannot listen at ${at} (${code})`);
}
