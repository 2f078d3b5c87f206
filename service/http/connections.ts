// Limits of connections: their number, their duration, and which one is closed first. Opening one needs no token, so a client
// that opens many must not lock out the others.
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { createServer as createNetServer, type AddressInfo, type Socket } from "node:net";
import { acceptUpgrades, isForWebSocket } from "./upgrades.ts";
import { filesForConnections, reservedFiles } from "../runtime/openFiles.ts";

/** Certificate and key for HTTPS, in PEM. */
export interface Tls {
  /** The certificate and its intermediates. */
  readonly cert: string;
  /** Its private key. */
  readonly key: string;
}

/** Limits of connections. */
export interface ConnectionLimits {
  /** Connections at once. */
  readonly most: number;
  /** The number of them without a pending answer. When there are more, the one that was idle longest is closed. */
  readonly waiting: number;
  /** Milliseconds for the headers of a request, from its first byte or from the start of the connection. */
  readonly headersMs: number;
  /** Milliseconds for a whole request, from the same moment. */
  readonly requestMs: number;
  /** Milliseconds without progress after which an unread answer is abandoned. */
  readonly unreadMs: number;
  /** Milliseconds for a TLS handshake. */
  readonly handshakeMs: number;
  /** Milliseconds between two checks of the times above. */
  readonly checkMs: number;
}

// ASSUMED: 20,000 connections at once, or as many files as the process may open, less 256 for the service itself.
const mostConnections = 20_000;

/**
 * The limits of a service; beside a proxy, the API has half of the files. ASSUMED: half of all connections may wait for a request;
 * headers have 10 s, a whole request has 15 s, a TLS handshake 10 s, and an answer is abandoned when the client reads nothing for
 * 60 s.
 */
export function connectionLimits(given: Partial<ConnectionLimits> = {}, isBesideProxy = false): ConnectionLimits {
  const files = Math.floor(filesForConnections() / (isBesideProxy ? 2 : 1));
  const most = given.most ?? Math.max(reservedFiles, Math.min(mostConnections, files));
  const times = { headersMs: 10_000, requestMs: 15_000, unreadMs: 60_000, handshakeMs: 10_000, checkMs: 500 };
  return { most, waiting: Math.ceil(most / 2), ...times, ...given };
}

/** Number of requests that may be held at once: the connections that remain beside idle ones. */
export const mostHeld = ({ most, waiting }: ConnectionLimits): number => Math.max(1, most - waiting);

/** A server with these limits; it serves HTTPS when it gets a certificate. */
export function limitedServer(handler: RequestListener, limits: ConnectionLimits, tls: Tls | undefined): Server {
  const options = {
    headersTimeout: limits.headersMs,
    // Limits how long the client sends, not how long the service takes: held requests are unaffected.
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: limits.checkMs,
    keepAliveTimeout: 75_000,
    shouldUpgradeCallback: isForWebSocket,
  };
  const server = tls
    ? createSecureServer({ ...options, ...tls, handshakeTimeout: limits.handshakeMs }, handler)
    : createServer(options, handler);
  server.timeout = limits.unreadMs;
  keepWithin(server, limits, tls !== undefined);
  acceptUpgrades(server);
  return server;
}

/** Whether a request has a body. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";

/** Closes connections that exceed the limits, but never one with a request in progress. */
function keepWithin(server: Server, { most, waiting: mostWaiting }: ConnectionLimits, secure: boolean): void {
  // Ordered by their last activity, the oldest first.
  const waiting = new Set<Socket>();
  // Number of pending answers by connection.
  const owed = new Map<Socket, number>();
  const isUnread = ({ writableLength }: Socket): boolean => writableLength > 0;
  const giveUp = (socket: Socket): void => {
    waiting.delete(socket);
    owed.delete(socket);
    socket.destroy();
  };
  // All before it are closed. Searching from the start again would take long in a flood.
  let order = waiting.values();
  const oldest = (): Socket | undefined => {
    const { value } = order.next();
    if (value) return value;
    order = waiting.values();
    return order.next().value;
  };
  const wait = (socket: Socket): void => {
    waiting.delete(socket);
    waiting.add(socket);
    if (waiting.size <= mostWaiting && waiting.size + owed.size <= most) return;
    // Unread answers are abandoned before a new client is turned away.
    const unread = waiting.size === 1 ? [...owed.keys()].find(isUnread) : undefined;
    const first = unread ?? oldest();
    if (first) giveUp(first);
  };
  const take = (socket: Socket): void => {
    socket.once("close", () => {
      waiting.delete(socket);
      owed.delete(socket);
    });
    wait(socket);
  };
  server.prependListener("request", (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    let counted = false;
    const begin = (): void => {
      if (response.writableEnded || socket.destroyed) return;
      counted = true;
      waiting.delete(socket);
      owed.set(socket, (owed.get(socket) ?? 0) + 1);
    };
    // It happens once; `once` would cost a function for each request.
    response.on("prefinish", () => {
      if (socket.destroyed) return;
      const left = (owed.get(socket) ?? 0) - (counted ? 1 : 0);
      if (left > 0) return void owed.set(socket, left);
      owed.delete(socket);
      wait(socket);
    });
    if (!hasBody(request)) return begin();
    // No answer is pending before the request is complete.
    if (!owed.has(socket) && !socket.destroyed) wait(socket);
    request.once("end", begin);
  });
  // The connection is idle. A held request may be idle for as long as it likes.
  server.on("timeout", (socket: Socket) => {
    if (!owed.has(socket) || isUnread(socket)) giveUp(socket);
  });
  if (!secure) return void server.on("connection", take);
  // After its handshake a connection is another object with the same address.
  const shaking = new Map<string, Socket>();
  const address = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
  server.on("connection", (socket: Socket) => {
    const key = address(socket);
    shaking.set(key, socket);
    socket.once("close", () => shaking.delete(key));
    take(socket);
  });
  server.on("secureConnection", (socket: Socket) => {
    const before = shaking.get(address(socket));
    if (before) waiting.delete(before);
    take(socket);
  });
}

/** Also accepts connections at the other addresses of `localhost`: programs differ in which they try first. */
export async function listenOnLocalhost(server: Server): Promise<void> {
  const { address: first, port } = server.address() as AddressInfo;
  const addresses = await lookup("localhost", { all: true }).catch(() => []);
  for (const { address } of addresses.filter((one) => one.address !== first)) {
    const extra = createNetServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
      server.emit("connection", socket),
    );
    extra.listen(port, address);
    // The other addresses are a convenience, so a failure is ignored.
    await once(extra, "listening").catch(() => undefined);
    server.once("close", () => extra.close());
  }
}
