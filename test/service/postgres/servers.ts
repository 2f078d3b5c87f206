// A service whose Postgres clusters are real servers, for tests.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { expect } from "vitest";
import type { ServiceOptions } from "../../../service/index.ts";
import { findBinaries } from "../../../service/runtime/postgres/binaries.ts";
import { embeddedPostgres, type EmbeddedPostgresOptions } from "../../../service/runtime/postgres/index.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { withApp, type Call } from "../client.ts";

/** A ready cluster. */
export interface Ready {
  readonly id: string;
  readonly status: string;
  readonly endpoints: { readonly primary: { readonly direct: { readonly host: string; readonly port: number } } };
}

/** A folder that is removed after the test. */
export function dataFolder(): string {
  const data = mkdtempSync(join(tmpdir(), "machines-postgres-"));
  afterThisTest(() => rmSync(data, { recursive: true, force: true }));
  return data;
}

/** The version that users install first. The specification tests run on the other one. */
const version18 = async () => new Map([...(await findBinaries())].filter(([version]) => version === "18"));

/** A service with real servers of PostgreSQL 18, by default with data of its own. */
export async function withServers({
  data = dataFolder(),
  service = {},
  ...engine
}: Partial<EmbeddedPostgresOptions> & { readonly service?: ServiceOptions } = {}) {
  const postgres = await embeddedPostgres({ data, versions: await version18(), ...engine });
  const app = await withApp({ data, postgres, ...service });
  return { ...app, data, ...requestsOfClusters(app.call) };
}

/** The requests about clusters. */
export function requestsOfClusters(call: Call) {
  const get = async (path: string) => (await call("GET", path)).body.data;
  const settled = async (id: string) => {
    await expect.poll(async () => (await get(`/postgres/${id}`)).status).toMatch(/ready|failed/);
    return get(`/postgres/${id}`);
  };
  const create = (more: object = {}) =>
    call("POST", "/postgres", { org_slug: "personal", region: "ams", plan: "basic", ...more });
  return {
    get,
    /** Waits until a cluster is ready or failed. */
    settled,
    create,
    /** Creates a cluster, and waits until it is ready. */
    async cluster(more: object = {}) {
      const created = await create(more);
      expect(created).toMatchObject({ status: 201 });
      const ready = await settled(created.body.data.id);
      expect(ready.status).toBe("ready");
      return ready;
    },
    /** Connects as a user of a cluster. */
    async connect({ id, endpoints }: Ready, user = "fly-user", database = "fly-db") {
      const { password } = await get(`/postgres/${id}/users/${user}/credentials`);
      const client = new pg.Client({ ...endpoints.primary.direct, user, password, database });
      client.on("error", () => {});
      afterThisTest(() => client.end().catch(() => {}));
      await client.connect();
      return client;
    },
    /** Takes a backup, and waits until it is complete. */
    async backUp(id: string): Promise<string> {
      const { body } = await call("POST", `/postgres/${id}/backups`, { type: "full" });
      await expect.poll(async () => (await get(`/postgres/${id}/backups`))[0].status).toBe("completed");
      return body.data.id;
    },
  };
}

/** Number of rows in the table `items`. */
export const rowsOf = async (client: pg.Client): Promise<number> =>
  Number((await client.query("SELECT count(*) AS n FROM items")).rows[0].n);
