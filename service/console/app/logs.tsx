// What the programs of Machines write, as they write it.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { queryOf } from "./address.ts";
import { Failure, who } from "./live.ts";
import { Empty, Filter, Problem } from "./parts.tsx";
import { ask } from "./session.ts";

interface Line {
  readonly machine: string;
  readonly time: string;
  readonly text: string;
}

/** Lines that stay on the page. */
const most = 5000;
/** Lines from before. */
const tail = 1000;

/** The logs of an App or of one Machine, with a search. */
export function Logs({
  app,
  machine,
  isReal,
}: {
  readonly app: string;
  readonly machine?: string;
  readonly isReal?: boolean;
}): JSX.Element {
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [failure, setFailure] = useState<Failure>();
  const [follows, setFollows] = useState(true);
  const box = useRef<HTMLDivElement>(null);
  const canLog = isReal ?? who.value?.runtime !== "simulated";
  useEffect(() => {
    if (!canLog) return;
    const gone = new AbortController();
    setLines([]);
    follow(app, machine, gone.signal, (more) => setLines((before) => [...before, ...more].slice(-most))).catch(
      (error: unknown) => {
        if (!gone.signal.aborted)
          setFailure(error instanceof Failure ? error : new Failure(0, "the logs ended; reload the page"));
      },
    );
    return () => gone.abort();
  }, [app, machine, canLog]);
  useEffect(() => {
    if (follows) box.current?.scrollTo(0, box.current.scrollHeight);
  }, [lines, follows]);
  if (!canLog)
    return (
      <Empty>
        The simulated runtime runs no programs, so there are no logs. Start the service with --runtime docker.
      </Empty>
    );
  if (failure) return <Problem error={failure} />;
  const wanted = queryOf("log").toLowerCase();
  const shown = wanted === "" ? lines : lines.filter(({ text }) => text.toLowerCase().includes(wanted));
  return (
    <>
      <div class="filters">
        <Filter name="log" label="Search the logs" />
        <label class="inline">
          <input type="checkbox" checked={follows} onChange={(event) => setFollows(event.currentTarget.checked)} />{" "}
          Follow
        </label>
        <span class="faint" role="status">
          {shown.length} of {lines.length} lines
        </span>
      </div>
      <div class="log" ref={box} tabIndex={0} role="log" aria-label="Log lines">
        {shown.length === 0 && (
          <Empty>{lines.length === 0 ? "Nothing was written yet." : "No line has this text."}</Empty>
        )}
        {shown.map((line, i) => (
          <div key={i}>
            <span class="faint">{line.time.slice(11, 23)}</span>{" "}
            {machine === undefined && <span class="faint">{line.machine}</span>} {line.text}
          </div>
        ))}
      </div>
    </>
  );
}

/** Reads the lines until the signal, a batch for each piece that arrives. */
async function follow(
  app: string,
  machine: string | undefined,
  signal: AbortSignal,
  add: (lines: readonly Line[]) => void,
): Promise<void> {
  const query = new URLSearchParams({
    follow: "true",
    lines: String(tail),
    ...(machine === undefined ? {} : { machine }),
  });
  const response = await ask(`/local/apps/${encodeURIComponent(app)}/logs?${query}`, { signal });
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
