// Level-triggered work: a change of something only says that its next step is due. A step looks at what is wanted and what is
// there, and does what is missing. It is repeated until it succeeds.

import { growingPause } from "../../api/growingPause.ts";
import { KeyedQueue } from "../../api/keyedQueue.ts";

/** Pauses between two failed attempts. */
export const newPause = (): (() => number) => growingPause(200, 5000);

/** What steps need of the service. */
export interface StepsHost {
  /** Resolves when everything that was decided is durable. */
  settled(): Promise<void>;
  readonly log: { warn(details: object, message: string): void };
}

/** One kind of steps. */
export interface StepsOf {
  /** The kind of the thing, for the log. */
  readonly kind: string;
  /** The log line of a failure. */
  readonly failed: string;
  /** The reason of a failure, for the log. */
  readonly reasonOf: (error: unknown) => string;
  /** Does one step; true if another one is due. */
  readonly step: (id: string) => Promise<boolean>;
}

interface Work {
  /** A change came while a step was running. */
  again: boolean;
  /** Resolves a pause early. */
  wake: () => void;
  /** Resolves when this work has ended. */
  ended: Promise<void>;
}

/** The steps of one kind of thing. Those of one thing never overlap. */
export class Steps {
  readonly #host: StepsHost;
  readonly #of: StepsOf;
  readonly #work = new Map<string, Work>();
  /** The holders of each thing. */
  readonly #held = new KeyedQueue();
  #isClosed = false;

  constructor(host: StepsHost, of: StepsOf) {
    this.#host = host;
    this.#of = of;
  }

  /** Something has changed, or may have. */
  changed(id: string): void {
    if (this.#isClosed || this.#held.isBusy(id)) return;
    const working = this.#work.get(id);
    if (working) {
      working.again = true;
      working.wake();
      return;
    }
    const work: Work = { again: true, wake: () => {}, ended: Promise.resolve() };
    this.#work.set(id, work);
    work.ended = this.#continue(id, work);
  }

  /** Lets the current step end, and begins none until the returned function is called. Holders come one after the other. */
  hold(id: string): Promise<() => void> {
    return new Promise((resolve) => {
      const held = this.#held.run(id, async () => {
        this.#work.get(id)?.wake();
        await this.#work.get(id)?.ended;
        await new Promise<void>((release) => resolve(release));
      });
      void held.then(() => this.changed(id));
    });
  }

  /** Begins no further step, and resolves when those that run have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { wake } of this.#work.values()) wake();
    await Promise.all([...this.#work.values()].map(({ ended }) => ended));
  }

  async #continue(id: string, work: Work): Promise<void> {
    let pause = newPause();
    let logged: string | undefined;
    while (work.again && !this.#isClosed && !this.#held.isBusy(id)) {
      work.again = false;
      try {
        // The call came inside a transaction, which may still be undone.
        await new Promise(setImmediate);
        await this.#host.settled();
        if (await this.#of.step(id)) work.again = true;
        pause = newPause();
      } catch (error) {
        if (this.#isClosed) return;
        const reason = this.#of.reasonOf(error);
        if (reason !== logged) this.#host.log.warn({ [this.#of.kind]: id, reason }, this.#of.failed);
        logged = reason;
        work.again = true;
        await pauseOf(pause(), work);
      }
    }
    // At once after the last look at it: a later change begins again.
    this.#work.delete(id);
  }
}

/** Waits before the next attempt; a change ends the wait early. */
const pauseOf = (ms: number, work: Work): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    work.wake = () => {
      clearTimeout(timer);
      resolve();
    };
  });
