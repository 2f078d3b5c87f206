// Splits long work into pieces. All long work together gets one piece per turn of the event loop, however many clients request
// it, and other requests are served in between.

/** Grants turns of the event loop, one at a time. */
export class FairTurns {
  #last: Promise<void> = Promise.resolve();

  /** Resolves in a turn that no other caller gets. */
  next(): Promise<void> {
    return (this.#last = this.#last.then(() => new Promise<void>((resolve) => setImmediate(resolve))));
  }
}
