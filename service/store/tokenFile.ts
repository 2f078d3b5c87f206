// The token that the first start creates: only the user can read its file, and only the file has it in plain text.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Ids } from "../ids.ts";
import type { Store } from "./database.ts";
import { keepPrivate, writePrivately } from "./privateFile.ts";
import { addToken, Tokens } from "./tokens.ts";

/** Path of the token of organization `personal`. */
export const tokenFile = (folder: string): string => join(folder, "token");

/** The token of organization `personal`; created at the first start, or when the file is missing. */
export function firstToken(store: Store, folder: string | undefined, ids: Ids, now: number): string {
  if (folder !== undefined && existsSync(tokenFile(folder))) {
    keepPrivate(tokenFile(folder));
    const token = readFileSync(tokenFile(folder), "utf8").trim();
    if (token !== "" && new Tokens(store).find(token, now)) return token;
  }
  const token = ids.accessToken();
  store.writeAtOnce(() => addToken(store, token, { slug: "personal", name: "first", expiresAt: null }, now));
  if (folder !== undefined) writePrivately(tokenFile(folder), `${token}\n`);
  return token;
}
