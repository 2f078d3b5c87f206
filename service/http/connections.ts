// Limits of connections: their number, how long each may take, and which one is closed first. Opening one takes no token, so
// a client that opens many must not keep the others out.
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { createServer as createNetServer, type AddressInfo, type Socket } from "node:net";

/** What HTTPS is spoken with, in PEM. */
export interface Tls {
  /** The certificate, and those between it and its root. */
  readonly cert: string;
  /** Its private key. */
  readonly key: string;
}

/** How many connections there may be, and how long each may take. */
export interface ConnectionLimits {
  /** Connections at once. */
  readonly most: number;
  /** Of these, connections to which no answer is owed; beyond it the one that has been quiet longest is cut. */
  readonly waiting: number;
  /** Milliseconds for the headers of a request, from the first byte or from the opening of the connection. */
  readonly headersMs: number;
  /** Milliseconds for a whole request, from the same moment. */
  readonly requestMs: number;
  /** Milliseconds without a byte after which an answer that is not taken is given up. */
  readonly unreadMs: number;
  /** Milliseconds for a TLS handshake. */
  readonly handshakeMs: number;
  /** Milliseconds between two looks at the times above. */
  readonly checkMs: number;
}

// ASSUMED: 20,000 connections at once, or as many as the computer lets the process open, but for 256 files of its own.
const mostConnections = 20_000;
const reservedFiles = 256;

/** Files the process may have open, where the system tells. */
function openFiles(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/**
 * The limits of a service. ASSUMED: half of all connections may wait for a request; headers have 10 s, a whole request has
 * 15 s, a TLS handshake 10 s, and an answer of which nothing is read for 60 s is given up.
 */
export function connectionLimits(given: Partial<ConnectionLimits> = {}): ConnectionLimits {
  const most = given.most ?? Math.max(reservedFiles, Math.min(mostConnections, openFiles() - reservedFiles));
  const times = { headersMs: 10_000, requestMs: 15_000, unreadMs: 60_000, handshakeMs: 10_000, checkMs: 500 };
  return { most, waiting: Math.ceil(most / 2), ...times, ...given };
}

/** Requests that may be held at once: what the waiting leave. */
export const mostHeld = ({ most, waiting }: ConnectionLimits): number => Math.max(1, most - waiting);

/** A server that keeps to the limits; it speaks HTTPS when it is given what that takes. */
export function limitedServer(handler: RequestListener, limits: ConnectionLimits, tls: Tls | undefined): Server {
  const options = {
    headersTimeout: limits.headersMs,
    // Covers what the client sends, never what the service takes to answer: held requests are not touched by it.
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: limits.checkMs,
    keepAliveTimeout: 75_000,
  };
  const server = tls
    ? createSecureServer({ ...options, ...tls, handshakeTimeout: limits.handshakeMs }, handler)
    : createServer(options, handler);
  server.timeout = limits.unreadMs;
  keepWithin(server, limits, tls !== undefined);
  return server;
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";

/** Cuts connections beyond the limits. One on which the service is at work is never among them. */
function keepWithin(server: Server, { most, waiting: mostWaiting }: ConnectionLimits, secure: boolean): void {
  // The one that has been quiet longest comes first.
  const waiting = new Set<Socket>();
  // Answers that are owed on a connection.
  const owed = new Map<Socket, number>();
  const isUnread = ({ writableLength }: Socket): boolean => writableLength > 0;
  const giveUp = (socket: Socket): void => {
    waiting.delete(socket);
    owed.delete(socket);
    socket.destroy();
  };
  // All before it has been cut, so that nothing is passed over twice: in a flood, looking from the start takes long.
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
    // Answers that nobody reads go before somebody new is turned away.
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
    response.once("prefinish", () => {
      if (socket.destroyed) return;
      const left = (owed.get(socket) ?? 0) - (counted ? 1 : 0);
      if (left > 0) return void owed.set(socket, left);
      owed.delete(socket);
      wait(socket);
    });
    if (!hasBody(request)) return begin();
    // Nothing is owed before the request is whole.
    if (!owed.has(socket) && !socket.destroyed) wait(socket);
    request.once("end", begin);
  });
  // Nothing has come or gone for a while. A request that is held may be as quiet as it likes.
  server.on("timeout", (socket: Socket) => {
    if (!owed.has(socket) || isUnread(socket)) giveUp(socket);
  });
  if (!secure) return void server.on("connection", take);
  // A connection is another object once its handshake is done; both have the same address.
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

/** Takes connections also at the other addresses `localhost` stands for: programs differ in which they try first. */
export async function listenOnLocalhost(server: Server): Promise<void> {
  const { address: first, port } = server.address() as AddressInfo;
  const addresses = await lookup("localhost", { all: true }).catch(() => []);
  for (const { address } of addresses.filter((one) => one.address !== first)) {
    const extra = createNetServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
      server.emit("connection", socket),
    );
    extra.listen(port, address);
    // Nobody is promised more than the first address.
    await once(extra, "listening").catch(() => undefined);
    server.once("close", () => extra.close());
  }
}

// Connections that are closed in one turn of the event loop: some 5 ms.
const closedAtOnce = 50;

/**
 * Does something for some in each turn of the event loop. Connections that were opened together expire together, and to close
 * ten thousand in one turn would let everybody else wait for a second.
 */
export function inSlices<Item>(act: (item: Item) => void): (item: Item) => void {
  let queue: Item[] = [];
  const goOn = (): void => {
    for (const item of queue.slice(0, closedAtOnce)) act(item);
    queue = queue.slice(closedAtOnce);
    if (queue.length > 0) setImmediate(goOn);
  };
  return (item) => {
    if (queue.push(item) === 1) setImmediate(goOn);
  };
}

// ASSUMED: a client that is turned away has a second to read why.
const lingerMs = 1000;

/** Sends the last there is to say on a connection, and gives it up, whatever the client does. */
export function endWith(socket: Socket, text: string): void {
  socket.end(text);
  const giveUp = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.once("close", () => clearTimeout(giveUp));
}
