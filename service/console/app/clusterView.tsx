// One Postgres cluster.
import type { JSX } from "preact";
import type { ClusterView as View } from "../cluster.ts";
import { to } from "./address.ts";
import { AsCode } from "./code.tsx";
import { useLive } from "./live.ts";
import { Empty, Facts, Id, NoView, Section, State, Table, Time } from "./parts.tsx";
import { Reveal } from "./reveal.tsx";
import { ClusterCharts } from "./usage.tsx";
import { bytes, count } from "./words.ts";

/** The view of a cluster. */
export function ClusterPage({ id }: { readonly id: string }): JSX.Element {
  const { data, error } = useLive<View>(`/console/api/clusters/${encodeURIComponent(id)}`, [`cluster:${id}`]);
  if (!data) return <NoView name={id} error={error} />;
  const { cluster, databases, users, backups, active, slow } = data;
  const completed = backups?.filter(({ status }) => status === "completed") ?? [];
  return (
    <>
      <nav class="crumbs" aria-label="Where this is">
        <a href={to.overview}>Overview</a>
      </nav>
      <header class="title">
        <h1>{cluster.name}</h1>
        <State of={cluster.status ?? "unknown"} />
        <span class="actions">
          <AsCode type="PostgresCluster" id={id} />
        </span>
      </header>
      <Facts
        of={[
          ["Id", <Id key="id">{id}</Id>],
          ["Region", cluster.region ?? ""],
          ["Plan", cluster.plan ?? ""],
          ["Postgres", cluster.pg_major_version ?? ""],
          ["Disk", `${cluster.disk_size_gb ?? "?"} GB`],
          ["Created", <Time key="created" at={cluster.created_at} />],
        ]}
      />
      {databases === null && <Empty>It cannot answer about its contents now: it is {cluster.status}.</Empty>}
      {databases && (
        <Section title="Databases">
          <Table label="Databases" columns={["Database", ""]}>
            {databases.map(({ name }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>
                  <AsCode type="PostgresDatabase" id={`${id}/database/${name}`} />
                </td>
              </tr>
            ))}
          </Table>
        </Section>
      )}
      {users && (
        <Section title="Users">
          <Table label="Users" columns={["User", "Role", ""]}>
            {users.map(({ username, role }) => (
              <tr key={username}>
                <th scope="row">{username}</th>
                <td>{role}</td>
                <td>
                  <Reveal
                    at={`clusters/${encodeURIComponent(id)}/users/${encodeURIComponent(username)}`}
                    what={`Password of ${username}`}
                  />
                  <AsCode type="PostgresUser" id={`${id}/user/${username}`} />
                </td>
              </tr>
            ))}
          </Table>
        </Section>
      )}
      {backups && (
        <Section
          title="Backups"
          aside={
            completed.length > 0 && (
              <span class="faint">
                it can be restored to {completed.length === 1 ? "one point" : `${count(completed.length)} points`}, the
                newest of <Time at={completed[0]?.finished_at} />
              </span>
            )
          }
        >
          {backups.length === 0 ? (
            <Empty>No backup yet. A program makes one with machines.PostgresBackup.</Empty>
          ) : (
            <Table label="Backups" columns={["Backup", "Type", "Status", "Size#", "Began", "Ended", ""]}>
              {backups.map((backup) => (
                <tr key={backup.id}>
                  <th scope="row">
                    <Id>{backup.id}</Id>
                  </th>
                  <td>{backup.type}</td>
                  <td>
                    <State of={backup.status ?? "unknown"} />
                  </td>
                  <td class="number">{backup.size_bytes == null ? "" : bytes(backup.size_bytes)}</td>
                  <td>
                    <Time at={backup.started_at} />
                  </td>
                  <td>
                    <Time at={backup.finished_at} />
                  </td>
                  <td>
                    <AsCode type="PostgresBackup" id={`${id}/backup/${backup.id}`} />
                  </td>
                </tr>
              ))}
            </Table>
          )}
        </Section>
      )}
      <ClusterCharts id={id} />
      {slow && <Queries title="Slow queries" queries={slow} none="No slow query in the last day." />}
      {active && <Queries title="Running queries" queries={active} none="No query runs now." />}
    </>
  );
}

const textOf = (value: unknown): string =>
  typeof value === "string" ? value : value == null ? "" : JSON.stringify(value);

function Queries({
  title,
  queries,
  none,
}: {
  readonly title: string;
  readonly queries: readonly Readonly<Record<string, unknown>>[];
  readonly none: string;
}): JSX.Element {
  const names = [...new Set(queries.flatMap((query) => Object.keys(query)))];
  return (
    <Section title={title}>
      {queries.length === 0 ? (
        <Empty>{none}</Empty>
      ) : (
        <Table label={title} columns={names.map((name) => name.replaceAll("_", " "))}>
          {queries.map((query, i) => (
            <tr key={i}>
              {names.map((name) => (
                <td key={name} class={name === "query" ? "mono wrap" : ""}>
                  {typeof query[name] === "number" ? count(query[name]) : textOf(query[name])}
                </td>
              ))}
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}
