// Small parts that the views share.
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import type { States, Words } from "../types.ts";
import { queryOf, setQuery, to } from "./address.ts";
import { now, problemOf, type Failure } from "./live.ts";
import { count, exact, moment, relative } from "./words.ts";

/** A shape for each kind of state: nobody has to know the colours. */
const shapes: Readonly<Record<string, Look>> = {
  started: ["●", "good"],
  passing: ["●", "good"],
  ready: ["●", "good"],
  completed: ["●", "good"],
  stopped: ["○", "calm"],
  suspended: ["◐", "calm"],
  destroyed: ["✕", "calm"],
  deleted: ["✕", "calm"],
  failed: ["▲", "bad"],
  critical: ["▲", "bad"],
  warning: ["◆", "odd"],
  cordoned: ["■", "odd"],
};

/** A shape and a colour, for those who know them, beside the words that say the same. */
export type Look = readonly [shape: string, tone: string];

/** Words with their shape and colour; `n`: how many there are. */
export const Sign = ({
  look: [shape, tone],
  n,
  children,
}: {
  readonly look: Look;
  readonly n?: number | undefined;
  readonly children: ComponentChildren;
}): JSX.Element => (
  <span class={`state ${tone}`}>
    <span aria-hidden="true">{shape}</span>
    {n === undefined ? "" : `${count(n)} `}
    {children}
  </span>
);

/** A state as a shape, a colour and a word. Any other one is on its way to another. */
export const State = ({ of, n }: { readonly of: string; readonly n?: number }): JSX.Element => (
  <Sign look={shapes[of] ?? ["◌", "busy"]} n={n}>
    {of}
  </Sign>
);

/** The states of several Machines. */
export const StateCounts = ({ states }: { readonly states: States }): JSX.Element => (
  <span class="states">
    {Object.entries(states)
      .sort(([, a], [, b]) => b - a)
      .map(([state, n]) => (
        <State key={state} of={state} n={n} />
      ))}
  </span>
);

/** A time relative to now; the exact one shows on hover. */
export function Time({ at }: { readonly at: number | string | null | undefined }): JSX.Element {
  const time = typeof at === "string" ? Date.parse(at) : at;
  if (time == null || Number.isNaN(time)) return <span class="faint">–</span>;
  return (
    <time dateTime={new Date(time).toISOString()} title={exact(time)}>
      {relative(time, now.value)}
    </time>
  );
}

/** A text with times in it, in the zone of the reader. */
export const Sentence = ({ of }: { readonly of: Words }): JSX.Element => (
  <>
    {of.map((part, i) =>
      typeof part === "string" ? (
        part
      ) : (
        <time key={i} dateTime={new Date(part.at).toISOString()} title={exact(part.at)}>
          {moment(part.at, now.value)}
        </time>
      ),
    )}
  </>
);

/** Says what was done, for everyone. */
export const spoken = signal("");

/** Says why something failed. */
export const say = (error: unknown): void => speak(problemOf(error));

function speak(text: string): void {
  spoken.value = text;
  window.setTimeout(
    () => {
      if (spoken.value === text) spoken.value = "";
    },
    1500 + 50 * text.length,
  );
}

/** Copies a text, and says so. */
export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    speak("Copied");
  } catch {
    speak("The browser does not allow copying here");
  }
}

/** An identifier that copies itself on a click. */
export const Id = ({ children: text }: { readonly children: string }): JSX.Element => (
  <button type="button" class="id" title={`Copy ${text}`} onClick={() => void copy(text)}>
    {text}
  </button>
);

/** Text that is a command or a configuration, with a button that copies it. */
export const Code = ({ children: text, label }: { readonly children: string; readonly label: string }): JSX.Element => (
  <div class="code">
    <pre tabIndex={0} aria-label={label}>
      {text}
    </pre>
    <button type="button" onClick={() => void copy(text)} aria-label={`Copy ${label}`}>
      Copy
    </button>
  </div>
);

/** A part of a view with a title. */
export const Section = ({
  title,
  aside,
  children,
}: {
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
}): JSX.Element => (
  <section aria-label={title}>
    <header>
      <h2>{title}</h2>
      {aside}
    </header>
    {children}
  </section>
);

/** Where nothing is yet, it says what would be there, and what to run. */
export const Empty = ({ children }: { readonly children: ComponentChildren }): JSX.Element => (
  <p class="empty">{children}</p>
);

/** A view that cannot be shown, with the reason. */
export const NoView = ({
  name,
  error,
  app,
}: {
  readonly name: string;
  readonly error: Failure | undefined;
  /** The App that it is in. */
  readonly app?: string;
}): JSX.Element => (
  <>
    <nav class="crumbs" aria-label="Where this is">
      <a href={to.overview}>Overview</a>
      {app !== undefined && (
        <>
          {" / "}
          <a href={to.app(app)}>{app}</a>
        </>
      )}
    </nav>
    <h1>{name}</h1>
    {error ? <Problem error={error} /> : <p class="faint">Reading …</p>}
  </>
);

/** A problem, which screen readers say at once; nothing without a text. */
export const Alert = ({ children: text }: { readonly children: string | undefined }): JSX.Element | null =>
  text === undefined || text === "" ? null : (
    <p class="problem" role="alert">
      {text}
    </p>
  );

/** Why something cannot be shown. */
export const Problem = ({ error }: { readonly error: Failure }): JSX.Element => (
  <Alert>
    {error.status === 404
      ? "It does not exist, or not any more."
      : error.status === 403
        ? "The token of this session may not see it."
        : error.message}
  </Alert>
);

/** A table with titles of its columns. */
export function Table({
  label,
  columns,
  children,
}: {
  readonly label: string;
  /** Columns whose title ends with `#` hold numbers. */
  readonly columns: readonly string[];
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map((column) =>
              column === "" ? (
                <td key={column} />
              ) : (
                <th key={column} scope="col" class={column.endsWith("#") ? "number" : ""}>
                  {column.replace("#", "")}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** Pairs of a name and a value. */
export const Facts = ({ of }: { readonly of: readonly (readonly [string, ComponentChildren])[] }): JSX.Element => (
  <dl>
    {of.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);

/** A field whose text is part of the address. */
export function Filter({ name, label }: { readonly name: string; readonly label: string }): JSX.Element {
  return (
    <input
      type="search"
      value={queryOf(name)}
      placeholder={label}
      aria-label={label}
      spellcheck={false}
      onInput={(event) => setQuery({ [name]: event.currentTarget.value })}
    />
  );
}

/** A choice that is part of the address. */
export function Choice({
  name,
  label,
  from,
}: {
  readonly name: string;
  readonly label: string;
  readonly from: readonly (string | readonly [value: string, text: string])[];
}): JSX.Element {
  const options = from.map((one) => (typeof one === "string" ? ([one, one] as const) : one));
  return (
    <select
      value={queryOf(name)}
      aria-label={label}
      onChange={(event) => setQuery({ [name]: event.currentTarget.value })}
    >
      <option value="">{label}</option>
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

/** Tabs; the chosen one is part of the address. */
export function Tabs({
  name,
  tabs,
}: {
  readonly name: string;
  readonly tabs: readonly (readonly [id: string, text: string])[];
}): JSX.Element {
  const chosen = queryOf(name) || tabs[0]?.[0];
  return (
    <nav class="tabs" aria-label="Parts">
      {tabs.map(([id, text]) => (
        <button
          key={id}
          type="button"
          aria-current={id === chosen ? "true" : undefined}
          onClick={() => setQuery({ [name]: id === tabs[0]?.[0] ? undefined : id })}
        >
          {text}
        </button>
      ))}
    </nav>
  );
}

/** A share of a whole, as a bar with its numbers. */
export const Bar = ({
  part,
  whole,
  label,
}: {
  readonly part: number;
  readonly whole: number;
  readonly label: string;
}): JSX.Element => (
  <span class="bar">
    <meter min={0} max={Math.max(1, whole)} value={part} aria-label={label} />
    {`${count(part)} of ${count(whole)}`}
  </span>
);
