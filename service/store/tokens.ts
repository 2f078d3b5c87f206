// Organizations and access tokens. The store has only the hash of a token.
import { hash } from "node:crypto";
import { isSame } from "../crypto/isSame.ts";
import type { AppRow, OrgRow } from "./rows.ts";
import type { Store } from "./database.ts";
import { proxyRole, type TokenRole } from "./roles.ts";

/** What of its organization a token is for. Without Apps and without a network, it is for all of it. */
export interface Scope {
  /** Ids of the only Apps, those of the network included; null for all. */
  readonly apps: ReadonlySet<string> | null;
  /** The only network, in which it may create Apps; null without one. */
  readonly network: string | null;
}

/** The owner and rights of a token. */
export interface Bearer extends Scope {
  /** First characters of the token's hash, as it is listed. */
  readonly id: string;
  /** Name that it was given; null without one. */
  readonly name: string | null;
  readonly org: number;
  readonly slug: string;
  /** Owner of its leases. */
  readonly owner: string;
  readonly role: TokenRole;
  readonly expiresAt: number | null;
}

/** A token as it is listed. */
export interface ListedToken {
  /** First characters of its hash. */
  readonly id: string;
  readonly name: string | null;
  readonly org: string;
  /** Names of the only Apps, as a JSON array; null for all. */
  readonly apps: string | null;
  readonly network: string | null;
  readonly role: TokenRole;
  /** Id of the trust that it was given by; null for others. */
  readonly trust: string | null;
  readonly created_at: number;
  readonly expires_at: number | null;
  /** Null if it was never used. */
  readonly used_at: number | null;
}

/** The rights and expiry of a new token. */
export interface Grant {
  readonly slug: string;
  readonly name?: string | undefined;
  /** Ids of the only Apps. */
  readonly apps?: readonly string[] | undefined;
  /** The only network. */
  readonly network?: string | undefined;
  /** By default `own`, and `deploy` for some Apps or a network. */
  readonly role?: TokenRole | undefined;
  /** Id of the trust that gives it. */
  readonly trust?: string | undefined;
  readonly expiresAt: number | null;
}

/** Whether it is for the whole organization. */
export const isForAll = ({ apps }: Pick<Scope, "apps">): boolean => apps === null;

/** Whether an App of its organization is in what it is for. */
export const isFor = ({ apps, network }: Scope, app: { readonly id: string; readonly network: string }): boolean =>
  apps === null || apps.has(app.id) || network === app.network;

/** The ids of the only Apps as a parameter of {@link onlyApps}. */
export const appsParameter = ({ apps }: Pick<Scope, "apps">): string | null =>
  apps === null ? null : JSON.stringify([...apps]);

/** SQL for the Apps that a token is for: the parameter of this number is {@link appsParameter}. */
export const onlyApps = (id: string, parameter: number): string =>
  `(?${parameter} IS NULL OR ${id} IN (SELECT value FROM json_each(?${parameter})))`;

/** The Apps of a scope that are not being removed, by name; null for all. */
export const ownApps = (
  store: Pick<Store, "all">,
  scope: Pick<Scope, "apps">,
): readonly Pick<AppRow, "name" | "created_at">[] | null =>
  isForAll(scope)
    ? null
    : store.all(
        `SELECT name, created_at FROM apps WHERE ${onlyApps("id", 1)} AND deleting < 2 ORDER BY name`,
        appsParameter(scope),
      );

/** The longest expiry of a token in milliseconds: a hundred years, as `876000h`. */
export const longestExpiryMs = 876_000 * 3600_000;

type Access = Pick<Store, "get" | "all" | "insert" | "run">;

/** What the store has of a token. */
export const hashOf = (token: string): string => hash("sha256", token);
const idLength = 12;

/** The id of a token. */
export const idOf = (token: string): string => hashOf(token).slice(0, idLength);

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

/** Adds a token for an organization, for some Apps of it, or for a network. Returns its id. */
export function addToken(store: Pick<Access, "get" | "insert">, token: string, grant: Grant, now: number): string {
  const { slug, name, apps, network, trust, expiresAt } = grant;
  const hashed = hashOf(token);
  const id = hashed.slice(0, idLength);
  const role = grant.role ?? (apps === undefined && network === undefined ? "own" : "deploy");
  store.insert("tokens", {
    hash: hashed,
    org: ensureOrg(store, slug).id,
    // ASSUMED: the owner of a lease is a name derived from the token, as on the platform
    // (docs/interface.md#leases).
    owner: `${id}@tokens.${slug}`,
    created_at: now,
    expires_at: expiresAt,
    name: name ?? null,
    role,
    network: network ?? null,
    of_apps: apps === undefined ? 0 : 1,
    trust: trust ?? null,
  });
  for (const app of apps ?? []) store.insert("token_apps", { token: hashed, app });
  return id;
}

/** The organization of the operator, which exists from the first start. */
export const operatorOrg = "personal";

/** Whether a token may do what concerns all organizations, such as reading metrics. */
export const isOperator = (bearer: Pick<Bearer, "slug" | "apps" | "role">): boolean =>
  isOfOperator(bearer) && bearer.role !== proxyRole;

/** Whether a token is that of a proxy that is a process of its own. Such a proxy has all organizations, so only the operator gives one. */
export const isProxy = (bearer: Pick<Bearer, "slug" | "apps" | "role">): boolean =>
  isOfOperator(bearer) && bearer.role === proxyRole;

const isOfOperator = ({ slug, apps }: Pick<Bearer, "slug" | "apps">): boolean => slug === operatorOrg && apps === null;

/** Whether a token that is for some Apps still has one: they are removed in parts. */
const hasApp = `(t.of_apps = 0 OR EXISTS
  (SELECT 1 FROM token_apps x JOIN apps a ON a.id = x.app WHERE x.token = t.hash AND a.deleting < 2))`;

/** Every token that has not expired, oldest first. */
export const listTokens = (store: Pick<Access, "all">, now: number): ListedToken[] =>
  store.all<ListedToken>(
    `SELECT substr(t.hash, 1, ${idLength}) AS id, t.name, o.slug AS org,
       CASE WHEN t.of_apps = 1 THEN (SELECT json_group_array(name) FROM
         (SELECT a.name FROM token_apps x JOIN apps a ON a.id = x.app
          WHERE x.token = t.hash AND a.deleting < 2 ORDER BY a.name)) END AS apps,
       t.network, t.role, t.trust, t.created_at, t.expires_at, t.used_at
     FROM tokens t JOIN orgs o ON o.id = t.org
     WHERE (t.expires_at IS NULL OR t.expires_at > ?) AND ${hasApp} ORDER BY t.created_at, id`,
    now,
  );

/** The hash of the token with an id. */
const hashById = (store: Pick<Access, "get">, id: string): string | undefined =>
  id.length === idLength
    ? store.get<{ hash: string }>("SELECT hash FROM tokens WHERE hash >= ? AND hash < ?", id, `${id}g`)?.hash
    : undefined;

/** Number of the tokens for an App that have not expired. */
export function tokensOfApp(store: Pick<Access, "get">, app: string, now: number): number {
  const sql = `SELECT count(*) AS n FROM token_apps x JOIN tokens t ON t.hash = x.token
    WHERE x.app = ? AND (t.expires_at IS NULL OR t.expires_at > ?)`;
  return store.get<{ n: number }>(sql, app, now)?.n ?? 0;
}

/** Id of the trust that gave the token with an id; undefined if none did. */
export function trustOfToken(store: Pick<Access, "get">, id: string): string | undefined {
  const sql = "SELECT trust FROM tokens WHERE hash = ?";
  return store.get<{ trust: string | null }>(sql, hashById(store, id) ?? "")?.trust ?? undefined;
}

/**
 * Adds a token with the rights of another one, which ends at a moment unless it ends before. The new one lasts as long as the old one
 * was to. Returns its id; undefined if there is no such token, if it has expired, or if a trust gave it: that must not outlive the trust.
 */
export function rotateToken(
  store: Access,
  id: string,
  { token, oldEnds, now }: { readonly token: string; readonly oldEnds: number; readonly now: number },
): string | undefined {
  const old = hashById(store, id);
  if (old === undefined) return undefined;
  const hashed = hashOf(token);
  const next = hashed.slice(0, idLength);
  const row = store.get<{ created_at: number; expires_at: number | null; slug: string }>(
    "SELECT t.created_at, t.expires_at, o.slug FROM tokens t JOIN orgs o ON o.id = t.org WHERE t.hash = ? AND t.trust IS NULL",
    old,
  );
  if (!row || (row.expires_at !== null && row.expires_at <= now)) return undefined;
  const expiresAt = row.expires_at === null ? null : now + row.expires_at - row.created_at;
  store.run(
    `INSERT INTO tokens (hash, org, owner, created_at, expires_at, name, role, network, of_apps)
     SELECT ?, org, ?, ?, ?, name, role, network, of_apps FROM tokens WHERE hash = ?`,
    ...[hashed, `${next}@tokens.${row.slug}`, now, expiresAt, old],
  );
  store.run("INSERT INTO token_apps SELECT ?, app FROM token_apps WHERE token = ?", hashed, old);
  const ends = Math.min(oldEnds, row.expires_at ?? Number.POSITIVE_INFINITY);
  store.run("UPDATE tokens SET expires_at = ? WHERE hash = ?", ends, old);
  return next;
}

/** Revokes tokens by id and returns their number. */
export function revokeTokens(store: Pick<Access, "all" | "run">, id: string): number {
  const found = store.all<{ hash: string }>(`SELECT hash FROM tokens WHERE substr(hash, 1, ${idLength}) = ?`, id);
  for (const { hash: hashed } of found) store.run("DELETE FROM tokens WHERE hash = ?", hashed);
  return found.length;
}

interface TokenRow extends Omit<Bearer, "id" | "apps"> {
  readonly hash: string;
  readonly of_apps: number;
}

// Another process may revoke a token, so a cached token is looked up again this often.
const rememberedMs = 1000;

interface Known {
  readonly bearer: Bearer;
  readonly at: number;
}

/** Looks up tokens. Known ones are cached for a moment, because every request needs its token. */
export class Tokens {
  readonly #store: Pick<Store, "get" | "all">;
  /** When tokens were used, by id, as far as it is not stored. */
  readonly #used = new Map<string, number>();
  readonly #known = new Map<string, Known>();
  /** By id: apart from the others, because an id is no secret. */
  readonly #knownById = new Map<string, Known>();

  constructor(store: Pick<Store, "get" | "all">) {
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
      const hashed = hashById(this.#store, id);
      return hashed === undefined ? undefined : this.#look(hashed);
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
    if (bearer.expiresAt !== null && bearer.expiresAt <= now) return undefined;
    this.#used.set(bearer.id, now);
    return bearer;
  }

  #look(hashed: string): Bearer | undefined {
    // The lookup by hash leaks nothing about the token through its duration. The comparison takes constant time as well.
    const row = this.#store.get<TokenRow>(
      `SELECT t.hash, t.name, t.org, o.slug, t.owner, t.network, t.role, t.of_apps, t.expires_at AS expiresAt
       FROM tokens t JOIN orgs o ON o.id = t.org WHERE t.hash = ? AND ${hasApp}`,
      hashed,
    );
    if (!row || !isSame(row.hash, hashed)) return undefined;
    const { name, org, slug, owner, network, role, expiresAt } = row;
    const id = row.hash.slice(0, idLength);
    return { id, name, org, slug, owner, network, role, expiresAt, apps: this.#appsOf(hashed, row) };
  }

  #appsOf(hashed: string, { of_apps, network, org }: TokenRow): ReadonlySet<string> | null {
    const ids = (sql: string, ...values: (string | number)[]): ReadonlySet<string> =>
      new Set(this.#store.all<{ id: string }>(sql, ...values).map(({ id }) => id));
    if (of_apps === 1) return ids("SELECT app AS id FROM token_apps WHERE token = ?", hashed);
    return network === null ? null : ids("SELECT id FROM apps WHERE org = ? AND network = ?", org, network);
  }

  /** Stores when tokens were used since the last call. Called within a change of the store. */
  storeUse(store: Pick<Access, "run">): void {
    for (const [id, at] of this.#used)
      store.run(
        "UPDATE tokens SET used_at = ? WHERE hash >= ? AND hash < ? AND coalesce(used_at, 0) < ?",
        ...[at, id, `${id}g`, at],
      );
    this.#used.clear();
  }

  /** Whether {@link storeUse} has something to store. */
  get isUsed(): boolean {
    return this.#used.size > 0;
  }
}
