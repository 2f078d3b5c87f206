// Histories: what concurrent clients asked, what they were answered, and when. tools/histories checks them.
import type { Answer } from "../client.ts";

/** A request for one object. A mark identifies the effect of an operation. */
export interface Input {
  readonly do: string;
  readonly mark?: string | undefined;
  /** Mark of the version that the client requires. */
  readonly expected?: string | undefined;
  /** Mark of the lease whose nonce the client sends. */
  readonly nonce?: string | undefined;
  /** Seconds. */
  readonly ttl?: number | undefined;
  /** The room of a region. */
  readonly limit?: number;
  /** Null removes a key. */
  readonly values?: Readonly<Record<string, string | null>>;
}

/** An answer. */
export interface Output {
  readonly result: string;
  readonly mark?: string | undefined;
  readonly marks?: readonly string[];
  readonly version?: number;
  readonly values?: Readonly<Record<string, string>>;
}

/** An operation of a client. Times are microseconds of one monotonic clock. */
export interface Operation {
  readonly client: number;
  readonly object: string;
  readonly key: string;
  readonly input: Input;
  /** Missing if the answer was lost. */
  readonly output?: Output;
  readonly call: number;
  /** When the client had the answer, or learned that it was lost. */
  readonly return: number;
}

const now = (): number => Math.round(performance.now() * 1000);

/** Whether an error says that the answer is lost: it is that of `fetch` when the connection ends. */
export const isLost = (error: unknown): boolean => error instanceof TypeError;

/** Whether an answer is lost: the connection was closed, or an injected failure replaced it. */
async function unlessLost(send: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    const answer = await send();
    return answer.status === 502 ? undefined : answer;
  } catch (error) {
    if (isLost(error)) return undefined;
    throw error;
  }
}

/** The operations of a run. */
export class History {
  readonly id: string;
  /** The marks of objects by their ids. */
  readonly names = new Map<string, string>();
  readonly #operations: Operation[] = [];
  /** Number of operations whose answer was lost. */
  lost = 0;

  constructor(id: string) {
    this.id = id;
  }

  /** The operations. An id in an answer is replaced by the mark, which a client may have learned later. */
  get operations(): readonly Operation[] {
    return this.#operations.map((operation) => {
      const mark = this.names.get(operation.output?.mark ?? "");
      return operation.output && mark !== undefined
        ? { ...operation, output: { ...operation.output, mark } }
        : operation;
    });
  }

  /** Sends a request and records it. Undefined if the answer was lost. */
  async record(
    asked: Pick<Operation, "client" | "object" | "key" | "input">,
    send: () => Promise<Answer>,
    outputOf: (answer: Answer) => Output,
  ): Promise<Answer | undefined> {
    const call = now();
    const answer = await unlessLost(send);
    const times = { call, return: now() };
    if (answer) this.#operations.push({ ...asked, ...times, output: outputOf(answer) });
    else if (!asked.input.do.startsWith("read")) this.#operations.push({ ...asked, ...times });
    if (!answer) this.lost++;
    return answer;
  }
}
