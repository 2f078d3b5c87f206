// The changes of what is in a cluster. Each is a request of the interface, so that its rules and the audit are the same.
import type { ComponentChildren, JSX } from "preact";
import { Change } from "./change.tsx";
import { send } from "./live.ts";
import { to } from "./address.ts";
import { Code } from "./parts.tsx";

const roles = ["reader", "writer", "schema_admin"];

/** The user that every cluster has, which cannot be changed. */
export const firstUser = "fly-user";

/** A cluster, and the stacks that may declare what is in it. */
export interface Changed {
  readonly id: string;
  readonly name: string;
  readonly stacks: readonly string[];
}

const at = ({ id }: Changed, ...parts: readonly string[]): string =>
  ["/v1/postgres", id, ...parts].map((part, i) => (i === 0 ? part : encodeURIComponent(part))).join("/");

/** Whose program may declare it, and what its next run does then. */
function Declared({ of: { stacks }, then }: { readonly of: Changed; readonly then: string }): JSX.Element {
  return (
    <p class="note">
      {stacks.length === 0
        ? "If a program of Pulumi declares it"
        : `If the program of ${stacks.join(" or ")} declares it`}
      , {then}
    </p>
  );
}

const NotDeclared = ({ what }: { readonly what: string }): JSX.Element => (
  <p class="note">No program knows it then. Copy it as code to declare {what} in one.</p>
);

type Act = () => Promise<ComponentChildren>;

/** Does something without a result to show. */
const silently = (send: () => Promise<unknown>): ReturnType<Act> => send().then(() => undefined);

/** A button that creates a database. */
export const CreateDatabase = ({ of }: { readonly of: Changed }): JSX.Element => (
  <Change
    name="Create database"
    fields={[{ name: "name", label: "Name" }]}
    act={({ name }) => silently(() => send("POST", at(of, "databases"), { name }))}
  >
    <p>
      This creates an empty database in the cluster <b>{of.name}</b>.
    </p>
    <NotDeclared what="the database" />
  </Change>
);

/** A button that deletes a database. */
export const DeleteDatabase = ({ of, database }: { readonly of: Changed; readonly database: string }): JSX.Element => (
  <Change
    name="Delete"
    of={`database ${database}`}
    typed={database}
    act={() => silently(() => send("DELETE", at(of, "databases", database)))}
  >
    <p>
      This deletes the database <b>{database}</b> of the cluster <b>{of.name}</b> with all that is in it, and ends its
      connections. Only a backup of the cluster brings it back.
    </p>
    <Declared of={of} then="the next update creates it again, empty." />
  </Change>
);

/** A button that creates a user. */
export const CreateUser = ({ of }: { readonly of: Changed }): JSX.Element => (
  <Change
    name="Create user"
    fields={[
      { name: "username", label: "Name" },
      { name: "role", label: "Role", from: roles },
    ]}
    act={({ username, role }) => silently(() => send("POST", at(of, "users"), { username, role }))}
  >
    <p>
      A reader reads the tables that administrators create, a writer changes their rows, and a schema_admin may do
      everything in the databases of the cluster <b>{of.name}</b>. The service makes its password.
    </p>
    <NotDeclared what="the user" />
  </Change>
);

/** The buttons for what can be done with a user. */
export function UserChanges({
  of,
  user,
  role,
}: {
  readonly of: Changed;
  readonly user: string;
  readonly role: string;
}): JSX.Element {
  return (
    <>
      <Change
        name="Rotate password"
        of={`of ${user}`}
        fields={[{ name: "kill", label: "End its connections", isCheck: true }]}
        act={async ({ kill }) => {
          const path = at(of, "users", user, "rotate_password");
          const { data } = await send<{ readonly data: { readonly password: string } }>("POST", path, {
            kill_sessions: kill === "true",
          });
          return (
            <>
              <Code label={`New password of ${user}`}>{data.password}</Code>
              <p class="note">The request log of the service says that this session has replaced and read it.</p>
            </>
          );
        }}
      >
        <p>
          This gives <b>{user}</b> a new password, and shows it. Whoever has the old one cannot connect any more.
        </p>
        <Declared of={of} then="it has the new password after its next refresh." />
      </Change>
      {user !== firstUser && (
        <>
          <Change
            name="Change role"
            of={`of ${user}`}
            fields={[{ name: "role", label: "Role", from: roles, value: role }]}
            act={(values) => silently(() => send("PATCH", at(of, "users", user), { role: values["role"] }))}
          >
            <p>
              This changes what <b>{user}</b> may do, and ends its connections.
            </p>
            <Declared of={of} then="the next update changes the role back." />
          </Change>
          <Change
            name="Delete"
            of={`user ${user}`}
            typed={user}
            act={() => silently(() => send("DELETE", at(of, "users", user)))}
          >
            <p>
              This deletes the user <b>{user}</b> and ends its connections. What it owns belongs to the administrators
              then.
            </p>
            <Declared of={of} then="the next update creates it again, with another password." />
          </Change>
        </>
      )}
    </>
  );
}

/** A button that takes a backup. */
export const BackUp = ({ of, isRunning }: { readonly of: Changed; readonly isRunning: boolean }): JSX.Element => (
  <Change
    name="Take a backup"
    needs="operate"
    fields={[{ name: "type", label: "Type", from: ["full", "incr", "diff"] }]}
    isDisabled={isRunning}
    act={({ type }) => silently(() => send("POST", at(of, "backups"), { type }))}
  >
    <p>
      This copies what is in the cluster <b>{of.name}</b> now. Its users can continue meanwhile.
    </p>
  </Change>
);

interface Created {
  readonly data: { readonly id: string; readonly name: string };
}

/** Says where a new cluster is. */
const created = ({ data: { id, name } }: Created): JSX.Element => (
  <p>
    The cluster <a href={to.cluster(id)}>{name}</a> is being set up.
  </p>
);

/** A button that restores a backup. */
export const Restore = ({ of, backup }: { readonly of: Changed; readonly backup: string }): JSX.Element => (
  <Change
    name="Restore"
    of={`backup ${backup}`}
    fields={[{ name: "name", label: "Name of the new cluster", value: `${of.name.slice(0, 50)}-restored` }]}
    act={async ({ name }) => created(await send<Created>("POST", at(of, "restore"), { backup_id: backup, name }))}
  >
    <p>
      This creates another cluster with what <b>{of.name}</b> had at this backup. {of.name} stays as it is. Users keep
      their passwords.
    </p>
    <NotDeclared what="the new cluster" />
  </Change>
);

/** A button that forks the cluster. */
export const Fork = ({ of }: { readonly of: Changed }): JSX.Element => (
  <Change
    name="Fork"
    of={of.name}
    fields={[{ name: "name", label: "Name of the new cluster", value: `${of.name.slice(0, 50)}-fork` }]}
    act={async ({ name }) => created(await send<Created>("POST", at(of, "fork"), { name }))}
  >
    <p>
      This creates another cluster with what <b>{of.name}</b> has now. {of.name} stays as it is.
    </p>
    <NotDeclared what="the new cluster" />
  </Change>
);
