// One Machine.
import type { JSX } from "preact";
import { lazy, Suspense } from "preact/compat";
import { useEffect } from "preact/hooks";
import type { InsideView, MachineView as View } from "../machine.ts";
import { queryOf, to } from "./address.ts";
import { Actions } from "./actions.tsx";
import { AsCode } from "./code.tsx";
import { FailurePanel } from "./failure.tsx";
import { may, now, useLive } from "./live.ts";
import { Logs } from "./logs.tsx";
import { Empty, Facts, Id, NoView, Problem, Section, State, Table, Tabs, Time } from "./parts.tsx";
import { MachineRollouts } from "./rollouts.tsx";
import { MachineCharts } from "./usage.tsx";
import { Versions } from "./versions.tsx";
import { bytes, clock, count } from "./words.ts";

// Few open it, and it is larger than all else.
const Terminal = lazy(() => import("./terminal.tsx").then(({ Terminal }) => Terminal));

/** The view of a Machine. */
export function MachinePage({ app, id }: { readonly app: string; readonly id: string }): JSX.Element {
  const at = `/console/api/apps/${encodeURIComponent(app)}/machines/${encodeURIComponent(id)}`;
  const { data, error, refresh } = useLive<View>(at, [`machine:${app}/${id}`]);
  const leased = data?.lease?.expires_at;
  useEffect(() => {
    if (leased === undefined) return undefined;
    // That a lease has expired is no change that the service reports.
    const timer = window.setTimeout(refresh, Math.max(1000, leased * 1000 - now.peek() + 50));
    return () => window.clearTimeout(timer);
  }, [data]);
  if (!data) return <NoView name={id} error={error} app={app} />;
  const { machine, lease, waits, volumes, canLog } = data;
  const name = machine.name ?? id;
  const state = machine.state ?? "unknown";
  const view = queryOf("view") || "events";
  const checks = machine.checks ?? [];
  return (
    <>
      <nav class="crumbs" aria-label="Where this is">
        <a href={to.overview}>Overview</a> / <a href={to.app(app)}>{app}</a>
      </nav>
      <header class="title">
        <h1>{name}</h1>
        <State of={state} />
        {machine.cordoned && <State of="cordoned" />}
        <span class="actions">
          <AsCode type="Machine" id={`${app}/${id}`} />
          <Actions app={app} id={id} name={name} state={state} isCordoned={machine.cordoned === true} />
        </span>
      </header>
      {error && <Problem error={error} />}
      {data.failure && <FailurePanel at={at} app={app} id={id} view={data} failure={data.failure} />}
      <Facts
        of={[
          ["Id", <Id key="id">{id}</Id>],
          ["Region", machine.region ?? ""],
          [
            "Image",
            <span key="image" class="mono">
              {machine.config?.image ?? machine.incomplete_config?.image ?? ""}
            </span>,
          ],
          ["Version", <Id key="version">{machine.version ?? ""}</Id>],
          ["Private IP", <Id key="ip">{machine.private_ip ?? ""}</Id>],
          ["Created", <Time key="created" at={machine.created_at} />],
          ["Changed", <Time key="changed" at={machine.updated_at} />],
          [
            "Lease",
            lease ? (
              <span key="lease">
                {lease.owner}, {lease.description && <bdi>{lease.description}, </bdi>}ends{" "}
                <Time at={(lease.expires_at ?? 0) * 1000} />
              </span>
            ) : (
              "none"
            ),
          ],
          [
            "Waits held",
            waits.length === 0
              ? "none"
              : waits.map(({ wanted, until }, i) => (
                  <span key={i} class="wait">
                    for {wanted}, ends <Time at={until} />
                  </span>
                )),
          ],
          [
            "Volumes",
            volumes.length === 0
              ? "none"
              : volumes.map((volume) => (
                  <span key={volume.id}>
                    {volume.name} ({volume.size_gb} GB){" "}
                  </span>
                )),
          ],
        ]}
      />
      {checks.length > 0 && (
        <Table label="Checks" columns={["Check", "Result", "Output", "Changed"]}>
          {checks.map((check) => (
            <tr key={check.name}>
              <th scope="row">{check.name}</th>
              <td>
                <State of={check.status ?? "unknown"} />
              </td>
              <td class="wrap">{check.output}</td>
              <td>
                <Time at={check.updated_at} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      <Tabs
        name="view"
        tabs={[
          ["events", "Events"],
          ["rollouts", "Rollouts"],
          ["versions", `Versions ${count(data.versions.length)}`],
          ["logs", "Logs"],
          ["usage", "Usage"],
          ["inside", "Processes and memory"],
          ...(may("operate") ? ([["terminal", "Terminal"]] as const) : []),
        ]}
      />
      {view === "events" && <Events view={data} />}
      {view === "rollouts" && <MachineRollouts app={app} machine={id} />}
      {view === "versions" && <Versions at={at} versions={data.versions} current={machine.version ?? ""} />}
      {view === "logs" && <Logs app={app} machine={id} isReal={canLog} />}
      {view === "usage" && <MachineCharts at={at} topic={`machine:${app}/${id}`} />}
      {view === "inside" && <Inside at={at} app={app} id={id} state={state} />}
      {view === "terminal" && !may("operate") && (
        <Empty>
          The terminal needs a console that was started with --console write, and a token with the role operate.
        </Empty>
      )}
      {view === "terminal" && may("operate") && (
        <Suspense fallback={<p class="faint">Loading …</p>}>
          <Terminal app={app} id={id} state={state} isReal={data.hasTerminals} />
        </Suspense>
      )}
    </>
  );
}

function Events({ view: { events } }: { readonly view: View }): JSX.Element {
  if (events.length === 0) return <Empty>This Machine has no events.</Empty>;
  return (
    <ol class="timeline">
      {events.map((event) => (
        <li key={event.id}>
          <span class="mono faint">{clock(event.timestamp)}</span> <b>{event.text}</b>{" "}
          <span class="faint">
            · {event.source === "user" ? "a request" : "the service"}, <Time at={event.timestamp} />
          </span>
          {event.request !== null && Object.keys(event.request).length > 0 && (
            <details>
              <summary aria-label={`Details of: ${event.text}`}>Details</summary>
              <pre tabIndex={0} aria-label={`Details of: ${event.text}`}>
                {JSON.stringify(event.request, null, 1)}
              </pre>
            </details>
          )}
        </li>
      ))}
    </ol>
  );
}

function Inside({
  at,
  app,
  id,
  state,
}: {
  readonly at: string;
  readonly app: string;
  readonly id: string;
  readonly state: string;
}): JSX.Element {
  const { data, error } = useLive<InsideView>(`${at}/inside`, [`machine:${app}/${id}`]);
  if (error) return <Problem error={error} />;
  if (!data) return <p class="faint">Reading …</p>;
  const { processes, memory } = data;
  if (!processes && !memory) return <Empty>Nothing runs in this Machine: it is {state}.</Empty>;
  const limit = (memory?.limit_mb ?? 0) * 1e6;
  const used = (processes ?? []).reduce((sum, { rss = 0 }) => sum + rss, 0);
  return (
    <>
      {memory && (
        <Section title="Memory">
          <p>
            <meter min={0} max={Math.max(1, limit)} value={used} aria-label="Memory of its processes" /> {bytes(used)}{" "}
            of {count(memory.limit_mb)} MB, which can be raised by {count(memory.available_mb)} MB
          </p>
        </Section>
      )}
      <Section title="Processes">
        <Table label="Processes" columns={["PID#", "Command", "CPU#", "Memory#", "Listens at"]}>
          {(processes ?? []).map((one) => (
            <tr key={one.pid}>
              <td class="number">{one.pid}</td>
              <td class="mono wrap">{one.command}</td>
              <td class="number">{one.cpu} %</td>
              <td class="number">{bytes(one.rss ?? 0)}</td>
              <td class="mono">{one.listen_sockets?.map(({ proto, address }) => `${proto} ${address}`).join(", ")}</td>
            </tr>
          ))}
        </Table>
      </Section>
    </>
  );
}
