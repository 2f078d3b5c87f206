// Any object as code: a Pulumi program, the command that imports it, and the request that reads it.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLive } from "./live.ts";
import { Dialog } from "./dialog.tsx";
import { Code, Problem } from "./parts.tsx";

interface ObjectCode {
  readonly typescript: string | null;
  readonly python: string | null;
  readonly go: string | null;
  readonly yaml: string | null;
  /** Commands that set what the program and the import need. */
  readonly settings: string;
  readonly import: string;
  readonly curl: string;
  readonly remarks: readonly string[];
}

const forms = [
  ["typescript", "TypeScript"],
  ["python", "Python"],
  ["go", "Go"],
  ["yaml", "YAML"],
  ["import", "Import"],
  ["curl", "curl"],
] as const;

/** The form that was last chosen. */
let last: (typeof forms)[number][0] = "typescript";

/** A button that shows an object as code. `id` is the one that `pulumi import` takes. */
export function AsCode({
  type,
  id,
  isWhole = false,
}: {
  readonly type: string;
  readonly id: string;
  readonly isWhole?: boolean;
}): JSX.Element {
  const [isOpen, open] = useState(false);
  return (
    <>
      <button type="button" aria-haspopup="dialog" onClick={() => open(true)}>
        {isWhole ? "All of it as code" : "Copy as code"}
      </button>
      {isOpen && <CodeDialog type={type} id={id} isWhole={isWhole} onClose={() => open(false)} />}
    </>
  );
}

function CodeDialog({
  type,
  id,
  isWhole,
  onClose,
}: {
  readonly type: string;
  readonly id: string;
  readonly isWhole: boolean;
  readonly onClose: () => void;
}): JSX.Element {
  const [form, choose] = useState(last);
  const query = new URLSearchParams({ type, id, ...(isWhole ? { whole: "true" } : {}) });
  const { data, error } = useLive<ObjectCode>(`/console/api/code?${query}`, []);
  const shown = forms.filter(([name]) => data === undefined || data[name] !== null);
  // An object without a program still has a request that reads it.
  const chosen = shown.some(([name]) => name === form) ? form : "curl";
  const isProgram = chosen !== "import" && chosen !== "curl";
  return (
    <Dialog title={`${type} ${id}`} onClose={onClose}>
      <nav class="tabs" aria-label="Languages">
        {shown.map(([name, title]) => (
          <button
            key={name}
            type="button"
            aria-current={name === chosen ? "true" : undefined}
            onClick={() => {
              last = name;
              choose(name);
            }}
          >
            {title}
          </button>
        ))}
      </nav>
      {error && <Problem error={error} />}
      {data ? (
        <>
          <Code label={`${type} as ${chosen}`}>{data[chosen] ?? ""}</Code>
          {isProgram && data.settings !== "" && (
            <>
              <p>Set these before the first preview:</p>
              <Code label="configuration of the stack">{data.settings}</Code>
            </>
          )}
        </>
      ) : (
        !error && <p class="faint">Reading …</p>
      )}
      {data?.remarks.map((remark) => (
        <p key={remark} class="note">
          {remark}
        </p>
      ))}
    </Dialog>
  );
}
