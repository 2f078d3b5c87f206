// An App as a runtime sees it.
import type { Context } from "../context.ts";
import type { AppSubject } from "../runtime/runtime.ts";
import { servedCertificate } from "./servedCertificates.ts";

/** The name of an App. That of one that is being removed has a suffix (removal.ts), which is left out. */
export const appName = ({ store }: Context, id: string): string | undefined =>
  store.get<{ name: string }>("SELECT name FROM apps WHERE id = ?", id)?.name.split("/", 1)[0];

/** The network of an App's Machines. Apps of an organization with the same network share it. */
export function networkOf({ store }: Context, app: string): string {
  const sql = "SELECT o.slug || '/' || a.network AS name FROM apps a JOIN orgs o ON o.id = a.org WHERE a.id = ?";
  return store.get<{ name: string }>(sql, app)?.name ?? "";
}

/** An App as a runtime sees it; undefined if there is none. Expensive members are computed on access. */
export function appSubject(context: Context, id: string): AppSubject | undefined {
  const { store } = context;
  const name = appName(context, id);
  if (name === undefined) return undefined;
  return {
    name,
    get network() {
      return networkOf(context, id);
    },
    get machines() {
      const sql = "SELECT id FROM machines WHERE app = ? AND destroyed_at IS NULL ORDER BY created_at, id";
      return store.all<{ id: string }>(sql, id).map((row) => row.id);
    },
    get expected() {
      const sql = `SELECT id FROM machines WHERE app = ? AND destroyed_at IS NULL
        AND (state IN ('starting', 'started', 'restarting') OR (state = 'replacing' AND launch = 1)
          OR (state = 'stopped' AND EXISTS (SELECT 1 FROM timers WHERE subject = machines.id AND kind = 'machine.retry')))`;
      return store.all<{ id: string }>(sql, id).map((row) => row.id);
    },
    get requested() {
      const sql = "SELECT hostname FROM hostnames WHERE app = ? AND acme_status IS NOT NULL AND owned_at IS NOT NULL";
      return store.all<{ hostname: string }>(sql, id).map(({ hostname }) => hostname);
    },
    get certificates() {
      const sql = "SELECT hostname FROM hostnames WHERE app = ? AND owned_at IS NOT NULL ORDER BY hostname";
      return store.all<{ hostname: string }>(sql, id).flatMap(({ hostname }) => {
        const served = servedCertificate(context, hostname);
        return served?.app === id ? [{ hostname, chain: served.chain, key: served.key }] : [];
      });
    },
  };
}
