// Trusts: which identity tokens of an issuer get a token of the service, and with which rights.
import type { Store } from "./database.ts";
import type { Role } from "./roles.ts";
import { ensureOrg } from "./tokens.ts";

/** Claims that an identity token must have, by name. */
export type Claims = Readonly<Record<string, string>>;

/** What a trust gives, and to whom. */
export interface TrustGrant {
  readonly slug: string;
  readonly name: string;
  /** URL, exactly as in the claim `iss`. */
  readonly issuer: string;
  /** What the claim `aud` must name: the address of this service. */
  readonly audience: string;
  readonly claims: Claims;
  readonly role: Role;
  /** Ids of the only Apps. */
  readonly apps?: readonly string[] | undefined;
  readonly network?: string | undefined;
  /** Whether an identity token may be exchanged more than once. */
  readonly isReusable: boolean;
}

/** A trust. */
export interface Trust extends TrustGrant {
  readonly id: string;
}

/** A trust as it is listed. */
export interface ListedTrust {
  readonly id: string;
  readonly name: string;
  readonly org: string;
  readonly issuer: string;
  readonly audience: string;
  readonly claims: Claims;
  readonly role: Role;
  /** Names of the only Apps; null for all. */
  readonly apps: readonly string[] | null;
  readonly network: string | null;
  readonly is_reusable: boolean;
  readonly created_at: number;
  /** Null if it was never used. */
  readonly used_at: number | null;
}

type Access = Pick<Store, "get" | "all" | "insert" | "run">;

/** Adds a trust. */
export function addTrust(store: Access, id: string, grant: TrustGrant, now: number, isOfPeople = false): void {
  const { slug, name, issuer, audience, claims, role, apps, network, isReusable } = grant;
  store.insert("trusts", {
    ...{ id, org: ensureOrg(store, slug).id, name, issuer, audience, claims: JSON.stringify(claims), role },
    ...{ network: network ?? null, of_apps: apps === undefined ? 0 : 1, is_reusable: isReusable ? 1 : 0 },
    of_people: isOfPeople ? 1 : 0,
    created_at: now,
  });
  for (const app of apps ?? []) store.insert("trust_apps", { trust: id, app });
}

interface TrustRow {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly issuer: string;
  readonly audience: string;
  readonly claims: string;
  readonly role: Role;
  readonly network: string | null;
  readonly of_apps: number;
  readonly is_reusable: number;
  readonly created_at: number;
  readonly used_at: number | null;
}

interface AppOfTrust {
  readonly id: string;
  readonly name: string;
}

const columns = `t.id, t.name, o.slug, t.issuer, t.audience, t.claims, t.role, t.network, t.of_apps, t.is_reusable, t.created_at, t.used_at
  FROM trusts t JOIN orgs o ON o.id = t.org`;

const appsOf = (store: Pick<Access, "all">, { id }: TrustRow): readonly AppOfTrust[] =>
  store.all<AppOfTrust>(
    "SELECT a.id, a.name FROM trust_apps x JOIN apps a ON a.id = x.app WHERE x.trust = ? AND a.deleting < 2 ORDER BY a.name",
    id,
  );

/** Trusts with their claims and Apps, oldest first. */
const read = (store: Pick<Access, "all">, where = "", ...values: string[]) =>
  store.all<TrustRow>(`SELECT ${columns} ${where} ORDER BY t.created_at, t.id`, ...values).map((row) => {
    const { of_apps, is_reusable, claims, ...rest } = row;
    const apps = of_apps === 1 ? appsOf(store, row) : undefined;
    return { ...rest, claims: JSON.parse(claims) as Claims, apps, isReusable: is_reusable === 1 };
  });

/** Every trust of workflows, oldest first. */
export const listTrusts = (store: Pick<Access, "all">): readonly ListedTrust[] =>
  read(store, "WHERE t.of_people = 0").map(({ slug, apps, isReusable, ...rest }) => ({
    ...{ ...rest, org: slug, is_reusable: isReusable },
    apps: apps?.map(({ name }) => name) ?? null,
  }));

/** The trusts of an issuer that still give something, oldest first. */
export const trustsOf = (store: Pick<Access, "all">, issuer: string): readonly Trust[] =>
  read(store, "WHERE t.of_people = 0 AND t.issuer = ?", issuer)
    .filter(({ apps }) => apps === undefined || apps.length > 0)
    .map(({ apps, network, ...rest }) => ({
      ...{ ...rest, network: network ?? undefined },
      apps: apps?.map(({ id }) => id),
    }));

/** People who may sign in to the console, and with which rights. */
export interface People extends Pick<TrustGrant, "slug" | "name" | "role" | "apps" | "network"> {
  readonly id: string;
  /** Their group at the provider; undefined for everyone who signs in there. */
  readonly group: string | undefined;
  readonly createdAt: number;
  /** Null before the first sign-in. */
  readonly usedAt: number | null;
  /** Names of the only Apps. */
  readonly appNames: readonly string[] | undefined;
}

/** Lets a group of people sign in. */
export function addPeople(
  store: Access,
  id: string,
  { group, ...grant }: Pick<People, "slug" | "role" | "apps" | "network" | "group">,
  now: number,
): void {
  const claims: Claims = group === undefined ? {} : { group };
  const own = { ...grant, name: group ?? "everyone", issuer: "", audience: "", claims, isReusable: false };
  addTrust(store, id, own, now, true);
}

/** Everyone who may sign in, oldest first. Without those whose Apps are gone. */
export const peopleOf = (store: Pick<Access, "all">): readonly People[] =>
  read(store, "WHERE t.of_people = 1")
    .filter(({ apps }) => apps === undefined || apps.length > 0)
    .map(({ id, slug, name, role, network, claims, apps, created_at, used_at }) => ({
      ...{ id, slug, name, role, network: network ?? undefined, group: claims["group"] },
      ...{ apps: apps?.map((app) => app.id), appNames: apps?.map((app) => app.name) },
      ...{ createdAt: created_at, usedAt: used_at },
    }));

/** Revokes the token of a person's session, by its id. Tokens of others stay. */
export function endSignIn(store: Pick<Access, "run">, id: string): void {
  store.run(
    "DELETE FROM tokens WHERE hash >= ? AND hash < ? AND trust IN (SELECT id FROM trusts WHERE of_people = 1)",
    ...[id, `${id}g`],
  );
}

/** Removes a trust with the tokens that it gave; false if there is none. */
export const removeTrust = (store: Access, id: string, isOfPeople = false): boolean => {
  const found = store.get("SELECT 1 FROM trusts WHERE id = ? AND of_people = ?", id, isOfPeople ? 1 : 0) !== undefined;
  if (!found) return false;
  store.run("DELETE FROM trusts WHERE id = ?", id);
  return true;
};
