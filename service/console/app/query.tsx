// A field for queries, with an editor that knows the tables of the database.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { QueryAnswer } from "../types.ts";
import { listTables, QueryProblem, runQuery, type Place } from "./databases.ts";
import { openEditor, type Editor } from "./editor.ts";
import { problemOf } from "./live.ts";
import { Result } from "./resultTable.tsx";
import { useReading } from "./tables.tsx";

/** What the last query has led to. */
interface Outcome {
  readonly answer?: QueryAnswer;
  readonly problem?: string;
  readonly more?: readonly string[];
}

/** What was typed, by database: another view may be shown in between. */
const drafts = new Map<string, string>();

/** The field, its buttons, and the answer. */
export function Query({ place }: { readonly place: Place }): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor>(null);
  const [isWrite, setWrite] = useState(false);
  const [running, setRunning] = useState<AbortController>();
  const [outcome, show] = useState<Outcome>({});
  const key = JSON.stringify(place);
  const draft = `${place.cluster} ${place.database}`;
  const { data: known } = useReading(key, () => listTables(place));
  const run = async (): Promise<void> => {
    const text = editor.current?.text() ?? "";
    if (running || text.trim() === "") return;
    const controller = new AbortController();
    setRunning(controller);
    try {
      show({ answer: await runQuery(place, text, isWrite, controller.signal) });
    } catch (error) {
      if (controller.signal.aborted) show({ problem: "Cancelled." });
      else show({ problem: problemOf(error), ...(error instanceof QueryProblem ? at(error) : {}) });
    }
    setRunning(undefined);
  };
  const at = ({ position, more }: QueryProblem): Outcome => {
    const line = position === undefined ? undefined : editor.current?.goTo(position);
    return { more: line === undefined ? more : [`At ${line}.`, ...more] };
  };
  // The editor calls what the latest rendering knows.
  const latest = useRef(run);
  latest.current = run;
  useEffect(() => {
    if (!host.current) return undefined;
    const made = openEditor(host.current, drafts.get(draft) ?? "", () => void latest.current());
    editor.current = made;
    return () => {
      drafts.set(draft, made.text());
      made.close();
    };
  }, [draft]);
  useEffect(() => {
    if (known) editor.current?.complete(known.tables);
  }, [known, draft]);
  useEffect(() => () => running?.abort(), [running]);
  return (
    <>
      <div class="editor" ref={host} />
      <div class="filters">
        <button
          type="button"
          class={isWrite ? "grave" : "main"}
          disabled={running !== undefined}
          onClick={() => void run()}
        >
          {isWrite ? "Run and keep the changes" : "Run, read-only"}
        </button>
        {running && (
          <button type="button" onClick={() => running.abort()}>
            Cancel
          </button>
        )}
        <label>
          <input type="checkbox" checked={isWrite} onChange={(event) => setWrite(event.currentTarget.checked)} />
          It may change data
        </label>
        <span class="faint">
          <kbd>Ctrl</kbd> <kbd>Enter</kbd> runs it. It has 10 seconds and 1,000 rows.
        </span>
      </div>
      <p class="note">
        It runs as {place.user}. The request log has it without the values in it.
        {isWrite && " What it changes is kept, and nothing here takes it back."}
      </p>
      {running && <p class="faint">Running …</p>}
      {outcome.problem !== undefined && (
        <div class="problem" role="alert">
          {outcome.problem}
          {outcome.more?.map((text) => (
            <div key={text}>{text}</div>
          ))}
        </div>
      )}
      {outcome.answer && <Result answer={outcome.answer} />}
    </>
  );
}
