// Connections that share a limit, and which of them is closed when there are too many.
import type { Socket } from "node:net";

/** A connection of a client. */
export interface Client {
  readonly address: string;
  /** The connection that the system knows. */
  readonly socket: Socket;
  /** The same, or what it has become after the handshake of TLS. Its bytes are counted. */
  meter: Socket;
  /** Requests that have begun; a raw connection counts as one. */
  open: number;
  /** Bytes in both directions at the last check. */
  bytes: number;
  /** When a check has last found more of them. */
  activeAt: number;
}

/** Bytes of a client in both directions. */
export const bytesOf = ({ meter: { bytesRead, bytesWritten } }: Client): number => bytesRead + (bytesWritten ?? 0);

/** Connections without a request, and those in use. */
export class Crowd {
  readonly #most: number;
  readonly #yieldMs: number;
  readonly #all = new Set<Client>();
  /** Those without a request, by their last one, the oldest first. */
  readonly #waiting = new Set<Client>();
  // All before it are closed. Searching from the start again would take long in a flood.
  #order = this.#waiting.values();
  /** Silent ones when they were last searched for, the longest last. */
  #silent: Client[] = [];
  #searchedAt = -Infinity;

  constructor(most: number, yieldMs: number) {
    this.#most = most;
    this.#yieldMs = yieldMs;
  }

  get size(): number {
    return this.#all.size;
  }

  /** All of them. */
  clients(): Iterable<Client> {
    return this.#all;
  }

  /** Adds one, without a request. */
  add(client: Client): void {
    this.#all.add(client);
    this.#waiting.add(client);
  }

  delete(client: Client): void {
    this.#all.delete(client);
    this.#waiting.delete(client);
  }

  /** A request of it has begun. */
  use(client: Client): void {
    this.#waiting.delete(client);
  }

  /** Its requests have ended. */
  free(client: Client): void {
    if (this.#all.has(client)) this.#waiting.add(client);
  }

  /** The one to close after `newest` has come: undefined if there is room, and itself if no other may be closed. */
  excess(newest: Client, now: number): Client | undefined {
    if (this.#all.size <= this.#most) return undefined;
    const waiting = this.#oldest();
    return waiting === undefined || waiting === newest ? (this.#longestSilent(now) ?? newest) : waiting;
  }

  #oldest(): Client | undefined {
    const { value } = this.#order.next();
    if (value) return value;
    this.#order = this.#waiting.values();
    return this.#order.next().value;
  }

  #longestSilent(now: number): Client | undefined {
    // Searching for each of many new connections would take long.
    if (this.#silent.length === 0 && now - this.#searchedAt >= 1000) {
      this.#searchedAt = now;
      this.#silent = [...this.#all]
        .filter((client) => this.#isSilent(client, now))
        .sort((a, b) => b.activeAt - a.activeAt);
    }
    for (;;) {
      const found = this.#silent.pop();
      if (!found || (this.#all.has(found) && this.#isSilent(found, now))) return found;
    }
  }

  #isSilent(client: Client, now: number): boolean {
    return client.open > 0 && now - client.activeAt >= this.#yieldMs && bytesOf(client) === client.bytes;
  }
}
