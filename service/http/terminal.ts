// One terminal: what its client and the program in the Machine say to each other. Binary messages are bytes, as typed or written.
// Text messages are JSON: the first one of the client opens the terminal, later ones resize it, or say how much was read; the service
// says how it ended.
import type { WebSocket, RawData } from "ws";
import { z } from "zod";
import { oneLine } from "../../api/printable.ts";
import { Refusal } from "../refusal.ts";
import type { TerminalRequest, TerminalSession } from "../runtime/runtime.ts";
import type { Clock } from "../time/clock.ts";

// A client says something within this time when it begins, and answers pings later.
const checkEvery = 15_000;
/** Bytes that wait for the client, here or in its memory. */
const [mostUnread, fewUnread] = [2 ** 20, 2 ** 18];

const size = z.number().int().min(1).max(2000);
const control = z.strictObject({
  columns: size,
  rows: size,
  /** The program and its arguments; a shell without. Only in the first message. */
  command: z.array(z.string().min(1).max(4096)).min(1).max(256).optional(),
});
/** How many bytes the client has shown so far. A page cannot stop its browser from reading more than it shows. */
const progress = z.strictObject({ read: z.number().int().min(0) });

/** Codes of WebSockets: it has ended, the service ends, it is not allowed, and there is an error. */
const codes = { ended: 1000, leaving: 1001, refused: 1008, failed: 1011 } as const;

/** Why a terminal ends. */
export type EndCode = keyof typeof codes;

/** What a terminal needs. */
export interface TerminalOptions {
  readonly socket: WebSocket;
  readonly clock: Clock;
  /** Opens it in the Machine. */
  readonly open: (request: TerminalRequest) => Promise<TerminalSession>;
  /** Whether the client may still use it. */
  readonly isValid: () => boolean;
  /** Why the program has ended, if it did not end by itself. */
  readonly reason: () => string | undefined;
  /** Called when it is opened, or refused. */
  readonly opened: (words: readonly string[], refusal?: Refusal) => void;
  /** Called when it ends: why, as a sentence, and after how many milliseconds. */
  readonly ended: (how: string, ms: number) => void;
  readonly failed: (error: unknown) => void;
}

/** A terminal that a client has connected to. */
export class Terminal {
  /** Resolves when its program has ended, and the client has the reason. */
  readonly finished: Promise<void>;
  readonly #options: TerminalOptions;
  #finish: () => void = () => {};
  #begun: number | undefined;
  /** Whether the engine has yet to answer. */
  #isOpening = false;
  /** Why it has ended. */
  #how = "";
  #asked: z.infer<typeof control> | undefined;
  #session: TerminalSession | undefined;
  /** What was typed before the program was there. */
  #early: Buffer[] = [];
  #sent = 0;
  /** What the client has shown; undefined if it does not say. */
  #read: number | undefined;
  #isOver = false;
  #isAlive = true;
  #cancel: () => void;

  constructor(options: TerminalOptions) {
    this.#options = options;
    this.finished = new Promise((resolve) => (this.#finish = resolve));
    const { socket, clock } = options;
    socket.on("message", (data, isBinary) => {
      this.#isAlive = true;
      if (isBinary) this.#type(data as Buffer);
      else this.#control(textOf(data));
    });
    socket.on("pong", () => (this.#isAlive = true));
    socket.once("close", () => this.end("ended", "its client has gone"));
    // Such as a message that is too long; the connection is closed.
    socket.on("error", () => {});
    this.#cancel = clock.after(checkEvery, () => this.#check());
  }

  /** Ends it, and the program in it. The client gets the reason. */
  end(code: EndCode, reason: string): void {
    this.#end(code, { problem: reason }, reason);
  }

  #end(code: EndCode, said: { readonly exit: number | null } | { readonly problem: string }, how: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#how = how;
    this.#cancel();
    const { socket, clock, ended } = this.#options;
    if (socket.isPaused) socket.resume();
    socket.send(JSON.stringify(said), () => {});
    socket.close(codes[code]);
    if (this.#begun !== undefined) ended(how, clock.elapsed() - this.#begun);
    this.#session?.output.resume();
    if (!this.#isOpening) this.#release(this.#session);
  }

  /** Ends its program. */
  #release(session: TerminalSession | undefined): void {
    void (session?.end() ?? Promise.resolve()).catch(this.#options.failed).finally(() => {
      this.#finish();
    });
  }

  /** Looks whether it may stay open. */
  #check(): void {
    const { socket, clock } = this.#options;
    if (!this.#mayStay()) return;
    if (!this.#asked) return this.end("refused", "the first message did not come in time");
    // A client that reads nothing does not answer, either.
    if (!this.#isAlive) {
      this.end("ended", "its client does not answer");
      return socket.terminate();
    }
    this.#isAlive = socket.isPaused;
    socket.ping();
    this.#cancel = clock.after(checkEvery, () => this.#check());
  }

  #mayStay(): boolean {
    if (this.#isOver) return false;
    if (this.#options.isValid()) return true;
    this.end("refused", "the token or the session has expired, or was revoked");
    return false;
  }

  #control(text: string): void {
    if (this.#isOver) return;
    const message = jsonOf(text);
    const { data: shown } = progress.safeParse(message);
    if (shown && this.#asked) {
      this.#read = Math.min(shown.read, this.#sent);
      return this.#goOn();
    }
    const { success, data } = control.safeParse(message);
    if (!success || (this.#asked && data.command)) return this.end("refused", "a message of the client is not valid");
    const { columns, rows } = data;
    const isFirst = this.#asked === undefined;
    this.#asked = data;
    if (!isFirst) return this.#session?.resize(columns, rows);
    // What is typed waits until the program is there: in the connection, beside what was read from it already.
    this.#options.socket.pause();
    void this.#open(data.command ?? [], columns, rows).catch(this.#options.failed);
  }

  async #open(words: readonly string[], columns: number, rows: number): Promise<void> {
    const { socket, clock, open, opened, ended, failed } = this.#options;
    let session: TerminalSession;
    this.#isOpening = true;
    try {
      session = await open({ words, columns, rows });
    } catch (error) {
      this.#isOpening = false;
      const refusal =
        error instanceof Refusal ? error : new Refusal(500, { error: "the terminal could not be opened; see the log" });
      if (!(error instanceof Refusal)) failed(error);
      if (this.#isOver) this.#release(undefined);
      opened(words, refusal);
      if (this.#isOver) return;
      return this.end("failed", this.#options.reason() ?? refusal.message);
    }
    this.#isOpening = false;
    if (this.#isOver) {
      this.#release(session);
      // Its client was in a hurry, but the command has begun.
      opened(words);
      return ended(this.#how, 0);
    }
    this.#begun = clock.elapsed();
    this.#session = session;
    opened(words);
    socket.send(JSON.stringify({ opened: true }));
    session.input.on("error", () => {});
    session.output.on("error", () => {});
    session.output.on("data", (part: Buffer) => this.#show(part));
    void session.exited.then((code) => this.#exited(code));
    socket.resume();
    const { columns: lastColumns, rows: lastRows } = this.#asked ?? { columns, rows };
    if (lastColumns !== columns || lastRows !== rows) session.resize(lastColumns, lastRows);
    for (const bytes of this.#early.splice(0)) this.#type(bytes);
  }

  #exited(code: number | undefined): void {
    const reason = this.#options.reason();
    if (reason !== undefined) return this.end("ended", reason);
    this.#end("ended", { exit: code ?? null }, code === undefined ? "its program ended" : `exit code ${code}`);
  }

  #show(part: Buffer): void {
    const { socket } = this.#options;
    const { output } = this.#session ?? {};
    if (!output || !this.#mayStay()) return;
    this.#sent += part.length;
    socket.send(part, () => this.#goOn());
    if (this.#unread > mostUnread) output.pause();
  }

  get #unread(): number {
    return Math.max(this.#options.socket.bufferedAmount, this.#sent - (this.#read ?? this.#sent));
  }

  #goOn(): void {
    const { output } = this.#session ?? {};
    if (output?.isPaused() && this.#unread <= fewUnread) output.resume();
  }

  #type(bytes: Buffer): void {
    if (!this.#mayStay()) return;
    const { socket } = this.#options;
    const { input } = this.#session ?? {};
    if (!this.#asked) return this.end("refused", "the first message must open the terminal");
    if (!input) return void this.#early.push(bytes);
    if (!input.writable || input.write(bytes)) return;
    socket.pause();
    input.once("drain", () => socket.resume());
  }
}

const textOf = (data: RawData): string => (Buffer.isBuffer(data) ? data : Buffer.from(data as ArrayBuffer)).toString();

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A command in the records: its program, because arguments may be secret. */
export const commandText = ([program, ...rest]: readonly string[]): string =>
  program === undefined ? "a shell" : `${oneLine(program)}${rest.length > 0 ? " …" : ""}`;
