// What identifies the data of several members, apart from their log: every member needs it before it leads.
import type { Log } from "./log.ts";

/** The identity of the data. */
export interface Identity {
  /** By which a runtime recognizes what it started for these data: 16 hexadecimal digits. */
  readonly dataId: string;
  /** The first token of organization `personal`. */
  readonly token: string;
  /** The local certificate authority in PEM: its certificate and its private key. */
  readonly authority: { readonly certificate: string; readonly key: string };
}

const read = (bytes: Uint8Array): Identity => JSON.parse(Buffer.from(bytes).toString()) as Identity;

/** The stored identity; otherwise the one that `create` makes, unless another member was faster. */
export async function identityOf(
  log: Pick<Log, "identity" | "addIdentity">,
  create: () => Promise<Identity>,
): Promise<Identity> {
  const found = await log.identity();
  return read(found ?? (await log.addIdentity(Buffer.from(JSON.stringify(await create())))));
}
