// Long work goes on piece by piece. However many clients ask for it, all of it together gets one piece of a turn of the event
// loop, and everybody else is served in between.

/** Hands out turns of the event loop, one at a time. */
export class FairTurns {
  #last: Promise<void> = Promise.resolve();

  /** Resolves in a turn that is nobody else's. */
  next(): Promise<void> {
    return (this.#last = this.#last.then(() => new Promise<void>((resolve) => setImmediate(resolve))));
  }
}
