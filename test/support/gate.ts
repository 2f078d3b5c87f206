/** Something that a test lets happen. */
export interface Gate {
  /** Resolves once it is open. */
  readonly opened: Promise<void>;
  open(): void;
}

/** A gate that is closed. */
export function gate(): Gate {
  let open: (() => void) | undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open?.() };
}
