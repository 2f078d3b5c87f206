// The token that the first start creates: only the user can read its file, and only the file has it in plain text.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Ids } from "../ids.ts";
import type { Store } from "./database.ts";
import { keepPrivate, writePrivately } from "./privateFile.ts";
import { addToken, findOrg, Tokens } from "./tokens.ts";

/** Path of the token of organization `personal`. */
export const tokenFile = (folder: string): string => join(folder, "token");

/**
 * The token of organization `personal`; created at the first start, or when the file is missing or its token was revoked. Members of
 * one service have the same file, so a revoked one is not replaced there (`isShared`).
 */
export function firstToken(
  store: Store,
  folder: string | undefined,
  { ids, now, isShared }: { readonly ids: Ids; readonly now: number; readonly isShared: boolean },
): string {
  const grant = { slug: "personal", name: "first", expiresAt: null };
  if (folder !== undefined && existsSync(tokenFile(folder))) {
    keepPrivate(tokenFile(folder));
    const token = readFileSync(tokenFile(folder), "utf8").trim();
    if (token !== "" && new Tokens(store).find(token, now)) return token;
    if (isShared) {
      if (!findOrg(store, "personal")) store.writeAtOnce(() => addToken(store, token, grant, now));
      return token;
    }
  }
  const token = ids.accessToken();
  store.writeAtOnce(() => addToken(store, token, grant, now));
  if (folder !== undefined) writePrivately(tokenFile(folder), `${token}\n`);
  return token;
}
