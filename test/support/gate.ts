/** An event that a test triggers. */
export interface Gate {
  /** Resolves once the gate is open. */
  readonly opened: Promise<void>;
  open(): void;
}

/** A closed gate. */
export function gate(): Gate {
  let open: (() => void) | undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open?.() };
}
