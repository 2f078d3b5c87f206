// Organizations and access tokens. Of a token only its hash is kept.
import { hash } from "node:crypto";
import type { OrgRow } from "./rows.ts";
import type { Store } from "./database.ts";

/** Whom a token stands for. */
export interface Bearer {
  readonly org: number;
  readonly slug: string;
  /** Name its leases are held under. */
  readonly owner: string;
  readonly expiresAt: number | null;
}

const hashOf = (token: string): string => hash("sha256", token);

/** The organization of a slug, made when there is none. */
function ensureOrg(store: Pick<Store, "get" | "insert">, slug: string): OrgRow {
  const find = () => store.get<OrgRow>("SELECT * FROM orgs WHERE slug = ?", slug);
  const found = find();
  if (found) return found;
  store.insert("orgs", { slug, name: slug === "personal" ? "Personal" : slug });
  const made = find();
  if (!made) throw new Error("an organization that was just made is not there");
  return made;
}

/** Lets a token act for an organization. */
export function addToken(
  store: Pick<Store, "get" | "insert">,
  token: string,
  slug: string,
  now: number,
  expiresAt: number | null,
): void {
  const hashed = hashOf(token);
  const org = ensureOrg(store, slug);
  // ASSUMED: who holds a lease is told as a name made from the token, as the platform does for tokens (bodies 6).
  store.insert("tokens", {
    hash: hashed,
    org: org.id,
    owner: `${hashed.slice(0, 12)}@tokens.${slug}`,
    created_at: now,
    expires_at: expiresAt,
  });
}

/** Finds out whom a token stands for. Known ones are remembered: every request asks. */
export class Tokens {
  readonly #store: Store;
  readonly #known = new Map<string, Bearer>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** The bearer of a token, unless it is unknown or has expired. */
  find(token: string, now: number): Bearer | undefined {
    const hashed = hashOf(token);
    let bearer = this.#known.get(hashed);
    if (!bearer) {
      const sql =
        "SELECT t.org, o.slug, t.owner, t.expires_at AS expiresAt FROM tokens t JOIN orgs o ON o.id = t.org WHERE t.hash = ?";
      bearer = this.#store.get<Bearer>(sql, hashed);
      if (!bearer) return undefined;
      if (this.#known.size >= 1000) this.#known.clear();
      this.#known.set(hashed, bearer);
    }
    return bearer.expiresAt === null || bearer.expiresAt > now ? bearer : undefined;
  }
}
