// The connections of the proxy's clients: how many there are, how long they are silent, and which one is closed first (F74). It
// does for the proxy what http/connections.ts does for the API, also for WebSockets and raw connections.
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { inSlices, refuseWith } from "../runtime/closing.ts";
import { endsOf } from "../runtime/ends.ts";
import type { Log } from "../runtime/runtime.ts";
import { bytesOf, Crowd, type Client } from "./crowd.ts";
import type { ProxyLimits } from "./limits.ts";

/** Milliseconds between two warnings that there are too many. */
const warnMs = 60_000;

/** All connections of clients. */
export class Clients {
  readonly limits: ProxyLimits;
  readonly #log: Pick<Log, "warn">;
  readonly #now: () => number;
  readonly #isShared: (address: string) => boolean;
  readonly #all: Crowd;
  readonly #byAddress = new Map<string, Crowd>();
  readonly #known = new WeakMap<Duplex, Client>();
  readonly #byEnds = new Map<string, Client>();
  /** Connections that were opened together expire together. */
  readonly #soon = inSlices<() => void>((end) => end());
  #warnedAt = -Infinity;
  readonly #check: NodeJS.Timeout;

  /**
   * `now` is a clock in milliseconds that is never set. An address that `isShared` is that of many clients, and has no limit of its own.
   */
  constructor(
    limits: ProxyLimits,
    log: Pick<Log, "warn">,
    now: () => number = () => performance.now(),
    isShared: (address: string) => boolean = () => false,
  ) {
    this.#isShared = isShared;
    this.limits = limits;
    this.#log = log;
    this.#now = now;
    this.#all = new Crowd(limits.most, limits.yieldMs);
    this.#check = setInterval(() => this.check(), limits.checkMs).unref();
  }

  /** Number of connections. */
  get size(): number {
    return this.#all.size;
  }

  /** Number of addresses that they come from. */
  get addresses(): number {
    return this.#byAddress.size;
  }

  /** Counts a connection. It may be closed at once, or another one for it. */
  take(socket: Socket): void {
    if (this.#known.has(socket)) return;
    const { remoteAddress: address } = socket;
    // The client has gone already.
    if (address === undefined) return void socket.destroy();
    const client: Client = { address, socket, meter: socket, open: 0, bytes: 0, activeAt: this.#now() };
    const same =
      this.#byAddress.get(address) ??
      new Crowd(this.#isShared(address) ? this.limits.most : this.limits.ofAddress, this.limits.yieldMs);
    this.#byAddress.set(address, same);
    const ends = endsOf(socket);
    this.#known.set(socket, client);
    this.#byEnds.set(ends, client);
    for (const crowd of [same, this.#all]) crowd.add(client);
    socket.once("close", () => {
      this.#forget(client);
      if (this.#byEnds.get(ends) === client) this.#byEnds.delete(ends);
    });
    for (const crowd of [same, this.#all]) {
      const excess = crowd.excess(client, this.#now());
      if (!excess) continue;
      this.#warn(excess);
      // It counts no longer, although the system closes it a moment later.
      this.#forget(excess);
      close(excess);
      if (excess === client) return;
    }
  }

  /** The handshake of a connection has ended: from now on it is this one. */
  secured(socket: Socket): void {
    const client = this.#byEnds.get(endsOf(socket));
    if (!client) return;
    client.meter = socket;
    client.bytes = 0;
    this.#known.set(socket, client);
  }

  /** A request of a connection has begun. Raw connections are one request. */
  use(socket: Duplex): void {
    const client = this.#known.get(socket);
    if (!client || ++client.open > 1) return;
    client.activeAt = this.#now();
    this.#all.use(client);
    this.#byAddress.get(client.address)?.use(client);
  }

  /** Applies the limits to a server of HTTP, whose connections are counted. */
  watch(server: Server): void {
    server.headersTimeout = this.limits.headersMs;
    server.prependListener("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
      this.use(socket);
      response.once("close", () => this.#free(socket));
    });
    server.prependListener("upgrade", (_: IncomingMessage, socket: Duplex) => this.use(socket));
    server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
      const status = statusOf(error);
      // An answer may have begun.
      const isAsked = (this.#known.get(socket)?.open ?? 0) > 0;
      if (!status || isAsked || !socket.writable) return void socket.destroy();
      const end = (): void => refuseWith(socket, status);
      if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") this.#soon(end);
      else end();
    });
  }

  /** Closes the connections that were silent too long. */
  check(): void {
    const now = this.#now();
    for (const client of this.#all.clients()) {
      const bytes = bytesOf(client);
      if (bytes === client.bytes) {
        if (client.open > 0 && now - client.activeAt >= this.limits.idleMs) this.#soon(() => close(client));
        continue;
      }
      client.bytes = bytes;
      client.activeAt = now;
    }
  }

  close(): void {
    clearInterval(this.#check);
    for (const client of [...this.#all.clients()]) close(client);
  }

  #free(socket: Socket): void {
    const client = this.#known.get(socket);
    if (!client || --client.open > 0) return;
    this.#all.free(client);
    this.#byAddress.get(client.address)?.free(client);
  }

  #forget(client: Client): void {
    this.#all.delete(client);
    const same = this.#byAddress.get(client.address);
    same?.delete(client);
    if (same?.size === 0) this.#byAddress.delete(client.address);
  }

  #warn({ address }: Client): void {
    const now = this.#now();
    if (now - this.#warnedAt < warnMs) return;
    this.#warnedAt = now;
    const { most, ofAddress } = this.limits;
    const ofThis = this.#byAddress.get(address)?.size ?? 0;
    this.#log.warn(
      { address, ofThis, ofAddress, all: this.size, most },
      "the proxy has as many connections as it may, so it closes those that are idle",
    );
  }
}

function close({ socket, meter }: Client): void {
  meter.destroy();
  socket.destroy();
}

/** The answer to what is not HTTP; undefined if the connection is broken. */
function statusOf({ code = "" }: NodeJS.ErrnoException): string | undefined {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return "408 Request Timeout";
  if (code === "HPE_HEADER_OVERFLOW") return "431 Request Header Fields Too Large";
  return code.startsWith("HPE_") ? "400 Bad Request" : undefined;
}
