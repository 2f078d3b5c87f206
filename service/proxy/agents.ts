// Connections to Machines that are kept for the next requests.
import { Agent } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

// ASSUMED: a connection to a Machine is kept for four seconds after its last answer. Many programs end theirs after five.
const keptMs = 4000;

/** Keeps connections that say nothing between two answers: what a Machine sends unasked must not answer the next request. */
class QuietAgent extends Agent {
  readonly #opened: (socket: Duplex) => void;

  constructor(opened: (socket: Duplex) => void) {
    super({ keepAlive: true, timeout: keptMs });
    this.#opened = opened;
  }

  override createConnection(...to: Parameters<Agent["createConnection"]>): ReturnType<Agent["createConnection"]> {
    const socket = super.createConnection(...to);
    if (socket) this.#opened(socket);
    return socket;
  }

  override keepSocketAlive(socket: Socket): boolean {
    // Its type forgets that it answers (https://nodejs.org/api/http.html#agentkeepsocketalivesocket).
    const isKept = super.keepSocketAlive(socket) as unknown as boolean;
    if (!isKept || socket.readableLength > 0) return false;
    socket.once("data", spoke);
    return true;
  }

  override reuseSocket(socket: Socket, request: never): void {
    socket.removeListener("data", spoke);
    super.reuseSocket(socket, request);
  }
}

function spoke(this: Socket): void {
  this.destroy();
}

/** The kept connections, by the endpoint of the Machine. */
export class KeptConnections {
  readonly #most: number;
  readonly #agents = new Map<string, Agent>();
  #open = 0;

  /** Keeps at most about this many connections, beside those in use. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Number of open connections. */
  get open(): number {
    return this.#open;
  }

  /** The connections to an endpoint. */
  of(endpoint: string): Agent {
    // Machines decide how long an idle connection is kept, and there can be any number of Machines (F76).
    if (this.#open >= this.#most) for (const one of [...this.#agents.keys()]) this.forget(one);
    const agent = this.#agents.get(endpoint) ?? new QuietAgent((socket) => this.#count(socket));
    this.#agents.set(endpoint, agent);
    return agent;
  }

  /** Ends those to an endpoint that is no longer a Machine's. Requests that have begun may end. */
  forget(endpoint: string): void {
    const agent = this.#agents.get(endpoint);
    if (!agent) return;
    this.#agents.delete(endpoint);
    agent.maxFreeSockets = 0;
    for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
  }

  #count(socket: Duplex): void {
    this.#open++;
    socket.once("close", () => this.#open--);
  }
}
