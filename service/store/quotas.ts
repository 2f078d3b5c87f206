// Quotas: how much an organization or an App may have. Triggers of the store keep what is used (schema.ts).
import type { Store } from "./database.ts";

/** What an App may have a quota of. */
export const appQuotaKinds = ["machines", "memory", "volumes", "volume-gb", "requests"] as const;

/** What an organization may have a quota of. Clusters belong to no App. */
export const quotaKinds = [...appQuotaKinds, "clusters"] as const;

/** What a quota is of. */
export type QuotaKind = (typeof quotaKinds)[number];

/** Limits by kind; null lifts one. */
export type Limits = Readonly<Partial<Record<QuotaKind, number | null>>>;

/** An organization, or an App of it. */
export interface QuotaHolder {
  readonly org: number;
  /** Id of the App; undefined for the whole organization. */
  readonly app?: string | undefined;
}

/** A quota with what is used of it. */
export interface Quota {
  readonly kind: QuotaKind;
  readonly most: number;
  readonly used: number;
  /** 1 for that of an App. */
  readonly of_app: number;
}

/** A quota as it is listed. */
export interface ListedQuota {
  readonly org: string;
  /** Null for the whole organization. */
  readonly app: string | null;
  readonly kind: QuotaKind;
  readonly limit: number;
  /** Null for requests, which are only counted for a moment. */
  readonly used: number | null;
}

type Access = Pick<Store, "get" | "all" | "insert" | "run">;

const placeOf = ({ org, app }: QuotaHolder) =>
  app === undefined
    ? ({ table: "org_quotas", column: "org", key: org } as const)
    : ({ table: "app_quotas", column: "app", key: app } as const);

/** Sets limits; others stay as they are. */
export function setQuotas(store: Access, holder: QuotaHolder, limits: Limits): void {
  const { table, column, key } = placeOf(holder);
  for (const [kind, most] of Object.entries(limits)) {
    const where = `WHERE ${column} = ? AND kind = ?`;
    if (most === null) store.run(`DELETE FROM ${table} ${where}`, key, kind);
    else if (store.get(`SELECT 1 FROM ${table} ${where}`, key, kind))
      store.run(`UPDATE ${table} SET most = ? ${where}`, most, key, kind);
    else store.insert(table, { [column]: key, kind, most });
  }
}

/** Removes all limits of an organization or an App. Returns their number. */
export function removeQuotas(store: Access, holder: QuotaHolder): number {
  const { table, column, key } = placeOf(holder);
  const found = store.all(`SELECT 1 FROM ${table} WHERE ${column} = ?`, key).length;
  store.run(`DELETE FROM ${table} WHERE ${column} = ?`, key);
  return found;
}

/** The quotas that hold for an App of an organization, or for what belongs to no App; those of the App first. */
export const quotasOf = (store: Pick<Access, "all">, org: number, app: string | null): readonly Quota[] =>
  store.all<Quota>(
    `SELECT kind, most, used, 1 AS of_app FROM app_quotas WHERE app = ?2
     UNION ALL SELECT kind, most, used, 0 FROM org_quotas WHERE org = ?1`,
    org,
    app,
  );

const order = new Map(quotaKinds.map((kind, i) => [kind, i]));

/** Every quota, those of an organization before those of its Apps. */
export const listQuotas = (store: Pick<Access, "all">): readonly ListedQuota[] =>
  store
    .all<ListedQuota>(
      `SELECT o.slug AS org, NULL AS app, q.kind, q.most AS "limit", iif(q.kind = 'requests', NULL, q.used) AS used
         FROM org_quotas q JOIN orgs o ON o.id = q.org
       UNION ALL
       SELECT o.slug, a.name, q.kind, q.most, iif(q.kind = 'requests', NULL, q.used)
         FROM app_quotas q JOIN apps a ON a.id = q.app JOIN orgs o ON o.id = a.org WHERE a.deleting < 2`,
    )
    .sort(
      (a, b) =>
        compare(a.org, b.org) ||
        compare(a.app ?? "", b.app ?? "") ||
        (order.get(a.kind) ?? 0) - (order.get(b.kind) ?? 0),
    );

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
