// Organizations and Apps that options name.
import { didYouMean } from "../../api/didYouMean.ts";
import { ownCommand } from "../ownCommand.ts";
import { Problem } from "../local/problem.ts";
import type { Store } from "../store/database.ts";
import type { OrgRow } from "../store/rows.ts";
import { findOrg } from "../store/tokens.ts";

/** An organization, and an App of it if one is named. */
export interface Holder {
  readonly slug: string;
  /** Id of the App. */
  readonly app?: string;
}

/** A question that offers the nearest of the known names, or an alternative when none is near. */
export function nearestOr(name: string, known: readonly string[], alternative: string): string {
  const meant = didYouMean(name, known);
  return meant === undefined ? alternative : `; did you mean ${meant}?`;
}

/** The organization of a slug, in the store of a data folder. Throws a Problem when there is none. */
export function requireOrg(store: Store, slug: string, folder: string): OrgRow {
  const org = findOrg(store, slug);
  if (org) return org;
  const slugs = store.all<{ slug: string }>("SELECT slug FROM orgs").map((known) => known.slug);
  const way = `; create it with \`${ownCommand(`org create ${slug}`, folder)}\``;
  throw new Problem(`there is no organization ${slug}${nearestOr(slug, slugs, way)}`);
}

/** What options name. */
interface Named {
  readonly org?: string | undefined;
  readonly app?: string | undefined;
}

/** The organization, and the App if one is named, which determines the organization too; `hint` says what to do if there is none. */
export function holderOf(
  store: Store,
  { org, app: name, hint = "" }: Named & { readonly hint?: string },
  folder: string,
): Holder {
  if (name === undefined) return { slug: requireOrg(store, org ?? "personal", folder).slug };
  const apps = "FROM apps a JOIN orgs o ON o.id = a.org WHERE a.deleting < 2";
  const holder = store.get<{ app: string; slug: string }>(`SELECT a.id AS app, o.slug ${apps} AND a.name = ?`, name);
  if (!holder) {
    const names = store.all<{ name: string }>(`SELECT a.name ${apps}`).map((known) => known.name);
    throw new Problem(`there is no app ${name}${nearestOr(name, names, hint)}`);
  }
  if (org !== undefined && org !== holder.slug)
    throw new Problem(`the app ${name} belongs to organization ${holder.slug}, not to ${org}`);
  return holder;
}

/** The organizations that options select: that of the App, the named one, or all. */
export function orgsOf(store: Store, { org, app }: Named, folder: string): readonly string[] {
  if (app !== undefined) return [holderOf(store, { org, app }, folder).slug];
  if (org !== undefined) return [requireOrg(store, org, folder).slug];
  return store.all<OrgRow>("SELECT slug FROM orgs ORDER BY id").map(({ slug }) => slug);
}
