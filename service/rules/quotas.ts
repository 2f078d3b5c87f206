// Refuses what would exceed a quota (docs/service.md#quotas). It runs in the transaction of the change, so that concurrent requests
// never exceed one together.
import type { Context } from "../context.ts";
import { refuse } from "../refusal.ts";
import type { AppRow } from "../store/rows.ts";
import { quotasOf, type QuotaKind } from "../store/quotas.ts";

/** How much a request adds, by kind. */
export type Growth = Readonly<Partial<Record<Exclude<QuotaKind, "requests">, number>>>;

/** What a quota is of, and the unit of its numbers. */
const words: Readonly<Record<QuotaKind, readonly [of: string, unit: string]>> = {
  machines: ["machines", ""],
  memory: ["memory of machines", " MB"],
  volumes: ["volumes", ""],
  "volume-gb": ["volumes together", " GB"],
  clusters: ["Postgres clusters", ""],
  requests: ["requests", " per second"],
};

/** Whose quota it is, what it is of, and how much it allows. */
export const quotaText = (holder: string, kind: QuotaKind, most: number): string =>
  `the limit of ${holder} for ${words[kind][0]} is ${most}${words[kind][1]}`;

/**
 * Refuses growth beyond a quota of the App, or of the organization. ASSUMED: a request that exceeds a quota is 422
 * `quota_exceeded`. The operator of this service sets quotas; the status 403 of the platform is about a region's memory alone.
 */
export function requireQuota(
  context: Context,
  org: number,
  app: Pick<AppRow, "id" | "name"> | undefined,
  growth: Growth,
): void {
  if (!Object.values(growth).some((more) => more > 0)) return;
  for (const { kind, most, used, of_app } of quotasOf(context.store, org, app?.id ?? null)) {
    const more = kind === "requests" ? 0 : (growth[kind] ?? 0);
    // ASSUMED: what exists above a quota that was lowered stays, and may shrink; only growth is refused.
    if (more <= 0 || used + more <= most) continue;
    const [, unit] = words[kind];
    const holder = of_app === 1 ? `app ${app?.name}` : `organization ${slugOf(context, org)}`;
    throw refuse(
      422,
      `quota exceeded: ${quotaText(holder, kind, most)}, it has ${used}${unit}, and this adds ${more}${unit}`,
      "quota_exceeded",
    );
  }
}

const slugOf = ({ store }: Context, org: number): string =>
  store.get<{ slug: string }>("SELECT slug FROM orgs WHERE id = ?", org)?.slug ?? "";
