// Secrets of an App (docs/interface.md#secrets). Setting one restarts nothing: a Machine gets it with its next update.
import type { contract } from "../../api/index.ts";
import { rfc3339 } from "../time/clock.ts";
import { refuse } from "../refusal.ts";
import type { AppRow, SecretRow } from "../store/rows.ts";
import { releaseVersion, sealedName } from "../store/secretValues.ts";
import { sealedMore } from "../crypto/sealed.ts";
import { touch, type Context } from "../context.ts";
import { appOf, openAppOf } from "./find.ts";
import type { Caller, Input, Rules } from "./rule.ts";
import { requireRole } from "./roles.ts";

type Group = typeof contract.secrets;

const missing = () => refuse(404, "secret not found");

/** Increments the version of an App's secrets, which every write returns. */
export function nextVersion(context: Context, app: AppRow): { version: number; Version: number } {
  const { secrets_version: version = 0 } =
    context.store.change<Pick<AppRow, "secrets_version">>(
      "UPDATE apps SET secrets_version = secrets_version + 1 WHERE id = ? RETURNING secrets_version",
      app.id,
    ) ?? {};
  touch(context, app.id);
  releaseVersion(context.store, app.id, version - 1);
  return { version, Version: version };
}

const find = (context: Context, app: AppRow, name: string): SecretRow | undefined =>
  context.store.get<SecretRow>("SELECT * FROM secrets WHERE app = ? AND name = ?", app.id, name);

type Listed = Omit<SecretRow, "value"> & Partial<Pick<SecretRow, "value">>;

/** All secrets of an App; values are only read if they are shown. */
const all = (context: Context, app: AppRow, withValues = false): Listed[] =>
  context.store.all<Listed>(
    `SELECT app, name, digest, created_at, updated_at${withValues ? ", value" : ""} FROM secrets WHERE app = ? ORDER BY name`,
    app.id,
  );

function shown(context: Context, row: Listed, withValue = false) {
  const { app, name, value, digest, created_at, updated_at } = row;
  return {
    ...{ name, digest },
    created_at: rfc3339(created_at),
    updated_at: rfc3339(updated_at),
    ...(withValue && value ? { value: context.vault.open(sealedName(app, name), value).toString() } : {}),
  };
}

/**
 * ASSUMED: only the role `own` can read secret values. The roles `operate` and `deploy` can still run commands in Machines, which have
 * the values; only the role `read` cannot obtain them.
 */
function requireSight(caller: Caller, asked: boolean | undefined): boolean {
  if (asked) requireRole(caller, "own");
  return asked === true;
}

// ASSUMED: an App has at most 500 secrets, with values of up to 65,536 characters, like all texts, because every Machine gets all of
// them.
const mostSecrets = 500;
// ASSUMED: all values of an App together may have 2 MiB, the limit of a process environment on Linux.
const mostBytes = 2 * 2 ** 20;

/** Refuses a change beyond the limits before sealing any value. Secrets beyond a newer limit may stay and shrink. */
function requireFitting(context: Context, app: AppRow, values: Readonly<Record<string, string | null>>): void {
  const sizes = new Map(
    context.store
      .all<{
        name: string;
        bytes: number;
      }>(`SELECT name, length(value) - ${sealedMore} AS bytes FROM secrets WHERE app = ?`, app.id)
      .map(({ name, bytes }) => [name, bytes]),
  );
  const bytesOf = (): number => [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
  const before = { count: sizes.size, bytes: bytesOf() };
  for (const [name, value] of Object.entries(values)) {
    if (value === null) sizes.delete(name);
    else sizes.set(name, Buffer.byteLength(value));
  }
  if (sizes.size > Math.max(mostSecrets, before.count))
    throw refuse(400, `invalid values, got ${sizes.size} secrets in all, an app has at most ${mostSecrets}`);
  if (bytesOf() > Math.max(mostBytes, before.bytes))
    throw refuse(400, `invalid values, got ${bytesOf()} bytes in all the app's secrets, must be at most ${mostBytes}`);
}

function write(context: Context, app: AppRow, name: string, value: string): SecretRow {
  const before = find(context, app, name);
  const now = context.clock.now();
  const row: SecretRow = {
    app: app.id,
    name,
    value: context.vault.seal(sealedName(app.id, name), value),
    digest: context.vault.digest(sealedName(app.id, name), value),
    created_at: before?.created_at ?? now,
    updated_at: now,
  };
  remove(context, app, name);
  context.store.insert("secrets", row);
  return row;
}

const remove = (context: Context, app: AppRow, name: string): void =>
  context.store.run("DELETE FROM secrets WHERE app = ? AND name = ?", app.id, name);

/**
 * The rules of the secret operations. `min_version` is always reached: there is one store (docs/interface.md#secrets).
 */
export const secrets: Rules<Group> = {
  list(input) {
    const { context, query } = input;
    const app = appOf(input);
    const values = requireSight(input.caller, query.show_secrets);
    return { secrets: all(context, app, values).map((row) => shown(context, row, values)) };
  },

  update(input) {
    const { context, body } = input;
    const app = openAppOf(input);
    requireFitting(context, app, body.values);
    for (const [name, value] of Object.entries(body.values)) {
      // ASSUMED: unsetting a missing secret changes nothing.
      if (value === null) remove(context, app, name);
      else write(context, app, name, value);
    }
    const version = nextVersion(context, app);
    return { secrets: all(context, app).map((row) => shown(context, row)), ...version };
  },

  get(input) {
    const { context, params, query } = input;
    const row = find(context, appOf(input), params.secret_name);
    if (!row) throw missing();
    return shown(context, row, requireSight(input.caller, query.show_secrets));
  },

  set(input: Input<Group["set"]>) {
    const { context, params, body } = input;
    const app = openAppOf(input);
    requireFitting(context, app, { [params.secret_name]: body.value });
    const row = write(context, app, params.secret_name, body.value);
    return { ...shown(context, row), ...nextVersion(context, app) };
  },

  delete(input) {
    const { context, params } = input;
    const app = appOf(input);
    if (!find(context, app, params.secret_name)) throw missing();
    remove(context, app, params.secret_name);
    return nextVersion(context, app);
  },
};
