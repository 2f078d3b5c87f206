// Changes of the built code of a service while it is loaded (plant.mjs): bugs that the checker must find.

/** A change of a file. */
export interface Change {
  /** End of the file's path. */
  readonly file: string;
  /** A text of the file, and its replacement. */
  readonly find: string;
  readonly replace: string;
}

/** Changes stay longer in an open transaction, so that a kill hits them more often. This breaks no promise. */
export const slowCommits: readonly Change[] = [
  { file: "/service/store/database.js", find: "setImmediate(close);", replace: "setTimeout(close, 20);" },
];

/** A bug that breaks a promise of the service. */
export interface Bug {
  readonly name: string;
  /** The object whose answers show it; any of them if omitted. */
  readonly object?: string;
  readonly changes: readonly Change[];
}

const inRules = (file: string, find: string, replace: string): Change => ({
  file: `/service/rules/${file}.js`,
  find,
  replace,
});

/** The bugs, each of which the checker must find. */
export const bugs: readonly Bug[] = [
  {
    name: "an update ignores current_version",
    object: "machine",
    changes: [
      inRules("machines", "body.current_version !== undefined && body.current_version !== old.version", "false"),
    ],
  },
  {
    name: "an answer is sent before its change is durable",
    changes: [
      {
        file: "/service/store/database.js",
        find: "return group.committed.then(() => result);",
        replace: "return Promise.resolve(result);",
      },
      ...slowCommits,
    ],
  },
  {
    name: "a change of metadata ignores machine_version",
    object: "machine",
    changes: [
      inRules("metadata", "body.machine_version !== undefined && body.machine_version !== machine.version", "false"),
    ],
  },
  {
    name: "the cached answer for a Machine outlives a change",
    object: "machine",
    changes: [{ file: "/service/context.js", find: "context.machineTexts.forget(id);", replace: "" }],
  },
  {
    name: "a lease is granted while another client holds it",
    object: "machine",
    changes: [
      inRules(
        "leases",
        "if (lease && lease.nonce !== nonce)\n            throw new",
        "if (false)\n            throw new",
      ),
    ],
  },
  {
    name: "an update accepts the nonce of an older lease",
    object: "machine",
    changes: [
      inRules(
        "leases",
        "if (lease && lease.nonce !== nonce)\n        throw (0,",
        "if (lease && nonce === undefined)\n        throw (0,",
      ),
    ],
  },
  {
    name: "a restart loses the leases",
    object: "machine",
    changes: [
      {
        file: "/service/store/database.js",
        find: "PRAGMA foreign_keys = ON",
        replace: "DELETE FROM leases; PRAGMA foreign_keys = ON",
      },
    ],
  },
  {
    name: "unsetting a secret keeps the version",
    object: "secrets",
    changes: [
      inRules(
        "secrets",
        "remove(context, app, params.secret_name);\n        return nextVersion(context, app);",
        "remove(context, app, params.secret_name);\n        return { version: app.secrets_version, Version: app.secrets_version };",
      ),
    ],
  },
  {
    name: "two Machines of an App have the same name",
    object: "name machine",
    changes: [
      inRules("machines", "if (other)\n", "if (false)\n"),
      { file: "/service/store/schema.js", find: "UNIQUE INDEX machines_name", replace: "INDEX machines_name" },
    ],
  },
  {
    name: "two Machines have the same volume",
    object: "volume",
    changes: [inRules("placement", "volume.machine !== null && volume.machine !== machine?.id", "false")],
  },
  {
    name: "a region takes one Machine more than it has room for",
    object: "capacity",
    changes: [inRules("capacity", "region.capacity.total - used", "region.capacity.total + 1 - used")],
  },
];
