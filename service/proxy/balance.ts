// The choice between Machines that can take a request.

/** A Machine, and what it is doing. */
export interface Load {
  /** Open requests or connections. */
  readonly open: number;
  /** Above it, others are preferred. */
  readonly soft: number;
  /** At it, no more are sent. */
  readonly hard: number;
}

/**
 * The one to send the next request to: the least loaded below its soft limit, else the least loaded below its hard limit; undefined
 * if all are at theirs. Those with the same load take turns.
 */
export function choose<L extends Load>(candidates: readonly L[], turn: number): L | undefined {
  const free = candidates.filter(({ open, hard }) => open < hard);
  const preferred = free.filter(({ open, soft }) => open < soft);
  const from = preferred.length > 0 ? preferred : free;
  const least = Math.min(...from.map(({ open }) => open));
  const equal = from.filter(({ open }) => open === least);
  return equal[turn % Math.max(1, equal.length)];
}
