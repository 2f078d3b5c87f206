// The token that the first start creates: only the user can read its file, and only the file has it in plain text.
import { hkdfSync } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { tokenOf, type Ids } from "../ids.ts";
import type { Store } from "./database.ts";
import { readKey } from "./keyFile.ts";
import { keepPrivate, readIfThere, writePrivately } from "./privateFile.ts";
import { addToken, findOrg, hashOf, Tokens } from "./tokens.ts";
import { keyFile } from "./vault.ts";

/** Path of the token of organization `personal`. */
export const tokenFile = (folder: string): string => join(folder, "token");

const firstName = "first";

/** The key of a folder; undefined if it has none. */
function keyIn(folder: string): Uint8Array | undefined {
  const file = keyFile(folder);
  return existsSync(file) ? readKey(file) : undefined;
}

/**
 * A first token that members of one service create. It follows from their key and the moment, so every member can write it into its folder,
 * also one that does not run now: the store has only hashes of tokens.
 */
export function sharedToken(folder: string, createdAt: number): string {
  const key = keyIn(folder);
  if (key === undefined) throw new Error(`${keyFile(folder)} has no key`);
  return tokenFrom(key, createdAt);
}

const tokenFrom = (key: Uint8Array, createdAt: number): string =>
  tokenOf(new Uint8Array(hkdfSync("sha256", key, "", `machines first token ${createdAt}`, 32)));

/** The newest token of {@link sharedToken} that was not replaced. */
function newestShared(store: Pick<Store, "all">, folder: string): string | undefined {
  const key = keyIn(folder);
  if (key === undefined) return undefined;
  const rows = store.all<{ hash: string; created_at: number }>(
    "SELECT hash, created_at FROM tokens WHERE name = ? AND expires_at IS NULL ORDER BY created_at DESC",
    firstName,
  );
  for (const { hash, created_at } of rows) {
    const token = tokenFrom(key, created_at);
    if (hashOf(token) === hash) return token;
  }
  return undefined;
}

/** The first token now: that of the file, unless another member has replaced it. */
export function currentToken(store: Pick<Store, "get" | "all">, folder: string): string {
  const kept = readIfThere(tokenFile(folder)) ?? "";
  const row = store.get<{ expires_at: number | null }>("SELECT expires_at FROM tokens WHERE hash = ?", hashOf(kept));
  return row?.expires_at === null ? kept : (newestShared(store, folder) ?? kept);
}

/** Writes the first token into the folder of a member, if another member has replaced it. */
export function keepToken(store: Pick<Store, "get" | "all">, folder: string): void {
  const token = currentToken(store, folder);
  if (token !== readIfThere(tokenFile(folder))) writePrivately(tokenFile(folder), `${token}\n`);
}

/**
 * The token of organization `personal`; created at the first start, or when the file is missing or its token was revoked. For members of
 * one service (`isShared`) it is one that all of them can write into their folders.
 */
export function firstToken(
  store: Store,
  folder: string | undefined,
  { ids, now, isShared }: { readonly ids: Ids; readonly now: number; readonly isShared: boolean },
): string {
  const grant = { slug: "personal", name: firstName, expiresAt: null };
  if (folder !== undefined && existsSync(tokenFile(folder))) {
    keepPrivate(tokenFile(folder));
    keepToken(store, folder);
    const token = readIfThere(tokenFile(folder)) ?? "";
    if (token !== "" && new Tokens(store).find(token, now)) return token;
    // The first member has made the file before it had a store.
    if (isShared && !findOrg(store, "personal")) {
      store.writeAtOnce(() => addToken(store, token, grant, now));
      return token;
    }
  }
  const token = isShared && folder !== undefined ? sharedToken(folder, now) : ids.accessToken();
  store.writeAtOnce(() => addToken(store, token, grant, now));
  if (folder !== undefined) writePrivately(tokenFile(folder), `${token}\n`);
  return token;
}
