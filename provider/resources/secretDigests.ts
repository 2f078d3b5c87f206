// What is known of secrets whose values no read can find: their digests (spec 4.5, bodies 8).
import type { AnswerOf, Api } from "../client/api.ts";
import type { Call } from "../core/resource.ts";

/** A secret as the service shows it, without its value. */
export type ShownSecret = AnswerOf<"secrets", "list">["secrets"][number];

/** Whether a secret still has the value that was written. Where the service tells no digest, its presence has to do. */
export const isAsWritten = (digest: string | undefined, live: ShownSecret | undefined): boolean =>
  live !== undefined && (!digest || live.digest === undefined || live.digest === digest);

/** The App's secrets by name, never with their values. */
export async function secretsByName(api: Api, appName: string): Promise<ReadonlyMap<string, ShownSecret>> {
  const { secrets } = await api.secrets.list({ appName });
  return new Map(secrets.map((secret) => [secret.name, secret]));
}

/**
 * Does something to names once all else that this process does to them is done. `work` gets the versions it gave them, by
 * name, and leaves them as they are then. The engine makes what is new before it deletes what is old, also where both are
 * of one name: only the versions tell which of them has set it.
 */
export function inTurn<T>(
  { shared }: Api,
  appName: string,
  names: readonly string[],
  work: (versions: Map<string, number>) => Promise<T>,
): Promise<T> {
  const { secretsWritten } = shared;
  const keys = names.map((name) => `${appName}/${name}`);
  const known = Promise.all(
    names.map(async (name, i) => [name, (await secretsWritten.get(keys[i] ?? "")) ?? 0] as const),
  );
  const versions = known.then((all) => new Map(all));
  const done = versions.then(work);
  const settled = done.then(
    () => versions,
    () => versions,
  );
  for (const [i, key] of keys.entries())
    secretsWritten.set(
      key,
      settled.then((after) => after.get(names[i] ?? "") ?? 0),
    );
  return done;
}

/** What the user is told when names stay set that a resource set before. */
export const keptFor = (appName: string, names: readonly string[]): string =>
  `${names.join(", ")} of App ${appName} stays set: another resource has set it in this run.`;

/** Secrets to set, and those to unset unless something else has set them after a version. */
interface Writing {
  readonly set?: Readonly<Record<string, string>>;
  readonly unset?: readonly string[];
  readonly since: number;
}

/** Sets and unsets in one request; answers the version that made and the digests of what was set. */
export function writeSecrets(
  { api, warn }: Pick<Call, "api" | "warn">,
  appName: string,
  { set = {}, unset = [], since }: Writing,
): Promise<Written> {
  return inTurn(api, appName, [...Object.keys(set), ...unset], async (versions) => {
    const kept = unset.filter((name) => (versions.get(name) ?? 0) > since);
    if (kept.length > 0) warn(keptFor(appName, kept));
    const gone = unset.filter((name) => !kept.includes(name));
    if (kept.length > 0 && gone.length === 0 && Object.keys(set).length === 0) return { version: since, digests: {} };
    const written = await send(api, appName, { ...set, ...Object.fromEntries(gone.map((name) => [name, null])) });
    for (const name of Object.keys(set)) versions.set(name, written.version);
    for (const name of gone) versions.set(name, 0);
    return written;
  });
}

interface Written {
  readonly version: number;
  readonly digests: Record<string, string>;
}

async function send(api: Api, appName: string, values: Readonly<Record<string, string | null>>): Promise<Written> {
  const { secrets, version } = await api.secrets.update({ appName, body: { values: { ...values } } });
  const shown = secrets ?? (await api.secrets.list({ appName, minVersion: version?.toString() })).secrets;
  const digests = shown
    .filter(({ name }) => typeof values[name] === "string")
    .map(({ name, digest }) => [name, digest ?? ""]);
  return { version: version ?? 0, digests: Object.fromEntries(digests) as Record<string, string> };
}

/** What the user is told when names are taken over that something else has set. */
export const takenOver = (appName: string, names: readonly string[]): string =>
  `App ${appName} has ${names.join(", ")} already, with values this program did not write: overwritten. If something else sets them too, each will undo what the other wrote.`;
