// Keeps what a command writes.
import { PassThrough } from "node:stream";

const most = 2 ** 20;

/** A stream that keeps the text written to it. ASSUMED: the first mebibyte of a command's output is returned. */
export class Collected extends PassThrough {
  readonly #chunks: Buffer[] = [];
  #length = 0;

  constructor() {
    super();
    this.on("data", (chunk: Buffer) => {
      if (this.#length < most) this.#chunks.push(chunk.subarray(0, most - this.#length));
      this.#length += chunk.length;
    });
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString();
  }
}
