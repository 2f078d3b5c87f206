// The body of a request, kept while a Machine reads it, because the request may be replayed.
import type { IncomingMessage } from "node:http";
import type { Writable } from "node:stream";

// ASSUMED: a body of up to a megabyte is kept, and of all requests together 64 megabytes: no client can fill the memory.
/** Bytes of a body that can be sent again. */
export const mostKeptBody = 2 ** 20;
const mostOfAll = 64 * 2 ** 20;

/** What all bodies take. */
export class BodyBudget {
  #bytes = 0;

  /** Takes so many bytes; false if too few are left. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > mostOfAll) return false;
    this.#bytes += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/** A body. */
export class KeptBody {
  readonly #request: IncomingMessage;
  readonly #budget: BodyBudget;
  #parts: Buffer[] | undefined = [];
  #size = 0;
  #whole: Buffer | undefined;
  readonly #keep = (part: Buffer): void => this.#add(part);

  constructor(request: IncomingMessage, budget: BodyBudget) {
    this.#request = request;
    this.#budget = budget;
  }

  /** Sends it to a Machine: to the first one while the client sends it, to others after {@link readAll}. */
  sendTo(machine: Writable): void {
    if (this.#whole) return void machine.end(this.#whole);
    this.#request.on("data", this.#keep).pipe(machine);
  }

  /** Reads what is left. Resolves to whether it can be sent again; not, if it is too long, or if the client has gone. */
  async readAll(): Promise<boolean> {
    if (this.#whole) return true;
    const request = this.#request;
    if (!request.readableEnded)
      await new Promise<void>((resolve) => {
        request.once("end", resolve).once("close", resolve);
        request.on("data", () => this.#parts === undefined && resolve());
        request.resume();
      });
    this.#whole = this.#parts && request.readableEnded ? Buffer.concat(this.#parts) : undefined;
    return this.#whole !== undefined;
  }

  /** Forgets it, because it is too long or no other Machine will get it. */
  forget(): void {
    this.#request.removeListener("data", this.#keep);
    this.#parts = undefined;
    this.#whole = undefined;
    this.#budget.give(this.#size);
    this.#size = 0;
  }

  #add(part: Buffer): void {
    if (this.#size + part.length > mostKeptBody || !this.#budget.take(part.length)) return this.forget();
    this.#parts?.push(part);
    this.#size += part.length;
  }
}
