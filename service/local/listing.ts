// Lists what a running service holds, page by page.
import type { z } from "zod";
import type { app } from "../../api/apps.ts";
import type { orgMachine, orgVolume } from "../../api/orgs.ts";
import type { postgresClusterSummary } from "../../api/postgres.ts";
import type { SendFor } from "./orgRequests.ts";
import { Problem } from "./problem.ts";

/** The kinds of objects that can be listed. */
export const kinds = ["apps", "machines", "volumes", "clusters"] as const;
/** A kind of objects that can be listed. */
export type Kind = (typeof kinds)[number];

interface Listed {
  readonly apps: z.infer<typeof app>;
  readonly machines: z.infer<typeof orgMachine>;
  readonly volumes: z.infer<typeof orgVolume>;
  readonly clusters: z.infer<typeof postgresClusterSummary>;
}

/** An object as the service answers it, with the slug of its organization. */
export type Entry<K extends Kind> = Listed[K] & { readonly org: string };

/** A page as the lists answer it; Postgres has only one. */
interface Page {
  readonly data?: readonly object[];
  readonly next_cursor?: string;
  readonly [list: string]: unknown;
}

const paths: { readonly [K in Kind]: (org: string) => string } = {
  apps: (org) => `/apps?org_slug=${org}`,
  machines: (org) => `/orgs/${org}/machines?limit=1000`,
  volumes: (org) => `/orgs/${org}/volumes?limit=1000&summary=true`,
  clusters: (org) => `/postgres?org_slug=${org}`,
};

/** Every object of a kind in an organization. */
export async function listAll<K extends Kind>(send: SendFor, org: string, kind: K): Promise<Entry<K>[]> {
  // An object that changes meanwhile moves to the end of its list, and would be on two pages.
  const found = new Map<string, Entry<K>>();
  let cursor = "";
  do {
    const path = `${paths[kind](org)}${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`;
    const { status, body } = await send(org, { method: "GET", path });
    if (status !== 200) {
      const { error } = (body ?? {}) as { readonly error?: string };
      throw new Problem(`the service refused GET /v1${path} with ${status}: ${error ?? "no reason was given"}`);
    }
    const page = body as Page;
    for (const item of (page.data ?? page[kind]) as readonly Listed[K][]) {
      const id = String(item.id);
      found.delete(id);
      found.set(id, { ...item, org });
    }
    cursor = page.next_cursor ?? "";
  } while (cursor !== "");
  return [...found.values()];
}
