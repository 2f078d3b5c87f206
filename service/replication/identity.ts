// What identifies the data of several members, apart from their log: every member needs it before it leads.
import type { Log } from "./log.ts";

/** The identity of the data. */
export interface Identity {
  /** Contents of the files that the data folder of each member has, by name: keys, tokens and the like. */
  readonly files: Readonly<Record<string, string>>;
  /** The folder that the data were moved to; undefined while they are here. */
  readonly movedTo?: string;
}

/** The bytes that the log keeps. */
export const identityBytes = (identity: Identity): Uint8Array => Buffer.from(JSON.stringify(identity));

/** The stored identity; undefined if there is none. */
export async function storedIdentity(log: Pick<Log, "identity">): Promise<Identity | undefined> {
  const found = await log.identity();
  return found && (JSON.parse(Buffer.from(found).toString()) as Identity);
}

/**
 * The stored identity; otherwise the one that `create` makes, unless another member was faster. It is stored again: a database that fails
 * over may forget what it shows.
 */
export async function identityOf(
  log: Pick<Log, "identity" | "addIdentity">,
  create: () => Promise<Identity>,
): Promise<Identity> {
  const stored = await log.addIdentity((await log.identity()) ?? identityBytes(await create()));
  return JSON.parse(Buffer.from(stored).toString()) as Identity;
}
