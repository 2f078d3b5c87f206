// What the programs of Machines write, as they write it, in the order of time.
import type { JSX } from "preact";
import { memo } from "preact/compat";
import { useEffect, useRef, useState } from "preact/hooks";
import { hueOf } from "../hue.ts";
import { queryOf } from "./address.ts";
import { Failure, who } from "./live.ts";
import { added, empty, paused, resumed, type Buffer } from "./logBuffer.ts";
import { isAtLeast, levels, readLine, type Level, type Read } from "./logLine.ts";
import { Choice, Empty, Filter, Problem } from "./parts.tsx";
import { ask } from "./session.ts";
import { clock, count, exact, some } from "./words.ts";

interface Line {
  readonly machine: string;
  readonly name: string;
  readonly time: string;
  readonly text: string;
}

/** A line on the page. */
interface Row extends Line, Read {
  readonly number: number;
}

/** Lines that stay on the page, and as many may wait. */
const most = 5000;
/** Lines that are shown at a time. */
const mostShown = 2000;
/** Lines from before. */
const tail = 1000;
/** Milliseconds between two times that the page shows what came. */
const apart = 100;
/** Milliseconds until it tries again after the stream has ended. */
const retryMs = 1000;
/** When it follows again, lines may still come that are older than the newest of another Machine. */
const overlapMs = 10_000;
/** Colours of Machines. */
const hues = 8;

/** The logs of an App or of one Machine. */
export function Logs({
  app,
  machine,
  isReal,
}: {
  readonly app: string;
  readonly machine?: string;
  readonly isReal?: boolean;
}): JSX.Element {
  const canLog = isReal ?? who.value?.runtime !== "simulated";
  const chosen = machine ?? queryOf("machine");
  const { buffer, names, failure, change } = useLines(app, chosen, canLog);
  const [follows, setFollows] = useState(true);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (follows) box.current?.scrollTo(0, box.current.scrollHeight);
  }, [buffer.shown, follows]);
  if (!canLog)
    return (
      <Empty>
        The simulated runtime runs no programs, so there are no logs. Start the service with --runtime docker.
      </Empty>
    );
  if (failure) return <Problem error={failure} />;
  const { shown: lines, waiting, lost } = buffer;
  const text = queryOf("log").toLowerCase();
  const level = levels.find((one) => one === queryOf("level"));
  const wanted = lines.filter(
    (line) =>
      (text === "" || line.text.toLowerCase().includes(text)) && (level === undefined || isAtLeast(line.level, level)),
  );
  const rows = wanted.slice(-mostShown);
  const machines = new Map([...(chosen === "" ? [] : [[chosen, chosen] as const]), ...names]);
  return (
    <>
      <div class="filters">
        {machine === undefined && (
          <Choice name="machine" label="Any Machine" from={[...machines].sort(([, a], [, b]) => (a < b ? -1 : 1))} />
        )}
        <Filter name="log" label="Search the logs" />
        <Choice name="level" label="Any level" from={levelChoices} />
        <button
          type="button"
          aria-pressed={waiting !== undefined}
          onClick={() => change((now) => (now.waiting === undefined ? paused(now) : resumed(now, most)))}
        >
          {waiting === undefined ? "Pause" : "Resume"}
        </button>
        <label class="inline">
          <input type="checkbox" checked={follows} onChange={(event) => setFollows(event.currentTarget.checked)} />{" "}
          Follow
        </label>
        <span class="faint" role="status">
          {count(wanted.length)} of {some(lines.length, "line")}
          {wanted.length > rows.length && `, the newest ${count(rows.length)} are shown`}
          {waiting !== undefined && `; paused, ${some(waiting.length, "line waits", "lines wait")}`}
          {lost > 0 && `, ${count(lost)} older ones are left out`}
        </span>
      </div>
      <div class="log" ref={box} tabIndex={0} role="log" aria-label="Log lines">
        {rows.length === 0 && <Empty>{lines.length === 0 ? "Nothing was written yet." : noneIs(level, text)}</Empty>}
        {rows.map((row) => (
          <LineOf key={row.number} row={row} isNamed={machine === undefined} />
        ))}
      </div>
    </>
  );
}

const levelChoices = [
  ["error", "Errors"],
  ["warn", "Warnings and errors"],
  ["info", "Info and worse"],
  ["debug", "Lines with a level"],
] as const;

const noneIs = (level: Level | undefined, text: string): string =>
  level === undefined ? "No line has this text." : text === "" ? "No line has this level." : "No line is like that.";

const tones: Readonly<Record<Level, string>> = { error: "bad", warn: "odd", info: "calm", debug: "calm" };

/** A line; of JSON its message, and the whole line on a click. */
const LineOf = memo(({ row, isNamed }: { readonly row: Row; readonly isNamed: boolean }): JSX.Element => {
  const { machine, name, time, text, level, message, fields } = row;
  const [isOpen, setOpen] = useState(false);
  const at = Date.parse(time);
  return (
    <div>
      <time class="faint" dateTime={time} title={exact(at)}>
        {clock(at)}
      </time>{" "}
      {isNamed && (
        <>
          <b class={`hue-${hueOf(machine, hues)}`} title={machine}>
            {name}
          </b>{" "}
        </>
      )}
      {fields === undefined ? (
        <bdi class={level === "error" || level === "warn" ? tones[level] : ""}>{message}</bdi>
      ) : (
        <details onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>
            {level !== undefined && <span class={tones[level]}>{level} </span>}
            <bdi>{message}</bdi> <bdi class="faint">{fields}</bdi>
          </summary>
          {isOpen && <bdi>{text}</bdi>}
        </details>
      )}
    </div>
  );
});

interface Lines {
  readonly buffer: Buffer<Row>;
  /** Names of the Machines that wrote, by id. */
  readonly names: ReadonlyMap<string, string>;
  readonly failure: Failure | undefined;
  readonly change: (to: (buffer: Buffer<Row>) => Buffer<Row>) => void;
}

/** The lines of an App, or of one Machine, as they come. */
function useLines(app: string, machine: string, canLog: boolean): Lines {
  const [buffer, setBuffer] = useState<Buffer<Row>>(empty);
  const [names, setNames] = useState<ReadonlyMap<string, string>>(new Map());
  const [failure, setFailure] = useState<Failure>();
  const [came] = useState<Row[]>([]);
  useEffect(() => {
    if (!canLog) return undefined;
    const gone = new AbortController();
    setFailure(undefined);
    // Another choice of Machines; whether it is paused stays.
    setBuffer(({ waiting }) => ({ ...empty, waiting: waiting && [] }));
    came.length = 0;
    let timer: number | undefined;
    const show = (): void => {
      timer = undefined;
      const rows = came.splice(0);
      setBuffer((now) => added(now, rows, most));
      setNames((known) => {
        const next = new Map([...known, ...rows.map(({ machine: id, name }): [string, string] => [id, name])]);
        const isSame = next.size === known.size && [...next].every(([id, name]) => known.get(id) === name);
        return isSame ? known : next;
      });
    };
    const add = (rows: readonly Row[]): void => {
      // A hidden page has slow timers; its memory is bounded all the same.
      came.push(...rows.slice(-most));
      if (came.length > most) came.splice(0, came.length - most);
      timer ??= window.setTimeout(show, apart);
    };
    keepFollowing({ app, machine, signal: gone.signal, add }).catch((error: unknown) => {
      if (!gone.signal.aborted)
        setFailure(error instanceof Failure ? error : new Failure(0, "the logs ended; reload the page"));
    });
    return () => {
      gone.abort();
      window.clearTimeout(timer);
    };
  }, [app, machine, canLog]);
  return { buffer, names, failure, change: (to) => setBuffer(to) };
}

interface Followed {
  readonly app: string;
  /** Empty for all Machines. */
  readonly machine: string;
  readonly signal: AbortSignal;
  readonly add: (rows: readonly Row[]) => void;
}

let number = 0;

/** Follows the lines; when the stream ends, as it does with the service, again from the last line of each Machine. */
async function keepFollowing({ app, machine, signal, add }: Followed): Promise<void> {
  const latest = new Map<string, string>();
  let newest = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    const known = new Map(latest);
    const query = new URLSearchParams({
      ...{ follow: "true", lines: String(tail) },
      ...(machine === "" ? {} : { machine }),
      ...(newest > 0 ? { since: new Date(newest - overlapMs).toISOString() } : {}),
    });
    const handle = (lines: readonly Line[]): void => {
      const rows: Row[] = [];
      for (const line of lines) {
        // It was shown before the stream ended.
        if (line.time <= (known.get(line.machine) ?? "")) continue;
        latest.set(line.machine, line.time);
        newest = Math.max(newest, Date.parse(line.time));
        rows.push({ ...line, ...readLine(line.text), number: number++ });
      }
      add(rows);
    };
    try {
      await follow(`/local/apps/${encodeURIComponent(app)}/logs?${query}`, signal, handle);
    } catch (error) {
      // The service may be starting; but a refusal is final.
      if (error instanceof Failure && error.status < 500) throw error;
    }
    if (!signal.aborted) await new Promise((resolve) => window.setTimeout(resolve, retryMs));
  }
}

/** Reads lines until the stream ends, a batch for each piece that arrives. */
async function follow(url: string, signal: AbortSignal, add: (lines: readonly Line[]) => void): Promise<void> {
  const response = await ask(url, { signal });
  if (!response.ok || !response.body) throw new Failure(response.status, await response.text());
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop() ?? "";
    if (parts.length > 0) add(parts.map((part) => JSON.parse(part) as Line));
  }
}
