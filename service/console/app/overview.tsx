// What an organization has.
import type { JSX } from "preact";
import type { AppSummary, Fresh, Overview, Problem as Item, Problems } from "../types.ts";
import { queryOf, to } from "./address.ts";
import { useLive, who } from "./live.ts";
import { Bar, Code, Empty, Filter, NoView, Section, Sentence, State, StateCounts, Table, Time } from "./parts.tsx";
import { AsCode } from "./code.tsx";
import { bytes, count, money, some } from "./words.ts";

const add = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0);

/** The overview. */
export function OverviewView(): JSX.Element {
  const { data, error } = useLive<Overview & Fresh>("/console/api/overview", ["org"]);
  if (!data) return <NoView name={"Overview"} error={error} />;
  const { apps, clusters, regions, cost } = data;
  const wanted = queryOf("q").toLowerCase();
  const shown = apps.filter(({ name }) => name.toLowerCase().includes(wanted));
  const used = regions.filter(({ machines, used }) => machines > 0 || used > 0);
  const total = cost.machines + cost.volumes + cost.addresses + cost.clusters;
  return (
    <>
      <h1>{data.organization.name}</h1>
      <ul class="figures">
        <Figure value={apps.length} name={["App", "Apps"]} />
        <Figure value={add(apps.map(({ machines }) => machines))} name={["Machine", "Machines"]} />
        <Figure value={add(apps.map(({ states }) => states.started ?? 0))} name={["started", "started"]} />
        {(["failed", "critical"] as const).map((name) => {
          const n = add(apps.map(name === "failed" ? failedIn : ({ critical }) => critical));
          const text = name === "failed" ? "failed" : "with critical checks";
          return n > 0 && <Figure key={name} value={n} name={[text, text]} isBad />;
        })}
        <Figure value={add(apps.map(({ volumes }) => volumes))} name={["volume", "volumes"]} />
        <Figure value={clusters.length} name={["cluster", "clusters"]} />
        <li
          title={`Machines ${money(cost.machines, cost.currency)}, volumes ${money(cost.volumes, cost.currency)}, addresses ${money(cost.addresses, cost.currency)}, clusters ${money(cost.clusters, cost.currency)}. The prices are those of the policy pack's budget.`}
        >
          <b>{money(total, cost.currency)}</b> a month, estimated
        </li>
      </ul>
      <ProblemList of={data.problems} />
      <Section title="Apps" aside={apps.length > 8 && <Filter name="q" label="Name of an App" />}>
        {apps.length === 0 ? (
          <NoApps />
        ) : shown.length === 0 ? (
          <Empty>No App has a name with “{queryOf("q")}”.</Empty>
        ) : (
          <Table
            label="Apps"
            columns={["App", "Machines", "Checks", "Regions", "Volumes#", "Hostnames#", "Cost a month#", "Created"]}
          >
            {shown.map((app) => (
              <tr key={app.name}>
                <th scope="row">
                  <a href={to.app(app.name)}>{app.name}</a>
                  {app.deleting && <State of="destroying" />}
                </th>
                <td>{app.machines === 0 ? <span class="faint">none</span> : <StateCounts states={app.states} />}</td>
                <td>
                  {app.critical > 0 && <State of="critical" n={app.critical} />}
                  {app.critical === 0 && (app.states.started ?? 0) > 0 && (
                    <span class="faint">{failedIn(app) > 0 ? "none critical of those started" : "none critical"}</span>
                  )}
                </td>
                <td>{app.regions.join(", ")}</td>
                <td class="number">{count(app.volumes)}</td>
                <td class="number">{count(app.hostnames)}</td>
                <td class="number">{money(app.cost, cost.currency)}</td>
                <td>
                  <Time at={app.created} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Section>
      {clusters.length > 0 && (
        <Section title="Postgres clusters">
          <Table
            label="Postgres clusters"
            columns={["Cluster", "Status", "Region", "Plan", "Postgres", "Disk", "Attached to", ""]}
          >
            {clusters.map((cluster) => (
              <tr key={cluster.id}>
                <th scope="row">
                  <a href={to.cluster(cluster.id)}>{cluster.name}</a>
                </th>
                <td>
                  <State of={cluster.status} />
                </td>
                <td>{cluster.region}</td>
                <td>{cluster.plan}</td>
                <td>{cluster.version}</td>
                <td>
                  {cluster.usedBytes === null ? "" : `${bytes(cluster.usedBytes)} of `}
                  {cluster.diskGb} GB
                </td>
                <td>{cluster.attachments.join(", ")}</td>
                <td>
                  <AsCode type="PostgresCluster" id={cluster.id} />
                </td>
              </tr>
            ))}
          </Table>
        </Section>
      )}
      <Section
        title="Regions"
        aside={<span class="faint">{some(regions.length, "region")}; those with Machines are shown</span>}
      >
        {used.length === 0 ? (
          <Empty>No region has a Machine.</Empty>
        ) : (
          <Table label="Regions" columns={["Region", "Name", "Machines#", "Capacity"]}>
            {used.map((region) => (
              <tr key={region.code}>
                <th scope="row">{region.code}</th>
                <td>{region.name}</td>
                <td class="number">{count(region.machines)}</td>
                <td>
                  <Bar part={region.used} whole={region.capacity} label={`Machines in ${region.code}`} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Section>
    </>
  );
}

const failedIn = ({ states }: AppSummary): number => states.failed ?? 0;

/** Problems that are to be solved now, and those that have time. */
const grave: readonly Item["kind"][] = [
  ...(["cluster failed", "Machine failed", "Machine loops", "check critical", "certificate failed"] as const),
];

function placeOf({ app = "", machine, query, cluster }: Item["place"]): string {
  if (cluster !== undefined) return to.cluster(cluster);
  return machine === undefined ? `${to.app(app)}?${query ?? ""}` : to.machine(app, machine);
}

function ProblemList({ of: { total, first } }: { readonly of: Problems }): JSX.Element {
  return (
    <Section title="Problems" aside={total > 0 && <span class="faint">{count(total)}, the worst first</span>}>
      {total === 0 ? (
        <p class="faint">Nothing has failed, and nothing waits or ends soon.</p>
      ) : (
        <ul class="problems">
          {first.map((item) => {
            const isGrave = grave.includes(item.kind);
            return (
              <li key={`${item.kind} ${item.subject}`}>
                <span class={isGrave ? "bad" : "odd"} aria-hidden="true">
                  {isGrave ? "▲" : "◆"}
                </span>
                <span>
                  {item.place.app === undefined && item.place.cluster === undefined ? (
                    item.subject
                  ) : (
                    <a href={placeOf(item.place)}>{item.subject}</a>
                  )}
                  <Sentence of={item.text} />
                </span>
              </li>
            );
          })}
        </ul>
      )}
      {total > first.length && <p class="faint">And {count(total - first.length)} more.</p>}
    </Section>
  );
}

const Figure = ({
  value,
  name: [one, many],
  isBad = false,
}: {
  readonly value: number;
  readonly name: readonly [string, string];
  readonly isBad?: boolean;
}): JSX.Element => (
  <li class={isBad ? "bad" : ""}>
    <b>{count(value)}</b> {value === 1 ? one : many}
  </li>
);

const NoApps = (): JSX.Element => (
  <>
    <Empty>No App yet. A program creates Apps with pulumi up; so does a request:</Empty>
    <Code label="the request that creates an App">
      {`curl -X POST ${location.origin}/v1/apps -H "Authorization: Bearer $(machines-service token)" \\
  -H "Content-Type: application/json" -d '{"name":"web","org_slug":"${who.value?.organization ?? "personal"}"}'`}
    </Code>
  </>
);
