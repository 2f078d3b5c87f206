// What the store needs of a log: it learns of each transaction, and says when its changes are durable.

/** Records the transactions of a store. All methods but `committed` are called while one is open. */
export interface GroupLog {
  /** A transaction begins. */
  begin(): void;
  /** A transaction is about to be committed: nothing changes after this. */
  end(): void;
  /** A transaction is rolled back, also after `end`. */
  discard(): void;
  /**
   * The transaction was committed. Resolves when its changes and all earlier ones are durable; undefined if they are. Rejects only if
   * they never will be: while the outcome is unknown, the request is not answered.
   */
  committed(): Promise<void> | undefined;
  /** Undefined if what was read now is up to date; otherwise resolves once that is certain. */
  readonly unsure: Promise<void> | undefined;
}
