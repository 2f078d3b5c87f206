// What is known of secrets whose values no read can find: their digests (spec 4.5, bodies 8).
import type { AnswerOf, Api } from "../client/api.ts";

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

/** Sets and unsets in one request; answers the version that made and the digests of what was set. */
export async function writeSecrets(
  api: Api,
  appName: string,
  values: Readonly<Record<string, string | null>>,
): Promise<{ version: number; digests: Record<string, string> }> {
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
