// The addresses of a cluster, for programs that connect to it. The password is copied without being shown.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ClusterView } from "../cluster.ts";
import { mayInOrganization, send } from "./live.ts";
import { Code, Empty, Facts, Id, Section, copy, say } from "./parts.tsx";

const hidden = "••••••••";

/** How to connect to a cluster. */
export function Connection({ id, view }: { readonly id: string; readonly view: ClusterView }): JSX.Element | null {
  const { cluster, databases, users, isReal } = view;
  const { direct, pooler } = cluster.endpoints?.primary ?? {};
  const [database, setDatabase] = useState<string>();
  const [user, setUser] = useState<string>();
  const [way, setWay] = useState<"direct" | "pooler">("direct");
  const chosen = way === "pooler" && pooler ? pooler : direct;
  if (!chosen || !databases || !users) return null;
  const isPooled = pooler !== undefined && (pooler.port !== direct?.port || pooler.host !== direct?.host);
  const { host = "", port = 5432 } = chosen;
  const at = { host, port, database: database ?? databases[0]?.name ?? "", user: user ?? users[0]?.username ?? "" };
  const uri = (password: string): string => uriOf({ ...at, password });
  const copyWhole = async (): Promise<void> => {
    const path = `/console/api/clusters/${encodeURIComponent(id)}/users/${encodeURIComponent(at.user)}/reveal`;
    const { value } = await send<{ readonly value: string }>("POST", path);
    await copy(uri(value));
  };
  const mayReveal = mayInOrganization("deploy");
  return (
    <Section title="Connection">
      {!isReal && (
        <Empty>
          This cluster is simulated: nothing listens at its address. Start the service with --postgres embedded for real
          servers.
        </Empty>
      )}
      <div class="filters">
        <Select label="Database" value={at.database} from={databases.map(({ name }) => name)} set={setDatabase} />
        <Select label="User" value={at.user} from={users.map(({ username }) => username)} set={setUser} />
        {isPooled && (
          <Select
            label="Through"
            value={way}
            from={["direct", "pooler"]}
            set={(value) => setWay(value === "pooler" ? "pooler" : "direct")}
          />
        )}
      </div>
      <div class="code">
        <pre tabIndex={0} aria-label="Address to connect with">
          {uri(hidden)}
        </pre>
        {mayReveal && (
          <button
            type="button"
            title="With the password. The request log says that this session has read it."
            aria-label="Copy the address with the password"
            onClick={() => void copyWhole().catch(say)}
          >
            Copy
          </button>
        )}
      </div>
      <Facts
        of={[
          ["Host", <Id key="host">{host}</Id>],
          ["Port", <Id key="port">{String(port)}</Id>],
          ["Database", <Id key="database">{at.database}</Id>],
          ["User", <Id key="user">{at.user}</Id>],
        ]}
      />
      <Code label="command of psql">{`psql ${quoted(uri(""))}`}</Code>
      <p class="note">psql asks for the password. The pooler and the server accept connections with TLS and without.</p>
    </Section>
  );
}

interface Target {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password: string;
}

function uriOf({ host, port, database, user, password }: Target): string {
  const secret = password === "" ? "" : `:${password === hidden ? hidden : encodeURIComponent(password)}`;
  const name = host.includes(":") ? `[${host}]` : host;
  return `postgresql://${encodeURIComponent(user)}${secret}@${name}:${port}/${encodeURIComponent(database)}`;
}

/** A word of a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** A choice with its name in front of it. */
export const Select = ({
  label,
  value,
  from,
  set,
}: {
  readonly label: string;
  readonly value: string;
  readonly from: readonly string[];
  readonly set: (value: string) => void;
}): JSX.Element => (
  <label>
    {label}{" "}
    <select aria-label={label} value={value} onChange={(event) => set(event.currentTarget.value)}>
      {from.map((one) => (
        <option key={one}>{one}</option>
      ))}
    </select>
  </label>
);
