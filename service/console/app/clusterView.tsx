// One Postgres cluster.
import type { JSX } from "preact";
import { lazy, Suspense } from "preact/compat";
import type { ClusterView as View } from "../cluster.ts";
import { queryOf, setQuery, to } from "./address.ts";
import { BackUp, CreateDatabase, CreateUser, DeleteDatabase, Fork, Restore, UserChanges } from "./clusterChanges.tsx";
import { AsCode } from "./code.tsx";
import { Connection, Select } from "./connection.tsx";
import { may, mayInOrganization, useLive } from "./live.ts";
import { Empty, Facts, Id, NoView, Section, State, Table, Tabs, Time } from "./parts.tsx";
import { Reveal } from "./reveal.tsx";
import { ClusterCharts } from "./usage.tsx";
import { bytes, count } from "./words.ts";

// The editor is larger than all else.
const Query = lazy(() => import("./query.tsx").then(({ Query }) => Query));
const Tables = lazy(() => import("./tables.tsx").then(({ Tables }) => Tables));

/** The view of a cluster. */
export function ClusterPage({ id }: { readonly id: string }): JSX.Element {
  const { data, error } = useLive<View>(`/console/api/clusters/${encodeURIComponent(id)}`, [`cluster:${id}`]);
  if (!data) return <NoView name={id} error={error} />;
  const { cluster } = data;
  const view = queryOf("view");
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
          {cluster.status === "ready" && data.noBackups === null && (
            <Fork of={{ id, name: cluster.name, stacks: data.stacks }} />
          )}
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
      <Tabs
        name="view"
        tabs={[
          ["cluster", "Cluster"],
          ["tables", "Tables"],
          ["query", "Query"],
        ]}
      />
      {view === "tables" || view === "query" ? <Inside id={id} view={data} /> : <Contents id={id} view={data} />}
    </>
  );
}

/** Its tables, or a query, of the database and as the user that the address names. */
function Inside({ id, view: { isReal, databases, users } }: { readonly id: string; readonly view: View }): JSX.Element {
  if (!isReal)
    return (
      <Empty>
        This cluster is simulated: it has no tables, and answers no query. Start the service with --postgres embedded
        for real servers.
      </Empty>
    );
  if (!may("deploy"))
    return (
      <Empty>
        Tables and queries show what only those may see who have a password. They need a console that was started with
        --console write, and a token with the role deploy.
      </Empty>
    );
  const database = queryOf("database") || databases?.[0]?.name;
  const user = queryOf("user") || users?.[0]?.username;
  if (!databases || !users || database === undefined || user === undefined)
    return <Empty>Its server does not answer now.</Empty>;
  const choose = (name: string, all: readonly string[]) => (value: string) =>
    setQuery({ [name]: value === all[0] ? undefined : value, table: undefined, page: undefined });
  const [names, usernames] = [databases.map(({ name }) => name), users.map(({ username }) => username)];
  const place = { cluster: id, database, user };
  return (
    <>
      <div class="filters">
        <Select label="Database" value={database} from={names} set={choose("database", names)} />
        <Select label="As" value={user} from={usernames} set={choose("user", usernames)} />
      </div>
      <Suspense fallback={<p class="faint">Reading …</p>}>
        {queryOf("view") === "tables" ? <Tables place={place} /> : <Query place={place} />}
      </Suspense>
    </>
  );
}

/** Its addresses, and what is in it. */
function Contents({ id, view }: { readonly id: string; readonly view: View }): JSX.Element {
  const { cluster, databases, users, backups, active, slow, stacks, noBackups } = view;
  const completed = backups?.filter(({ status }) => status === "completed") ?? [];
  const of = { id, name: cluster.name, stacks };
  return (
    <>
      {databases === null && <Empty>It cannot answer about its contents now: it is {cluster.status}.</Empty>}
      <Connection id={id} view={view} />
      {databases && (
        <Section title="Databases" aside={<CreateDatabase of={of} />}>
          <Table label="Databases" columns={["Database", ""]}>
            {databases.map(({ name }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>
                  <AsCode type="PostgresDatabase" id={`${id}/database/${name}`} />
                  <DeleteDatabase of={of} database={name} />
                </td>
              </tr>
            ))}
          </Table>
        </Section>
      )}
      {users && (
        <Section title="Users" aside={<CreateUser of={of} />}>
          <Table label="Users" columns={["User", "Role", ""]}>
            {users.map(({ username, role }) => (
              <tr key={username}>
                <th scope="row">{username}</th>
                <td>{role}</td>
                <td>
                  <Reveal
                    at={`clusters/${encodeURIComponent(id)}/users/${encodeURIComponent(username)}`}
                    what={`Password of ${username}`}
                    isAllowed={mayInOrganization("deploy")}
                  />
                  <AsCode type="PostgresUser" id={`${id}/user/${username}`} />
                  <UserChanges of={of} user={username} role={role} />
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
            <>
              {completed.length > 0 && (
                <span class="faint">
                  it can be restored to {completed.length === 1 ? "one point" : `${count(completed.length)} points`},
                  the newest of <Time at={completed[0]?.finished_at} />
                </span>
              )}
              {cluster.status === "ready" && noBackups === null && (
                <BackUp of={of} isRunning={backups.some(({ status }) => status === "running")} />
              )}
            </>
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
                    {backup.status === "completed" && noBackups === null && <Restore of={of} backup={backup.id} />}
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
