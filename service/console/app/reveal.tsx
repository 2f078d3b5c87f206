// One secret value, after a click that the audit of the service records.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "./dialog.tsx";
import { send } from "./live.ts";
import { Code, say } from "./parts.tsx";

/** A button that reveals a value; nothing for a session that may not. `at` is the address of the secret or user below the routes. */
export function Reveal({
  at,
  what,
  isAllowed,
}: {
  readonly at: string;
  readonly what: string;
  readonly isAllowed: boolean;
}): JSX.Element | null {
  const [value, show] = useState<string>();
  if (!isAllowed) return null;
  const reveal = async (): Promise<void> => {
    const found = await send<{ readonly value: string }>("POST", `/console/api/${at}/reveal`);
    show(found.value);
  };
  return (
    <>
      <button
        type="button"
        aria-haspopup="dialog"
        aria-label={`Reveal ${what}`}
        onClick={() => void reveal().catch(say)}
      >
        Reveal
      </button>
      {value !== undefined && (
        <Dialog title={what} onClose={() => show(undefined)}>
          <Code label={what}>{value}</Code>
          <p class="note">The request log of the service says that this session has read it.</p>
        </Dialog>
      )}
    </>
  );
}
