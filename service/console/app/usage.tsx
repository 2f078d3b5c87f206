// Charts of what Machines, Apps and clusters have used over the last hours.
import type { ComponentChildren, JSX } from "preact";
import type { Topic, MachineUsage, TrafficUsage } from "../types.ts";
import type { ClusterUsage } from "../usage.ts";
import { queryOf } from "./address.ts";
import { Chart, type Line } from "./chart.tsx";
import { useLive } from "./live.ts";
import { Choice, Empty, Problem, Section } from "./parts.tsx";
import { bytes, count, decimal, milliseconds } from "./words.ts";

const periods = ["3", "6", "12"] as const;

/** The hours that the reader has chosen. */
const hoursNow = (): string => queryOf("hours") || "1";

const Period = (): JSX.Element => (
  <Choice name="hours" label="Last hour" from={periods.map((hours) => [hours, `Last ${hours} hours`])} />
);

/** Charts beside each other. */
const Charts = ({ children }: { readonly children: ComponentChildren }): JSX.Element => (
  <div class="charts">{children}</div>
);

/** A chart with a title. */
const Panel = ({ title, ...chart }: Parameters<typeof Chart>[0] & { readonly title: string }): JSX.Element => (
  <Section title={title}>
    <Chart {...chart} />
  </Section>
);

const NotYet = (): JSX.Element => <Empty>Nothing was measured yet; look again in half a minute.</Empty>;

const perSecond = (value: number): string => `${bytes(value)}/s`;

/** Values as a line; `tone` is its colour. */
const line = (name: string, tone: Line["tone"], values: Line["values"]): Line => ({ name, tone, values });

/** A limit that is the same at all times, if there is one. */
const limit = (name: string, times: readonly number[], value: number | undefined): Line[] =>
  value === undefined ? [] : [{ name, tone: "calm", isLimit: true, values: times.map(() => value) }];

const isKnown = (values: Line["values"]): boolean => values.some((value) => value !== null);

/** What a Machine has used. */
export function MachineCharts({ at, topic }: { readonly at: string; readonly topic: Topic }): JSX.Element {
  const { data, error } = useLive<MachineUsage>(`${at}/usage?hours=${hoursNow()}`, [topic]);
  if (error) return <Problem error={error} />;
  if (!data) return <p class="faint">Reading …</p>;
  const { times, courses, isSimulated, problem, isRunning, hasNetwork, limits } = data;
  if (isSimulated)
    return (
      <Empty>
        Nothing is measured: this Machine is simulated, and no program runs in it. With --runtime docker, programs run.
      </Empty>
    );
  const isMeasured = isKnown(courses.memory);
  return (
    <Section title="Usage" aside={<Period />}>
      {problem !== null && <p class="problem">{problem}</p>}
      {problem === null && !isMeasured && (isRunning ? <NotYet /> : <Empty>It did not run at that time.</Empty>)}
      {isMeasured && (
        <Charts>
          <Panel
            title="Processors"
            label="Processors that the Machine used, and those that it may use."
            times={times}
            lines={[line("used", "busy", courses.cpus), ...limit("of", times, limits?.cpus)]}
            words={decimal}
            least={limits?.cpus ?? 1}
          />
          <Panel
            title="Memory"
            label="Memory that the Machine used, and how much it may use."
            times={times}
            lines={[line("used", "busy", courses.memory), ...limit("of", times, limits?.memory)]}
            words={bytes}
            least={limits?.memory ?? 1e6}
          />
          {hasNetwork && (
            <Panel
              title="Network"
              label="Bytes a second that the Machine received and sent."
              times={times}
              lines={[line("received", "busy", courses.received), line("sent", "odd", courses.sent)]}
              words={perSecond}
              least={1000}
            />
          )}
          {hasNetwork && (
            <Panel
              title="Disk"
              label="Bytes a second that the Machine read from its disks and wrote to them."
              times={times}
              lines={[line("read", "busy", courses.read), line("written", "odd", courses.written)]}
              words={perSecond}
              least={1000}
            />
          )}
        </Charts>
      )}
      {isMeasured && !hasNetwork && (
        <p class="faint">The metrics of the cluster have processors and memory, and neither network nor disk.</p>
      )}
    </Section>
  );
}

/** What the proxy has answered for an App. */
export function TrafficCharts({ app }: { readonly app: string }): JSX.Element {
  const query = new URLSearchParams({ hours: hoursNow(), route: queryOf("route") });
  const { data, error } = useLive<TrafficUsage>(`/console/api/apps/${encodeURIComponent(app)}/usage?${query}`, [
    `app:${app}`,
  ]);
  if (error) return <Problem error={error} />;
  if (!data) return <p class="faint">Reading …</p>;
  const { times, courses, routes, isSimulated } = data;
  if (isSimulated)
    return (
      <Empty>
        There are no requests: with the simulated runtime no program runs, and the service has no proxy. With --runtime
        docker, it has.
      </Empty>
    );
  const isMeasured = isKnown(courses.requests);
  return (
    <Section
      title="Requests at the proxy"
      aside={
        <span class="filters">
          <Choice name="route" label="All addresses" from={routes} />
          <Period />
        </span>
      }
    >
      {!isMeasured && <NotYet />}
      {isMeasured && (
        <Charts>
          <Panel
            title="Requests and errors"
            label="Requests a second, and those answered with a status of 500 or more."
            times={times}
            lines={[line("requests", "busy", courses.requests), line("errors", "bad", courses.errors)]}
            words={(value) => `${decimal(value)}/s`}
            least={1}
          />
          <Panel
            title="Time to answer"
            label="Time within which half and 95 % of the requests were answered."
            times={times}
            lines={[line("half within", "busy", courses.median), line("95 % within", "odd", courses.p95)]}
            words={milliseconds}
            least={10}
          />
        </Charts>
      )}
      <p class="faint">
        An error is an answer with a status of 500 or more, of a Machine or of the proxy. WebSockets and streams of
        events count as requests and have no time.
      </p>
    </Section>
  );
}

/** What the server of a cluster did. */
export function ClusterCharts({ id }: { readonly id: string }): JSX.Element | null {
  const url = `/console/api/clusters/${encodeURIComponent(id)}/usage?hours=${hoursNow()}`;
  const { data, error } = useLive<ClusterUsage>(url, [`cluster:${id}`]);
  if (error || !data) return null;
  const { times, courses, isSimulated } = data;
  if (isSimulated)
    return (
      <Section title="Load">
        <Empty>
          Nothing is measured: this cluster is simulated. With --postgres embedded, clusters are real servers.
        </Empty>
      </Section>
    );
  if (!isKnown(courses.connections))
    return (
      <Section title="Load" aside={<Period />}>
        <NotYet />
      </Section>
    );
  return (
    <Section title="Load" aside={<Period />}>
      <Charts>
        <Panel
          title="Connections"
          label="Connections of clients, those with a query or a transaction, and how many there may be."
          times={times}
          lines={[
            line("open", "busy", courses.connections),
            line("active", "odd", courses.active),
            { ...line("of", "calm", courses.most), isLimit: true },
          ]}
        />
        <Panel
          title="Slow queries"
          label="Queries that had run for more than a second."
          times={times}
          lines={[line("running for more than a second", "bad", courses.slow)]}
          words={count}
        />
      </Charts>
    </Section>
  );
}
