// Organizations and access tokens. The store has only the hash of a token.
import { hash } from "node:crypto";
import { isSame } from "../crypto/isSame.ts";
import type { OrgRow } from "./rows.ts";
import type { Store } from "./database.ts";

/** The owner and scope of a token. */
export interface Bearer {
  /** First characters of the token's hash, as it is listed. */
  readonly id: string;
  /** Name that it was given; null without one. */
  readonly name: string | null;
  readonly org: number;
  readonly slug: string;
  /** Owner of its leases. */
  readonly owner: string;
  /** The App that it is restricted to; null for the whole organization. */
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

/** The scope and expiry of a new token. */
export interface Grant {
  readonly slug: string;
  readonly name?: string | undefined;
  readonly app?: string | undefined;
  readonly readOnly?: boolean | undefined;
  readonly expiresAt: number | null;
}

/** The longest expiry of a token in milliseconds: a hundred years, as `876000h`. */
export const longestExpiryMs = 876_000 * 3600_000;

type Access = Pick<Store, "get" | "all" | "insert" | "run">;

const hashOf = (token: string): string => hash("sha256", token);
const idLength = 12;

/** The organization of a slug, if there is one. */
export const findOrg = (store: Pick<Access, "get">, slug: string): OrgRow | undefined =>
  store.get<OrgRow>("SELECT * FROM orgs WHERE slug = ?", slug);

/** The organization of a slug, created if needed. */
export function ensureOrg(store: Pick<Access, "get" | "insert">, slug: string, name?: string): OrgRow {
  const found = findOrg(store, slug);
  if (found) return found;
  store.insert("orgs", { slug, name: name ?? (slug === "personal" ? "Personal" : slug) });
  const created = findOrg(store, slug);
  if (!created) throw new Error("an organization that was just created is missing");
  return created;
}

/** Adds a token for an organization, or for one App of it. Returns its id. */
export function addToken(store: Pick<Access, "get" | "insert">, token: string, grant: Grant, now: number): string {
  const { slug, name, app, readOnly, expiresAt } = grant;
  const hashed = hashOf(token);
  const id = hashed.slice(0, idLength);
  store.insert("tokens", {
    hash: hashed,
    org: ensureOrg(store, slug).id,
    // ASSUMED: the owner of a lease is a name derived from the token, as on the platform
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

/** Whether a token may do what concerns all organizations, such as reading metrics. */
export const isOperator = ({ slug, app }: Pick<Bearer, "slug" | "app">): boolean => slug === "personal" && app === null;

/** Every token that has not expired, oldest first. */
export const listTokens = (store: Pick<Access, "all">, now: number): ListedToken[] =>
  store.all<ListedToken>(
    `SELECT substr(t.hash, 1, ${idLength}) AS id, t.name, o.slug AS org, a.name AS app, t.read_only, t.created_at, t.expires_at
     FROM tokens t JOIN orgs o ON o.id = t.org LEFT JOIN apps a ON a.id = t.app
     WHERE (t.expires_at IS NULL OR t.expires_at > ?) AND (t.app IS NULL OR a.deleting < 2) ORDER BY t.created_at, id`,
    now,
  );

/** Revokes tokens by id and returns their number. */
export function revokeTokens(store: Pick<Access, "all" | "run">, id: string): number {
  const found = store.all<{ hash: string }>(`SELECT hash FROM tokens WHERE substr(hash, 1, ${idLength}) = ?`, id);
  for (const { hash: hashed } of found) store.run("DELETE FROM tokens WHERE hash = ?", hashed);
  return found.length;
}

interface TokenRow extends Omit<Bearer, "id" | "readOnly"> {
  readonly hash: string;
  readonly read_only: number;
}

// Another process may revoke a token, so a cached token is looked up again this often.
const rememberedMs = 1000;

interface Known {
  readonly bearer: Bearer;
  readonly at: number;
}

/** Looks up tokens. Known ones are cached for a moment, because every request needs its token. */
export class Tokens {
  readonly #store: Pick<Store, "get">;
  readonly #known = new Map<string, Known>();
  /** By id: apart from the others, because an id is no secret. */
  readonly #knownById = new Map<string, Known>();

  constructor(store: Pick<Store, "get">) {
    this.#store = store;
  }

  /** The bearer of a token, unless it is unknown or has expired. */
  find(token: string, now: number): Bearer | undefined {
    // The key is the token itself: hashing it for every request would take longer than finding its App.
    return this.#cached(this.#known, token, now, () => this.#look(hashOf(token)));
  }

  /** The bearer of the token with an id, unless there is none or it has expired. */
  findById(id: string, now: number): Bearer | undefined {
    return this.#cached(this.#knownById, id, now, () => {
      const found = this.#store.get<{ hash: string }>(
        "SELECT hash FROM tokens WHERE hash >= ? AND hash < ?",
        id,
        `${id}g`,
      );
      return found && this.#look(found.hash);
    });
  }

  #cached(all: Map<string, Known>, key: string, now: number, look: () => Bearer | undefined): Bearer | undefined {
    const known = all.get(key);
    let bearer = known && now - known.at < rememberedMs && now >= known.at ? known.bearer : undefined;
    if (!bearer) {
      all.delete(key);
      bearer = look();
      if (!bearer) return undefined;
      if (all.size >= 1000) all.clear();
      all.set(key, { bearer, at: now });
    }
    return bearer.expiresAt === null || bearer.expiresAt > now ? bearer : undefined;
  }

  #look(hashed: string): Bearer | undefined {
    // The lookup by hash leaks nothing about the token through its duration. The comparison takes constant time as well.
    const row = this.#store.get<TokenRow>(
      `SELECT t.hash, t.name, t.org, o.slug, t.owner, t.app, t.read_only, t.expires_at AS expiresAt
       FROM tokens t JOIN orgs o ON o.id = t.org LEFT JOIN apps a ON a.id = t.app
       WHERE t.hash = ? AND (t.app IS NULL OR a.deleting < 2)`,
      hashed,
    );
    if (!row || !isSame(row.hash, hashed)) return undefined;
    const { name, org, slug, owner, app, read_only, expiresAt } = row;
    return { id: row.hash.slice(0, idLength), name, org, slug, owner, app, readOnly: read_only === 1, expiresAt };
  }
}
