// An App as it was at a moment, and the difference to now.
import { Fragment, type JSX } from "preact";
import { useState } from "preact/hooks";
import type { PastMachineView } from "../past.ts";
import type { Change, ComparedPart, Fields, Fresh, PastPart, PastView } from "../types.ts";
import { queryOf, setQuery } from "./address.ts";
import { Difference } from "./difference.tsx";
import { now, useLive } from "./live.ts";
import { Empty, Id, Problem, Section, Sign, Table } from "./parts.tsx";
import { count, exact } from "./words.ts";

const parts: readonly (readonly [part: PastPart, title: string, key: string])[] = [
  ["machines", "Machines", "Id"],
  ["volumes", "Volumes", "Id"],
  ["addresses", "IP addresses", "Address"],
  ["certificates", "Certificates", "Hostname"],
  ["secrets", "Secrets", "Name"],
  ["secretKeys", "Secret keys", "Name"],
  ["clusters", "Postgres clusters", "Id"],
];

/** A word and a sign for each change: the colour says it once more. */
const changes: Readonly<Record<Change, readonly [sign: string, tone: string, word: string]>> = {
  changed: ["±", "odd", "changed since"],
  deleted: ["−", "bad", "deleted since"],
  created: ["+", "good", "created since"],
  unchanged: ["=", "calm", "unchanged"],
};

/** A time as the field of the browser has it: in the zone of the reader. */
const localText = (time: number): string => new Date(time).toLocaleString("sv-SE").replace(" ", "T");

const earlier = [
  [10 * 60_000, "10 minutes ago"],
  [3_600_000, "An hour ago"],
  [86_400_000, "A day ago"],
] as const;

const chosen = (time: number): void => setQuery({ at: new Date(time).toISOString(), of: undefined });

/** The choice of a moment, and the App as it was then. */
export function Past({ app }: { readonly app: string }): JSX.Element {
  const at = queryOf("at");
  const time = Date.parse(at);
  const [text, setText] = useState(localText(Number.isNaN(time) ? now.peek() : time));
  const choose = (to: number): void => {
    setText(localText(to));
    chosen(to);
  };
  return (
    <>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          const to = new Date(text).getTime();
          if (!Number.isNaN(to)) chosen(to);
        }}
      >
        <label>
          As it was at{" "}
          <input
            type="datetime-local"
            step="1"
            required
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <button type="submit">Show</button>
        {earlier.map(([ms, words]) => (
          <button key={ms} type="button" class="plain" onClick={() => choose(now.peek() - ms)}>
            {words}
          </button>
        ))}
      </form>
      {at === "" ? (
        <Empty>Choose a moment. The option --keep-log of the service says how far back they go.</Empty>
      ) : (
        <Moment app={app} at={at} />
      )}
    </>
  );
}

const sentences: Readonly<Record<PastView["app"], string>> = {
  unchanged: "",
  deleted: "The App was deleted since then.",
  created: "The App did not exist then.",
  replaced: "The App was deleted since then, and another one has its name now.",
};

function Moment({ app, at }: { readonly app: string; readonly at: string }): JSX.Element {
  const url = `/console/api/apps/${encodeURIComponent(app)}/past`;
  const query = `?at=${encodeURIComponent(at)}`;
  const { data, error } = useLive<PastView & Fresh>(`${url}${query}`, [`app:${app}`]);
  if (error && !data) return error.status === 404 ? <Empty>{error.message}</Empty> : <Problem error={error} />;
  if (!data) return <p class="faint">Reading the log …</p>;
  const of = queryOf("of");
  const there = parts.filter(([part]) => data.parts[part].rows.length > 0);
  return (
    <>
      <p class="faint">
        {exact(Date.parse(at))}. {sentences[data.app]}
      </p>
      {there.map(([part, title, key]) => (
        <Fragment key={part}>
          <Part title={title} keyTitle={key} of={data.parts[part]} canShow={part === "machines"} />
          {part === "machines" && of !== "" && (
            <Config app={app} url={`${url}/machines/${encodeURIComponent(of)}${query}`} machine={of} />
          )}
        </Fragment>
      ))}
      {there.length < parts.length && (
        <p class="faint">
          None then and none now:{" "}
          {parts
            .filter((part) => !there.includes(part))
            .map(([, title]) => title)
            .join(", ")}
          .
        </p>
      )}
    </>
  );
}

/** Fields of a Machine that are parts of its configuration, which is shown apart. */
const configured = ["version", "metadata"] as const;
const isConfigured = (name: string): boolean => configured.some((one) => one === name);

function Part({
  title,
  keyTitle,
  of: { counts, rows },
  canShow,
}: {
  readonly title: string;
  readonly keyTitle: string;
  readonly of: ComparedPart;
  readonly canShow: boolean;
}): JSX.Element {
  const names = [...new Set(rows.flatMap(({ was, is }) => Object.keys(was ?? is ?? {})))].filter(
    (name) => !isConfigured(name),
  );
  const all = Object.values(counts).reduce((sum, n) => sum + n, 0);
  const titles = names.map((name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " "));
  return (
    <Section
      title={title}
      aside={
        <span class="faint">
          {(Object.keys(changes) as Change[])
            .filter((change) => counts[change] > 0)
            .map((change) => `${count(counts[change])} ${changes[change][2]}`)
            .join(", ")}
        </span>
      }
    >
      <Table label={title} columns={["Since then", keyTitle, ...titles, ...(canShow ? [""] : [])]}>
        {rows.map(({ key, change, was, is }) => {
          const [shape, tone, word] = changes[change];
          const differs = was && is && configured.some((name) => was[name] !== is[name]);
          const config = differs ? "Configuration differs" : "Configuration";
          return (
            <tr key={key}>
              <td>
                <Sign look={[shape, tone]}>{word}</Sign>
              </td>
              <th scope="row">
                <Id>{key}</Id>
              </th>
              {names.map((name) => (
                <td key={name}>
                  <Value name={name} was={was} is={is} />
                </td>
              ))}
              {canShow && (
                <td>
                  <button
                    type="button"
                    class="plain"
                    aria-label={`${config}, ${key}`}
                    onClick={() => setQuery({ of: key })}
                  >
                    {config}
                  </button>
                </td>
              )}
            </tr>
          );
        })}
      </Table>
      {all > rows.length && (
        <p class="faint">
          The first {count(rows.length)} of {count(all)}, what differs before what does not.
        </p>
      )}
    </Section>
  );
}

const textOf = (name: string, value: string | number | null | undefined): string =>
  value == null
    ? "–"
    : name.endsWith("_at")
      ? new Date(Number(value)).toLocaleString("sv-SE")
      : name === "size_gb"
        ? `${value} GB`
        : String(value);

function Value({
  name,
  was,
  is,
}: {
  readonly name: string;
  readonly was: Fields | null;
  readonly is: Fields | null;
}): JSX.Element {
  const [before, after] = [textOf(name, was?.[name]), textOf(name, is?.[name])];
  if (was === null || is === null || before === after) return <>{was === null ? after : before}</>;
  return (
    <>
      <del>{before}</del> → <ins>{after}</ins>
    </>
  );
}

function Config({
  app,
  url,
  machine,
}: {
  readonly app: string;
  readonly url: string;
  readonly machine: string;
}): JSX.Element {
  const { data, error } = useLive<PastMachineView>(url, [`app:${app}`]);
  return (
    <Section title={`Configuration of ${machine}`} aside={<span class="faint">then and now</span>}>
      {data ? (
        <Difference from={data.was} to={data.is} label={`Configuration of ${machine}`} equal="It is the same now." />
      ) : error ? (
        <Problem error={error} />
      ) : (
        <p class="faint">Reading …</p>
      )}
    </Section>
  );
}
