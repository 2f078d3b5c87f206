// Organizations and access tokens. Of a token only its hash is kept.
import { hash, timingSafeEqual } from "node:crypto";
import type { OrgRow } from "./rows.ts";
import type { Store } from "./database.ts";

/** Whom a token stands for. */
export interface Bearer {
  /** First characters of the token's hash, as it is listed. */
  readonly id: string;
  readonly org: number;
  readonly slug: string;
  /** Name its leases are held under. */
  readonly owner: string;
  /** The one App it is good for; null for all of the organization. */
  readonly app: string | null;
  readonly readOnly: boolean;
  readonly expiresAt: number | null;
}

/** A token as it is listed. */
export interface ListedToken {
  /** First characters of its hash. */
  readonly id: string;
  readonly name: string | null;
  readonly org: string;
  readonly app: string | null;
  readonly read_only: number;
  readonly created_at: number;
  readonly expires_at: number | null;
}

/** What a token may do, and for how long. */
export interface Grant {
  readonly slug: string;
  readonly name?: string | undefined;
  readonly app?: string | undefined;
  readonly readOnly?: boolean | undefined;
  readonly expiresAt: number | null;
}

/** The longest time a token that ends is good for, in milliseconds: a hundred years, as `876000h`. */
export const longestExpiryMs = 876_000 * 3600_000;

type Access = Pick<Store, "get" | "all" | "insert" | "run">;

const hashOf = (token: string): string => hash("sha256", token);
const idLength = 12;

/** The organization of a slug, if there is one. */
export const findOrg = (store: Pick<Access, "get">, slug: string): OrgRow | undefined =>
  store.get<OrgRow>("SELECT * FROM orgs WHERE slug = ?", slug);

/** The organization of a slug, made when there is none. */
export function ensureOrg(store: Pick<Access, "get" | "insert">, slug: string, name?: string): OrgRow {
  const found = findOrg(store, slug);
  if (found) return found;
  store.insert("orgs", { slug, name: name ?? (slug === "personal" ? "Personal" : slug) });
  const created = findOrg(store, slug);
  if (!created) throw new Error("an organization that was just made is not there");
  return created;
}

/** Lets a token act for an organization, or for one App of it. Gives the id it is listed under. */
export function addToken(store: Pick<Access, "get" | "insert">, token: string, grant: Grant, now: number): string {
  const { slug, name, app, readOnly, expiresAt } = grant;
  const hashed = hashOf(token);
  const id = hashed.slice(0, idLength);
  store.insert("tokens", {
    hash: hashed,
    org: ensureOrg(store, slug).id,
    // ASSUMED: the owner of a lease is a name made from the token, as the platform does for tokens
    // (docs/interface.md#leases).
    owner: `${id}@tokens.${slug}`,
    created_at: now,
    expires_at: expiresAt,
    name: name ?? null,
    app: app ?? null,
    read_only: readOnly ? 1 : 0,
  });
  return id;
}

/** Every token that has not expired, oldest first. */
export const listTokens = (store: Pick<Access, "all">, now: number): ListedToken[] =>
  store.all<ListedToken>(
    `SELECT substr(t.hash, 1, ${idLength}) AS id, t.name, o.slug AS org, a.name AS app, t.read_only, t.created_at, t.expires_at
     FROM tokens t JOIN orgs o ON o.id = t.org LEFT JOIN apps a ON a.id = t.app
     WHERE (t.expires_at IS NULL OR t.expires_at > ?) AND (t.app IS NULL OR a.deleting < 2) ORDER BY t.created_at, id`,
    now,
  );

/** Takes tokens back by id; how many there were. */
export function revokeTokens(store: Pick<Access, "all" | "run">, id: string): number {
  const found = store.all<{ hash: string }>(`SELECT hash FROM tokens WHERE substr(hash, 1, ${idLength}) = ?`, id);
  for (const { hash: hashed } of found) store.run("DELETE FROM tokens WHERE hash = ?", hashed);
  return found.length;
}

interface TokenRow extends Omit<Bearer, "id" | "readOnly"> {
  readonly hash: string;
  readonly read_only: number;
}

// Another process may revoke a token beside the service: what is remembered is looked up again this often.
const rememberedMs = 1000;

/** Finds out whom a token stands for. Known ones are remembered for a moment: every request asks. */
export class Tokens {
  readonly #store: Store;
  readonly #known = new Map<string, { readonly bearer: Bearer; readonly at: number }>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** The bearer of a token, unless it is unknown or has expired. */
  find(token: string, now: number): Bearer | undefined {
    // By the token itself: to hash it for every request would take longer than to find its App.
    const known = this.#known.get(token);
    let bearer = known && now - known.at < rememberedMs && now >= known.at ? known.bearer : undefined;
    if (!bearer) {
      this.#known.delete(token);
      bearer = this.#look(hashOf(token));
      if (!bearer) return undefined;
      if (this.#known.size >= 1000) this.#known.clear();
      this.#known.set(token, { bearer, at: now });
    }
    return bearer.expiresAt === null || bearer.expiresAt > now ? bearer : undefined;
  }

  #look(hashed: string): Bearer | undefined {
    // Found by its hash, which tells nothing of the token by the time it takes; compared in constant time all the same.
    const row = this.#store.get<TokenRow>(
      `SELECT t.hash, t.org, o.slug, t.owner, t.app, t.read_only, t.expires_at AS expiresAt
       FROM tokens t JOIN orgs o ON o.id = t.org LEFT JOIN apps a ON a.id = t.app
       WHERE t.hash = ? AND (t.app IS NULL OR a.deleting < 2)`,
      hashed,
    );
    if (!row || !timingSafeEqual(Buffer.from(row.hash), Buffer.from(hashed))) return undefined;
    const { org, slug, owner, app, read_only, expiresAt } = row;
    return { id: row.hash.slice(0, idLength), org, slug, owner, app, readOnly: read_only === 1, expiresAt };
  }
}
