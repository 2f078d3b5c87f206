// Where a program listens, as `host:port`; an IPv6 address is in brackets.

/** Host and port of an endpoint. */
export function addressOf(endpoint: string): { readonly host: string; readonly port: number } {
  const colon = endpoint.lastIndexOf(":");
  return { host: endpoint.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number(endpoint.slice(colon + 1)) };
}

/** The endpoint of an address and a port. */
export const endpointOf = (ip: string, port: number): string => `${ip.includes(":") ? `[${ip}]` : ip}:${port}`;
