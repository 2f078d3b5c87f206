// A change of something, by a button and a dialog that says what it does.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "./dialog.tsx";
import type { Role } from "../../store/roles.ts";
import { mayInOrganization, problemOf } from "./live.ts";
import { Alert } from "./parts.tsx";

/** A value that the dialog asks for. */
export interface Field {
  readonly name: string;
  readonly label: string;
  /** What it is at first. Default: empty, or the first choice. */
  readonly value?: string;
  /** The choices, for a value that is one of them. */
  readonly from?: readonly string[];
  /** Whether it is a checkbox, whose value is `true` or empty. */
  readonly isCheck?: true;
  readonly isOptional?: true;
}

/** The values of a dialog, by name. */
type Values = Readonly<Record<string, string>>;

interface ChangeProps {
  /** The text of the button. */
  readonly name: string;
  /** What it changes, for a button that stands in a row; also the title of the dialog. */
  readonly of?: string;
  readonly fields?: readonly Field[];
  /** What has to be typed, for what cannot be undone. */
  readonly typed?: string;
  /** The role that it needs. Default: `deploy`. */
  readonly needs?: Role;
  /** Why it cannot be done now. */
  readonly isDisabled?: boolean;
  /** Does it. What it returns is shown; without anything the dialog closes. */
  readonly act: (values: Values) => Promise<ComponentChildren | void>;
  readonly children: ComponentChildren;
}

/** The button and its dialog; nothing for a session that may not use it. */
export function Change(props: ChangeProps): JSX.Element | null {
  const { name, of = "", typed, isDisabled = false, needs = "deploy" } = props;
  const [isOpen, open] = useState(false);
  if (!mayInOrganization(needs)) return null;
  return (
    <>
      <button
        type="button"
        class={typed === undefined ? "" : "grave"}
        aria-haspopup="dialog"
        aria-label={of === "" ? undefined : `${name} ${of}`}
        disabled={isDisabled}
        onClick={() => open(true)}
      >
        {name}
      </button>
      {isOpen && <ChangeDialog {...props} onClose={() => open(false)} />}
    </>
  );
}

const first = ({ value, from, isCheck }: Field): string => value ?? (isCheck ? "" : (from?.[0] ?? ""));

/** The dialog. */
export function ChangeDialog({
  name,
  of = "",
  fields = [],
  typed,
  act,
  children,
  onClose,
}: ChangeProps & { readonly onClose: () => void }): JSX.Element {
  const [values, setValues] = useState<Values>(() => Object.fromEntries(fields.map((one) => [one.name, first(one)])));
  const [own, type] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [result, show] = useState<ComponentChildren>();
  const isComplete = fields.every((one) => one.isOptional || one.isCheck || values[one.name] !== "");
  const isReady = !isBusy && isComplete && (typed === undefined || own === typed);
  const done = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!isReady) return;
    setBusy(true);
    setProblem("");
    try {
      const shown = await act(values);
      if (shown === undefined || shown === null) onClose();
      else show(shown);
    } catch (error) {
      setProblem(problemOf(error));
    }
    setBusy(false);
  };
  const title = of === "" ? name : `${name} ${of}`;
  const set = (field: string, value: string): void => setValues({ ...values, [field]: value });
  return (
    <Dialog title={result === undefined ? `${title}?` : title} onClose={onClose}>
      {result ?? (
        <form onSubmit={(event) => void done(event)}>
          {children}
          {fields.map((field) => (
            <label key={field.name} class={field.isCheck ? "inline" : ""}>
              {!field.isCheck && field.label}
              <Input field={field} value={values[field.name] ?? ""} set={(value) => set(field.name, value)} />
              {field.isCheck && field.label}
            </label>
          ))}
          {typed !== undefined && (
            <label>
              Type its name, {typed}:
              <input
                value={own}
                autoComplete="off"
                spellcheck={false}
                onInput={(event) => type(event.currentTarget.value)}
              />
            </label>
          )}
          <Alert>{problem}</Alert>
          <button type="submit" class={typed === undefined ? "main" : "grave"} disabled={!isReady}>
            {title}
          </button>
        </form>
      )}
    </Dialog>
  );
}

function Input({
  field: { from, isCheck },
  value,
  set,
}: {
  readonly field: Field;
  readonly value: string;
  readonly set: (value: string) => void;
}): JSX.Element {
  if (isCheck)
    return (
      <input
        type="checkbox"
        checked={value === "true"}
        onChange={(event) => set(event.currentTarget.checked ? "true" : "")}
      />
    );
  if (from)
    return (
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        {from.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    );
  return (
    <input value={value} autoComplete="off" spellcheck={false} onInput={(event) => set(event.currentTarget.value)} />
  );
}
