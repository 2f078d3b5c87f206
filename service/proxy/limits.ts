// Limits of the proxy. Its clients need no token, so what they open must leave enough for each other, and for the API.
import { filesForConnections } from "../runtime/openFiles.ts";

/** Limits of the proxy. */
export interface ProxyLimits {
  /** Connections of clients at once. */
  readonly most: number;
  /** The number of them from one address. */
  readonly ofAddress: number;
  /** Ports that it listens at for Machines. */
  readonly ports: number;
  /** Milliseconds for the headers of a request, from its first byte or from the start of the connection. */
  readonly headersMs: number;
  /** Milliseconds for a TLS handshake. */
  readonly handshakeMs: number;
  /** Milliseconds without a byte in either direction after which a connection in use is closed. */
  readonly idleMs: number;
  /** Milliseconds without a byte after which a connection in use makes room for a new one, when there are too many. */
  readonly yieldMs: number;
  /** Milliseconds between two checks of the times above. */
  readonly checkMs: number;
}

// ASSUMED: the proxy has 10,000 connections of clients at once, half of them from one address, and 2,000 ports of its own.
const mostConnections = 10_000;
const mostPorts = 2000;
const fewest = 16;

const within = (least: number, wanted: number, most: number): number =>
  Math.max(least, Math.min(most, Math.floor(wanted)));

/**
 * The limits of a service. ASSUMED: where the system allows fewer open files, the API has half of them, and the proxy the other half:
 * a fifth for ports, and three for each client: its connection, the Machine's, and one that is kept for the next request. Headers have
 * 10 s, a TLS handshake 10 s. A connection in use may be silent for an hour, or for a minute when there are too many.
 */
export function proxyLimits(given: Partial<ProxyLimits> = {}): ProxyLimits {
  const files = filesForConnections() / 2;
  const ports = given.ports ?? within(fewest, files / 5, mostPorts);
  const most = given.most ?? within(fewest, (files - ports) / 3, mostConnections);
  const times = { headersMs: 10_000, handshakeMs: 10_000, idleMs: 3600_000, yieldMs: 60_000, checkMs: 1000 };
  return { ports, most, ofAddress: Math.ceil(most / 2), ...times, ...given };
}
