// Changes of the built code of a service while it is loaded (plant.mjs): bugs that the checker must find.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { serviceMain } from "../../support/built.ts";

/** A change of the built code: a text that occurs in it, and its replacement. */
export interface Change {
  readonly find: string;
  readonly replace: string;
}

const built = dirname(serviceMain);

/** Throws for a change that no longer fits the code, because it would test nothing. */
function requireFitting({ find }: Change): void {
  const files = readdirSync(built, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".js"));
  if (!files.some((file) => readFileSync(join(built, file), "utf8").includes(find)))
    throw new Error(`the built service does not contain ${find}`);
}

/** The environment of a process whose code is changed while it is loaded. */
export function plantedIn(changes: readonly Change[]): NodeJS.ProcessEnv {
  if (changes.length === 0) return {};
  for (const change of changes) requireFitting(change);
  return {
    NODE_OPTIONS: `--import=${pathToFileURL(join(__dirname, "plant.mjs")).href}`,
    MACHINES_CHANGED_CODE: JSON.stringify({ folder: pathToFileURL(built).href, changes }),
  };
}

/** Changes stay longer in an open transaction, so that a kill hits them more often. This breaks no promise. */
export const slowCommits: readonly Change[] = [{ find: "setImmediate(close);", replace: "setTimeout(close, 20);" }];

/** A bug that breaks a promise of the service. */
export interface Bug {
  readonly name: string;
  /** The object whose answers show it; any of them if omitted. */
  readonly object?: string;
  readonly changes: readonly Change[];
}

/** The bugs, each of which the checker must find. */
export const bugs: readonly Bug[] = [
  {
    name: "an update ignores current_version",
    object: "machine",
    changes: [{ find: "body.current_version !== void 0 && body.current_version !== old.version", replace: "false" }],
  },
  {
    name: "an answer is sent before its change is durable",
    changes: [
      { find: "return group.committed.then(() => result);", replace: "return Promise.resolve(result);" },
      ...slowCommits,
    ],
  },
  {
    name: "a change of metadata ignores machine_version",
    object: "machine",
    changes: [
      { find: "body.machine_version !== void 0 && body.machine_version !== machine.version", replace: "false" },
    ],
  },
  {
    name: "the cached answer for a Machine outlives a change",
    object: "machine",
    changes: [{ find: "context.machineTexts.forget(id);", replace: "" }],
  },
  {
    name: "a lease is granted while another client holds it",
    object: "machine",
    changes: [{ find: "if (lease && lease.nonce !== nonce) throw new", replace: "if (false) throw new" }],
  },
  {
    name: "an update accepts the nonce of an older lease",
    object: "machine",
    changes: [
      {
        find: "if (lease && lease.nonce !== nonce) throw require_",
        replace: "if (lease && nonce === void 0) throw require_",
      },
    ],
  },
  {
    name: "a restart loses the leases",
    object: "machine",
    changes: [{ find: "PRAGMA foreign_keys = ON", replace: "DELETE FROM leases; PRAGMA foreign_keys = ON" }],
  },
  {
    name: "unsetting a secret keeps the version",
    object: "secrets",
    changes: [
      {
        find: "params.secret_name);\n\t\treturn nextVersion(context, app);",
        replace: "params.secret_name);\n\t\treturn { version: app.secrets_version, Version: app.secrets_version };",
      },
    ],
  },
  {
    name: "two Machines of an App have the same name",
    object: "name machine",
    changes: [
      { find: "if (other) throw", replace: "if (false) throw" },
      { find: "UNIQUE INDEX machines_name", replace: "INDEX machines_name" },
    ],
  },
  {
    name: "two Machines have the same volume",
    object: "volume",
    changes: [{ find: "volume.machine !== null && volume.machine !== machine?.id", replace: "false" }],
  },
  {
    name: "a region takes one Machine more than it has room for",
    object: "capacity",
    changes: [{ find: "region.capacity.total - used", replace: "region.capacity.total + 1 - used" }],
  },
];

/** Bugs of members, each of which the checker must find. */
export const bugsOfMembers: readonly Bug[] = [
  {
    name: "a leader answers reads although its lease has ended",
    changes: [{ find: "return this.mayAnswer ? void 0 :", replace: "return true ? void 0 :" }],
  },
  {
    name: "a leader answers before the log has the entry",
    changes: [
      { find: "const logged = this.#log?.committed();", replace: "const logged = void this.#log?.committed();" },
    ],
  },
];
