// Rollouts: who changed what in which way, and how it went for each Machine.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Bar as BarOf, Doing } from "../../history/timeline.ts";
import type { Rollout, RolloutDetail } from "../../history/history.ts";
import type { RolloutList } from "../types.ts";
import { queryOf, to } from "./address.ts";
import { now, useLive, type Live } from "./live.ts";
import { Empty, Facts, Filter, Id, NoView, Section, Sign, Table, Time, type Look } from "./parts.tsx";
import { RequestTable } from "./requestTable.tsx";
import { resourceIn } from "../../../api/urn.ts";
import { clock, duration, some } from "./words.ts";

/** What Machines do in a rollout: a shape, a colour, and the words, in the order of the legend. */
const doings: Readonly<Record<Doing, Look>> = {
  waiting: ["○", "calm"],
  updating: ["◌", "busy"],
  starting: ["◍", "busy"],
  checks: ["◐", "odd"],
  healthy: ["●", "good"],
  failed: ["▲", "bad"],
  stopped: ["□", "calm"],
  "rolling back": ["◄", "odd"],
  "rolled back": ["■", "good"],
  destroying: ["◌", "busy"],
  destroyed: ["✕", "calm"],
};

const names = Object.keys(doings) as Doing[];

const DoingOf = ({ of, n }: { readonly of: Doing; readonly n?: number }): JSX.Element => (
  <Sign look={doings[of]} n={n}>
    {of}
  </Sign>
);

const results: Readonly<Record<string, Look>> = {
  "under way": ["◌", "busy"],
  succeeded: ["●", "good"],
  waiting: ["◐", "odd"],
  "rolled back": ["◄", "bad"],
  failed: ["▲", "bad"],
  interrupted: ["◆", "odd"],
};

function ResultOf({ rollout: { result, phase } }: { readonly rollout: Rollout }): JSX.Element {
  const words = result ?? (phase === "rolling back" ? "under way, rolling back" : "under way");
  return (
    <Sign look={results[result ?? "under way"] ?? ["◆", "odd"]}>
      {words === "waiting" ? "waits for its promotion" : words}
    </Sign>
  );
}

/** Its end, or now. The clock of the service may have been set since the page learned it. */
const endOf = ({ ended, bars = [] }: Rollout & Partial<Pick<RolloutDetail, "bars">>): number =>
  ended ?? Math.max(now.value, ...bars.map(({ segments }) => segments.at(-1)?.to ?? 0));

/** What it changes, as a title. */
const titleOf = ({ app, fleet }: Rollout): string => (fleet === null ? `Machines of ${app}` : `${app}/${fleet}`);

/** Who began it: the stack if it is known, and the token. */
function By({ rollout: { urn, token, tokenName } }: { readonly rollout: Rollout }): JSX.Element {
  const stack = urn === null ? undefined : resourceIn(urn)?.stack;
  return (
    <span title={urn ?? ""}>
      {stack !== undefined && <b>{stack} </b>}
      <span class="faint">token {tokenName ?? token}</span>
    </span>
  );
}

function Images({ rollout: { from, to: next } }: { readonly rollout: Rollout }): JSX.Element {
  if (from === null || from === next) return <span class="mono">{next ?? from ?? ""}</span>;
  return (
    <span class="mono">
      {from} <span aria-label="to">→</span> {next ?? "?"}
    </span>
  );
}

/** Which rollouts are wanted. */
interface Wanted {
  readonly app?: string;
  /** Id of a Machine of the App. */
  readonly machine?: string;
}

/** Reads the rollouts of the organization, of one App, or of one Machine, newest first. */
function useRollouts({ app, machine }: Wanted): Live<RolloutList> {
  const query = new URLSearchParams({
    limit: "200",
    ...(app === undefined ? {} : { app }),
    ...(machine === undefined ? {} : { machine }),
  });
  return useLive<RolloutList>(`/local/rollouts?${query}`, ["rollouts"]);
}

/** The resource of a URN, which leads to its requests. */
export function ResourceOf({ urn }: { readonly urn: string | null }): JSX.Element {
  const resource = urn === null ? undefined : resourceIn(urn);
  if (urn === null || !resource) return <span>unknown</span>;
  const { type, name, stack } = resource;
  return (
    <a href={to.requestsWith({ by: urn })} title={urn}>
      {type} {name}
      {stack !== undefined && ` of ${stack}`}
    </a>
  );
}

/** The rollouts that changed a Machine, the resource of the latest one, and the requests about the Machine. */
export function MachineRollouts({ app, machine }: Required<Wanted>): JSX.Element {
  const { data } = useRollouts({ app, machine });
  const urn = data?.rollouts.find((one) => one.urn !== null)?.urn ?? null;
  return (
    <>
      <Section
        title="Rollouts"
        aside={
          <>
            {urn !== null && (
              <span>
                by <ResourceOf urn={urn} />
              </span>
            )}
            <a href={to.requestsWith({ text: machine })}>Requests about this Machine</a>
          </>
        }
      >
        <RolloutTable app={app} machine={machine} />
      </Section>
    </>
  );
}

/** Rows that are drawn at first. All of them would take longer than what is in sight. */
const firstRows = 30;

/** How many rows to draw: a few when there are some to draw, and all right after that. */
function useMostRows(hasRows: boolean): number | undefined {
  const [isWhole, setWhole] = useState(false);
  useEffect(() => {
    if (!hasRows) return undefined;
    const drawn = setTimeout(() => setWhole(true));
    return () => clearTimeout(drawn);
  }, [hasRows]);
  return isWhole ? undefined : firstRows;
}

/** The rollouts of the organization, of one App, or of one Machine, as a table. */
export function RolloutTable({ text = "", ...wanted }: Wanted & { readonly text?: string }): JSX.Element {
  const { data, error } = useRollouts(wanted);
  const most = useMostRows(data !== undefined);
  if (!data) return <p class="faint">{error?.status === 404 ? "The service keeps no history." : "Reading …"}</p>;
  const shown = data.rollouts.filter((one) =>
    `${titleOf(one)} ${one.from} ${one.to} ${one.result ?? "under way"} ${one.urn} ${one.tokenName}`
      .toLowerCase()
      .includes(text.toLowerCase()),
  );
  if (shown.length === 0) return <Empty>{text === "" ? noneOf(wanted) : "No rollout is like that."}</Empty>;
  return (
    <Table
      label="Rollouts"
      columns={["Result", "What", "Image", "Began", "Took#", "Strategy", "Machines", "By", "Reason"]}
    >
      {shown.slice(0, most).map((one) => (
        <tr key={one.id}>
          <td>
            <ResultOf rollout={one} />
          </td>
          <th scope="row">
            <a href={to.rollout(one.id)}>{titleOf(one)}</a>
          </th>
          <td>
            <Images rollout={one} />
          </td>
          <td>
            <Time at={one.began} />
          </td>
          <td class="number">{duration(endOf(one) - one.began)}</td>
          <td>{one.strategy ?? <span class="faint">{one.fleet === null ? "none" : "unknown"}</span>}</td>
          <td>
            <span class="states">
              {names.map((doing) => {
                const n = one.machines[doing];
                return n === undefined ? null : <DoingOf key={doing} of={doing} n={n} />;
              })}
            </span>
          </td>
          <td>
            <By rollout={one} />
          </td>
          <td class="reason">{one.reason}</td>
        </tr>
      ))}
    </Table>
  );
}

const noneOf = ({ machine }: Wanted): string =>
  machine === undefined
    ? "No run of Pulumi has changed Machines yet. Run pulumi up, and watch."
    : "No run of Pulumi has changed this Machine.";

/** The view of all rollouts. */
export const RolloutsPage = (): JSX.Element => (
  <>
    <header class="title">
      <h1>Rollouts</h1>
      <span class="faint">what each run of Pulumi changed, newest first</span>
    </header>
    <div class="filters">
      <Filter name="text" label="App, fleet, image, stack, result or token" />
    </div>
    <RolloutTable text={queryOf("text")} />
  </>
);

/** Seconds with a digit after the point while they are few. */
const took = (ms: number): string => (ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : duration(ms));

function BarOfMachine({ bar, rollout }: { readonly bar: BarOf; readonly rollout: RolloutDetail }): JSX.Element {
  const { app, began } = rollout;
  const end = Math.max(began + 1, endOf(rollout));
  const whole = end - began;
  const segments = bar.segments.map((segment, i) =>
    i === bar.segments.length - 1 ? { ...segment, to: end } : segment,
  );
  const words = segments.map(({ doing, from, to: until }) => `${doing} ${took(until - from)}`).join(", ");
  return (
    <tr>
      <th scope="row">
        <a href={to.machine(app, bar.machine)}>{bar.name}</a>
      </th>
      <td>
        <DoingOf of={bar.now} />
      </td>
      <td class="course">
        <div role="img" aria-label={words} title={words}>
          {segments.map(({ doing, from, to: until }) => (
            <span
              key={from}
              class={`part ${doing.replace(" ", "-")}`}
              style={{
                left: `${(100 * (from - began)) / whole}%`,
                width: `${(100 * Math.max(0, until - from)) / whole}%`,
              }}
            />
          ))}
        </div>
      </td>
      <td>{bar.region}</td>
      <td class="reason">{bar.reason}</td>
    </tr>
  );
}

const Legend = ({ bars }: { readonly bars: readonly BarOf[] }): JSX.Element => {
  const met = new Set(bars.flatMap(({ segments }) => segments.map(({ doing }) => doing)));
  return (
    <ul class="legend" aria-label="What the colours mean">
      {names
        .filter((doing) => met.has(doing))
        .map((doing) => (
          <li key={doing}>
            <span class={`part ${doing.replace(" ", "-")}`} aria-hidden="true" /> {doing}
          </li>
        ))}
    </ul>
  );
};

/** The times at the beginning, in the middle and at the end of the bars. */
function Axis({ rollout }: { readonly rollout: RolloutDetail }): JSX.Element {
  const whole = Math.max(1, endOf(rollout) - rollout.began);
  return (
    <span class="axis" aria-hidden="true">
      {[0, 0.25, 0.5, 0.75, 1].map((part) => (
        <span key={part}>{took(part * whole)}</span>
      ))}
    </span>
  );
}

/** The view of one rollout. */
export function RolloutPage({ id }: { readonly id: string }): JSX.Element {
  const { data, error } = useLive<RolloutDetail>(`/local/rollouts/${encodeURIComponent(id)}`, ["rollouts"]);
  const most = useMostRows(data !== undefined);
  if (!data) return <NoView name="Rollout" error={error} />;
  return (
    <>
      <nav class="crumbs" aria-label="Where this is">
        <a href={to.rollouts}>Rollouts</a> / <a href={to.app(data.app)}>{data.app}</a>
      </nav>
      <header class="title">
        <h1>{titleOf(data)}</h1>
        <ResultOf rollout={data} />
      </header>
      {data.reason !== null && <p class={data.result === "waiting" ? "note" : "problem"}>{data.reason}</p>}
      <Facts
        of={[
          ["Image", <Images key="image" rollout={data} />],
          ["Strategy", data.strategy ?? (data.fleet === null ? "none: plain Machines" : "unknown")],
          [
            "Began",
            <span key="began">
              {clock(data.began)} (<Time at={data.began} />)
            </span>,
          ],
          ["Took", data.ended === null ? `${took(endOf(data) - data.began)} so far` : took(data.ended - data.began)],
          ["By", <By key="by" rollout={data} />],
          ["Resource", <ResourceOf key="resource" urn={data.urn} />],
          ["Update", <Id key="update">{data.update}</Id>],
        ]}
      />
      <Section title="Machines" aside={<Legend bars={data.bars} />}>
        {data.bars.length === 0 ? (
          <Empty>No Machine was changed.</Empty>
        ) : (
          <div class="scroll" tabIndex={0} role="group" aria-label="Timeline of each Machine">
            <table class="courses">
              <thead>
                <tr>
                  <th scope="col">Machine</th>
                  <th scope="col">Now</th>
                  <th scope="col">
                    Time <Axis rollout={data} />
                  </th>
                  <th scope="col">Region</th>
                  <th scope="col">Reason</th>
                </tr>
              </thead>
              <tbody>
                {data.bars.slice(0, most).map((bar) => (
                  <BarOfMachine key={bar.machine} bar={bar} rollout={data} />
                ))}
              </tbody>
            </table>
          </div>
        )}
        {data.more > 0 && <p class="faint">{some(data.more, "more Machine")} are not shown.</p>}
      </Section>
      <Section title="Requests" aside={<span class="faint">that changed something</span>}>
        {data.requests.length === 0 ? (
          <Empty>The history has no request of it.</Empty>
        ) : (
          <RequestTable
            label="Requests"
            requests={data.requests.slice(0, most).map((one, seq) => ({ ...one, seq, faults: [], owner: one.token }))}
          />
        )}
      </Section>
    </>
  );
}
