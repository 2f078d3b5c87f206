// Options of the proxy, in a service or as a process of its own.
import type { ProxyLimits } from "../proxy/limits.ts";
import type { LocalOptions } from "./options.ts";
import { Problem } from "./problem.ts";

/** A port of the proxy. */
export function portOf(text: string | undefined, option: string, usual: number): number {
  const port = text === undefined ? usual : Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65535) return port;
  throw new Problem(`${option} takes a port from 0 to 65535, got ${JSON.stringify(text)}`);
}

/** Milliseconds of a drain. */
export function drainOf(text = "3"): number {
  const seconds = Number(text);
  if (/^\d+(?:\.\d+)?$/.test(text) && seconds <= 600) return seconds * 1000;
  throw new Problem(`--drain takes seconds from 0 to 600, got ${JSON.stringify(text)}`);
}

/** The limits of the proxy that differ from the defaults. */
export function proxyOf({
  proxyConnections,
  proxyConnectionsOfAddress,
  proxyIdle,
}: LocalOptions): Partial<ProxyLimits> {
  const most = countOf(proxyConnections, "--proxy-connections");
  const ofAddress = countOf(proxyConnectionsOfAddress, "--proxy-connections-of-address");
  const idle = countOf(proxyIdle, "--proxy-idle");
  return {
    ...(most === undefined ? {} : { most }),
    ...(ofAddress === undefined ? {} : { ofAddress }),
    ...(idle === undefined ? {} : { idleMs: idle * 1000 }),
  };
}

function countOf(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined;
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= 1 && count <= 1_000_000_000) return count;
  throw new Problem(`${option} takes a whole number from 1 to 1000000000, got ${JSON.stringify(text)}`);
}
