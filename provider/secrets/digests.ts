// Digests of secrets, because their values cannot be read (docs/interface.md#secrets).
import type { AnswerOf, Api } from "../client/api.ts";
import { orUndefined } from "../client/existence.ts";
import type { Facts } from "../core/observations/planFile.ts";
import type { Call, Claims, GivingUp, Observing } from "../core/resource.ts";
import { bareId } from "../../api/names.ts";

/** A secret as the service shows it, without its value. */
export type ShownSecret = AnswerOf<"secrets", "list">["secrets"][number];

/** Whether a secret still has the written value. If the service returns no digest, its presence has to suffice. */
export const isAsWritten = (digest: string | undefined, live: ShownSecret | undefined): boolean =>
  live !== undefined && (!digest || live.digest === undefined || live.digest === digest);

/** The App's secrets by name, never with their values. */
export async function secretsByName(api: Api, appName: string): Promise<ReadonlyMap<string, ShownSecret>> {
  const { secrets } = await api.secrets.list({ appName });
  return new Map(secrets.map((secret) => [secret.name, secret]));
}

/** The claim on a secret's name (R12), with its value if that is known. */
export const secretClaim = (app: string | undefined, name: string | undefined, value: string | undefined): Claims =>
  app === undefined || name === undefined ? {} : { [claimTo(app, name)]: value };

/** The facts about secrets of an App, for plans. */
export async function secretFacts(
  { api, claimed }: Pick<Observing, "api" | "claimed">,
  app: string,
  names: Iterable<string>,
): Promise<Facts> {
  // The same update may create the App.
  const live = (await orUndefined(() => secretsByName(api, app))) ?? new Map<string, never>();
  return Object.fromEntries(
    [...names].map((name) => [factOf(name), claimed(claimTo(app, name), shownDigest(live.get(name)))]),
  );
}

/** The facts about secrets that a state remembers. */
export const rememberedSecrets = (
  digests: Readonly<Record<string, string>>,
  digest: (value: unknown) => string | null,
): Facts => Object.fromEntries(Object.entries(digests).map(([name, written]) => [factOf(name), digest(written)]));

const factOf = (name: string): string => `secret ${name}`;

/** The digest of a secret that exists, which a service may leave out. */
export const shownDigest = (live: ShownSecret | undefined): string | undefined => live && (live.digest ?? "");

export const claimTo = (app: string, name: string): string => `secret ${bareId(app)}/${name}`;

/** A resource's record of its own last write. */
export interface WrittenHere {
  readonly digests: Readonly<Record<string, string | undefined>>;
  /** The values, if they are known here. */
  readonly values: Readonly<Record<string, string | undefined>>;
  /** Whether it wrote values that its state does not have. */
  readonly isWriteOnly?: boolean;
  /** RFC 3339 time of it; absent in states of older versions. */
  readonly updatedAt?: string | undefined;
}

/** Names that a resource releases. */
interface GivenUp {
  readonly app: string;
  readonly names: readonly string[];
  /** The current secrets of the App. */
  readonly live: ReadonlyMap<string, ShownSecret>;
  readonly written: WrittenHere;
}

/**
 * R12: the values to write for names that a resource releases. Null unsets a name. A name is omitted, and stays set, if
 * another resource of the program claims it, or if another client wrote it since. With `--target`, the engine checks only
 * the targets, so that the time of the write decides. The user is warned of each. A claimant whose value this resource
 * overwrote gets it back, because its own state says that it is written.
 */
export function givingUp(
  { app, names, live, written }: GivenUp,
  { warn, otherClaimant }: Pick<Call, "warn"> & GivingUp,
): Readonly<Record<string, string | null>> {
  const writes = names.map((name): readonly [name: string, value: string | null] | undefined => {
    const claimant = otherClaimant(claimTo(app, name));
    const shown = live.get(name);
    const isForeign = shown !== undefined && isWrittenSince(shown, written, name);
    if (claimant === undefined && !isForeign) return [name, null];
    const stays = `${name} of App ${app} stays set: `;
    if (claimant === undefined) {
      warn(
        `${stays}something else has written it since this resource did. If nothing needs it, delete the secret through the service.`,
      );
      return undefined;
    }
    const by = `${JSON.stringify(claimant.name)} of this program sets it`;
    const before = written.values[name];
    const isOurs = !isForeign && (before !== undefined || written.isWriteOnly);
    if (!isOurs || before === claimant.value) {
      warn(`${stays}${by}.`);
      return undefined;
    }
    if (claimant.value !== undefined) {
      warn(`${stays}${by}, and gets its value back.`);
      return [name, claimant.value];
    }
    warn(
      `${stays}${by}. It may still have the value of this resource: pulumi refresh shows that, and up writes it again.`,
    );
    return undefined;
  });
  return Object.fromEntries(writes.filter((write) => write !== undefined));
}

function isWrittenSince({ updatedAt, digest }: ShownSecret, written: WrittenHere, name: string): boolean {
  const before = written.digests[name];
  if (before && digest !== undefined && before !== digest) return true;
  return Date.parse(updatedAt ?? "") > Date.parse(written.updatedAt ?? "");
}

/** The result of a change of several secrets. */
interface Written {
  readonly version: number;
  readonly digests: Record<string, string>;
  /** RFC 3339 time of the change; undefined if nothing was set. */
  readonly updatedAt: string | undefined;
}

/** Sets and unsets (null) in one request. */
export async function writeSecrets(
  api: Api,
  appName: string,
  values: Readonly<Record<string, string | null>>,
): Promise<Written> {
  const { secrets, version } = await api.secrets.update({ appName, body: { values: { ...values } } });
  const shown = secrets ?? (await api.secrets.list({ appName, minVersion: version?.toString() })).secrets;
  const set = shown.filter(({ name }) => typeof values[name] === "string");
  const digests = set.map(({ name, digest }) => [name, digest ?? ""]);
  return {
    version: version ?? 0,
    digests: Object.fromEntries(digests) as Record<string, string>,
    updatedAt: latest(set.map(({ updatedAt }) => updatedAt)),
  };
}

const latest = (times: readonly (string | undefined)[]): string | undefined =>
  times
    .filter((time) => time !== undefined)
    .sort((a, b) => Date.parse(a) - Date.parse(b))
    .at(-1);

/** The warning when names are adopted that another client has set. */
export const takenOver = (appName: string, names: readonly string[]): string =>
  `App ${appName} has ${names.join(", ")} already, with values this program did not write: overwritten. If something else sets them too, each will undo what the other wrote.`;
