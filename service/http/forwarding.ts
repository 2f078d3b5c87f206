// A request that a member sends to another one, and the answer on its way to the client. Every request at a member that does not lead
// passes here, so this uses undici's dispatcher itself: its `request` makes a stream and several promises for each.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Dispatcher } from "undici";
import { bodyLimit } from "./app.ts";
import { hasBody } from "./connections.ts";
import { upgradeOf } from "./upgrades.ts";

/** The header by which a member says from which client a request comes. */
export const clientHeader = "machines-client";
/** The header by which it says how that client speaks to the first of the proxies, by HTTP or HTTPS. */
export const schemeHeader = "machines-client-scheme";
/** By which a leader that ends says that it did nothing for a request. */
export const refusedHeader = "machines-not-accepted";

/** Headers of one connection, not of the request. */
const ofConnection = ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"];
const notForwarded: ReadonlySet<string> = new Set([...ofConnection, "expect", clientHeader, schemeHeader]);

/** The headers of a request, names and values in turn, without those of its connection. */
export function forwardedHeaders(raw: readonly string[]): string[] {
  const headers: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? "";
    if (!notForwarded.has(name.toLowerCase())) headers.push(name, raw[i + 1] ?? "");
  }
  return headers;
}

/** The whole body of a request, null if it has none; undefined if it is longer than any may be. */
export function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> | null {
  if (!hasBody(request)) return null;
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let length = 0;
    request.on("data", (part: Buffer) => {
      length += part.length;
      if (length <= bodyLimit) parts.push(part);
    });
    // A client that still writes would not read a refusal, so the rest is read, too.
    request.once("end", () =>
      resolve(length > bodyLimit ? undefined : parts.length === 1 ? parts[0] : Buffer.concat(parts)),
    );
    request.once("error", reject).once("close", () => reject(new Error("the client has gone")));
  });
}

/** One attempt to have a request answered by another member. */
export class Attempt implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;
  #controller: Dispatcher.DispatchController | undefined;
  #isGivenUp = false;
  #isRefused = false;
  #settle: { readonly resolve: (isAnswered: boolean) => void; readonly reject: (error: unknown) => void } | undefined;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /** Resolves when the answer is complete: true if it was passed on, false if the other member did nothing. */
  send(dispatcher: Dispatcher, request: Dispatcher.DispatchOptions): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      dispatcher.dispatch(request, this);
    });
  }

  /** Ends it, if it has not ended. */
  giveUp(): void {
    this.#isGivenUp = true;
    this.#controller?.abort(new Error("given up"));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isGivenUp) this.giveUp();
  }

  /** The other member has accepted a WebSocket: from now on, both connections are one. */
  onRequestUpgrade(
    _: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
    other: Duplex,
  ): void {
    this.#controller = undefined;
    this.#settle?.resolve(true);
    const upgrade = upgradeOf(this.#response.req);
    other.on("error", () => other.destroy());
    if (!upgrade || upgrade.socket.destroyed) return void other.destroy();
    const { socket, head } = upgrade;
    const lines = Object.entries(headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one) => `${name}: ${one}`),
    );
    socket.write(`HTTP/1.1 ${status} Switching Protocols\r\n${lines.join("\r\n")}\r\n\r\n`, "latin1");
    if (head.length > 0) other.write(head);
    socket.once("close", () => other.destroy());
    other.once("close", () => socket.destroySoon());
    other.pipe(socket);
    socket.pipe(other);
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Record<string, unknown>): void {
    if (status < 200) return;
    if (headers[refusedHeader] !== undefined) {
      this.#isRefused = true;
      return;
    }
    for (const name of ofConnection) delete headers[name];
    this.#response.writeHead(status, headers as Record<string, string | string[]>);
    // A held stream begins before its first event; everything else is sent together with its head.
    if (headers["content-length"] === undefined) this.#response.flushHeaders();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isRefused || this.#response.write(chunk)) return;
    controller.pause();
    this.#response.once("drain", () => controller.resume());
  }

  onResponseEnd(): void {
    this.#controller = undefined;
    if (!this.#isRefused) this.#response.end();
    this.#settle?.resolve(!this.#isRefused);
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#settle?.reject(error);
  }
}
