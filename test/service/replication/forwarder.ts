// The network between a member and the database: it forwards connections, and can be cut.
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** How a cut network looks: connections end and none is accepted; or they stay, and nothing arrives until the cut is over. */
export type Cut = "refuses" | "is silent";

/** A connection with its other side, which is missing while the network is silent. */
interface Pair {
  readonly near: Socket;
  far: Socket | undefined;
}

/** Forwards what comes to its port. */
export class Forwarder {
  readonly #portOf: () => number;
  readonly #pairs = new Set<Pair>();
  readonly #server: Server;
  #cut: Cut | undefined;

  private constructor(portOf: () => number) {
    this.#portOf = portOf;
    this.#server = createServer((near) => this.#accept(near));
  }

  /** Begins to forward to the port that `portOf` returns at the time of each connection. */
  static async to(portOf: () => number): Promise<Forwarder> {
    const forwarder = new Forwarder(portOf);
    forwarder.#server.listen(0, "127.0.0.1");
    await once(forwarder.#server, "listening");
    return forwarder;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  cut(how: Cut): void {
    this.#cut = how;
    for (const { near, far } of this.#pairs) {
      if (how === "refuses") near.destroy();
      near.pause();
      far?.pause();
    }
  }

  /** Ends the cut. What was sent during a silence arrives now. */
  heal(): void {
    this.#cut = undefined;
    for (const pair of this.#pairs) this.#join(pair);
  }

  close(): void {
    this.#server.close();
    for (const { near } of this.#pairs) near.destroy();
  }

  #accept(near: Socket): void {
    near.on("error", () => {});
    if (this.#cut === "refuses") return void near.destroy();
    const pair: Pair = { near, far: undefined };
    this.#pairs.add(pair);
    near.pause();
    near.once("close", () => {
      this.#pairs.delete(pair);
      pair.far?.destroy();
    });
    if (this.#cut === undefined) this.#join(pair);
  }

  #join(pair: Pair): void {
    if (!pair.far) this.#connect(pair);
    pair.near.resume();
    pair.far?.resume();
  }

  #connect(pair: Pair): void {
    const { near } = pair;
    const far = connect(this.#portOf(), "127.0.0.1");
    pair.far = far;
    far.setNoDelay(true);
    near.setNoDelay(true);
    far.on("error", () => {});
    far.once("close", () => near.destroy());
    far.on("data", (part: Buffer) => near.write(part));
    near.on("data", (part: Buffer) => far.write(part));
    near.once("end", () => far.end());
    far.once("end", () => near.end());
  }
}
