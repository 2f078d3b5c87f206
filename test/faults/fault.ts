// A row of the catalogues of faults.

/** One fault. */
export interface Fault {
  /** The fault. */
  readonly wrong: string;
  /** The promised behaviour. */
  readonly promised: string;
  /** Whether the fault is among the most harmful to users; it is then also tested with the real CLI. */
  readonly decisive?: boolean;
}
