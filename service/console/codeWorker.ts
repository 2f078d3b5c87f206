// A worker thread that writes programs. Long programs would keep all other clients waiting if this thread wrote them, and its memory
// is given back when the worker ends.
import { Worker } from "node:worker_threads";
import { refuse, type Refusal } from "../refusal.ts";
import { builtFile } from "./built.ts";
import type { FromWorker, Read, ReadAnswer, ToWorker, Wanted, WrittenCode } from "./code.ts";

const mi = 2 ** 20;
// ASSUMED: an object is copied as code if its reads have at most 8 MiB and its programs 16 MiB, and if that takes at most 60 s and
// 512 MiB of memory. Beyond these bounds it is 413, or 503 for the time; only the command copies it then.
const most = { read: 8 * mi, written: 16 * mi, heap: 512 * mi, ms: 60_000 } as const;
/** A worker that has read more is not used again, so that its memory is given back at once. */
const keptBytes = mi;

/** A read that is answered as bytes, of which there may be at most `most`. */
export type SendRead = (
  read: Read,
  most: number,
) => Promise<Omit<ReadAnswer, "text"> & { readonly bytes: Uint8Array<ArrayBuffer> }>;

/** A read has more bytes than are left. */
export class ReadTooLong extends Error {}

const tooLarge = ({ type, id }: Wanted, why: string): Refusal =>
  refuse(413, `${type} ${id} is too large to be copied here: ${why}. Use the command npx pulumi-machines import`);

/** One worker; it writes one program at a time. */
export class CodeWorker {
  readonly #worker: Worker;
  /** Number of its last job. */
  #job = 0;
  #readBytes = 0;
  #isBroken = false;

  /** @throws Refusal 500 if the file of the generator is missing */
  constructor() {
    this.#worker = new Worker(bundleFile(), {
      resourceLimits: { maxOldGenerationSizeMb: most.heap / mi, maxYoungGenerationSizeMb: 32 },
      // It needs nothing of this computer.
      env: {},
      execArgv: [],
    });
    this.#worker.unref();
    this.#worker.on("error", () => (this.#isBroken = true)).on("exit", () => (this.#isBroken = true));
  }

  /** Whether it can be used again, and holds little memory. */
  get isReusable(): boolean {
    return !this.#isBroken && this.#readBytes <= keptBytes;
  }

  async end(): Promise<void> {
    this.#isBroken = true;
    await this.#worker.terminate();
  }

  /** Writes an object as code. @throws Refusal if it may not be read, or is beyond the bounds */
  async write(wanted: Wanted, send: SendRead): Promise<WrittenCode> {
    this.#readBytes = 0;
    let leave = (): void => {};
    try {
      return await new Promise((resolve, reject) => {
        leave = this.#begin(wanted, send, resolve, (error) => {
          this.#isBroken = true;
          reject(error);
        });
      });
    } finally {
      leave();
    }
  }

  /** Begins a job; returns how to leave it. After `fail` the worker is not used again. */
  #begin(
    wanted: Wanted,
    send: SendRead,
    finish: (code: WrittenCode | Promise<never>) => void,
    fail: (error: unknown) => void,
  ): () => void {
    const worker = this.#worker;
    const job = ++this.#job;
    const post = (message: ToWorker, moved: readonly ArrayBuffer[] = []): void => worker.postMessage(message, moved);
    const answer = async ({ read, wanted: of }: Extract<FromWorker, { kind: "read" }>): Promise<void> => {
      try {
        const found = await this.#read(of, send);
        post({ kind: "answer", read, answer: found }, [found.bytes.buffer]);
      } catch (error) {
        if (error instanceof ReadTooLong) fail(tooLarge(wanted, `it has more than ${most.read / mi} MiB`));
        else post({ kind: "answer", read, answer: undefined });
      }
    };
    const hear = (message: FromWorker): void => {
      // A job that was refused may still read; it must not get the rights of the next one.
      if (message.job !== job) return;
      if (message.kind === "read") return void answer(message);
      if (message.kind === "failed") {
        const { status, message: text } = message;
        return finish(Promise.reject(status === undefined ? new Error(text) : refuse(status, text)));
      }
      if (message.code.json.length <= most.written) return finish(message.code);
      fail(tooLarge(wanted, `its programs have more than ${most.written / mi} MiB`));
    };
    const broke = (error: Error & { readonly code?: string }): void => {
      const isFull = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      fail(isFull ? tooLarge(wanted, `its programs need more than ${most.heap / mi} MiB of memory`) : error);
    };
    const gone = (): void => fail(new Error("the worker that writes programs has ended"));
    const late = refuse(503, `${wanted.type} ${wanted.id} took longer than ${most.ms / 1000} s; try again`);
    const timer = setTimeout(() => fail(late), most.ms);
    worker.on("message", hear).once("error", broke).once("exit", gone);
    post({ kind: "write", job, wanted });
    return () => {
      clearTimeout(timer);
      worker.off("message", hear).off("error", broke).off("exit", gone);
    };
  }

  async #read(wanted: Read, send: SendRead): ReturnType<SendRead> {
    const found = await send(wanted, most.read - this.#readBytes);
    this.#readBytes += found.bytes.length;
    return found;
  }
}

/** The file of the generator. */
function bundleFile(): string {
  const found = builtFile("code.js");
  if (found !== undefined) return found;
  throw refuse(
    500,
    "dist/console/code.js is missing: install the package machines-service again, or run `npm run build` in a clone",
  );
}
