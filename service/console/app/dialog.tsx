// Dialogs, and where the focus goes when what had it is gone.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Moves the focus to the view if it was lost, because what had it is gone. */
export function keepFocus(): void {
  if (document.activeElement === document.body)
    document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true });
}

/** A dialog in front of the page. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = element.current;
    shown?.showModal();
    // A dialog that is only removed would leave the focus nowhere.
    return () => shown?.close();
  }, []);
  return (
    <dialog ref={element} aria-label={title} onClose={onClose}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="plain" aria-label="Close" onClick={() => element.current?.close()}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}
