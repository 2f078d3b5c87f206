// The example of a database with the real CLI, on a real Postgres server and a Machine in a container that uses it.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { afterThisTest } from "../support/leftovers.ts";
import { expectNothingRuns } from "./cleaning.ts";
import { tryDatabase } from "./databaseExample.ts";
import { startReal } from "./real.ts";
import { hasEngine } from "./runtimes.ts";

describe.runIf(hasEngine)("a database on a real server", () => {
  test("it is migrated and used from a container and from the host, rotated, restored, forked, and leaves nothing", async () => {
    const real = await startReal({ postgres: true });
    afterThisTest(() => real.end());
    const { service } = real;
    const servers = join(real.data, "postgres");
    await tryDatabase(
      service,
      (host) => Promise.resolve(host),
      (cluster) => expect(readdirSync(servers)).toContain(cluster),
    );
    await expectNothingRuns(real.dataId);
    // A deleted cluster is kept for a day, and runs no server.
    const { store, clock } = service.service.context;
    const statuses = () => store.all<{ status: string }>("SELECT DISTINCT status FROM clusters");
    await expect.poll(statuses).toEqual([{ status: "deleted" }]);
    expect(readdirSync(servers)).toEqual(["deleted"]);
    clock.advance(25 * 3600_000);
    await expect.poll(() => readdirSync(join(servers, "deleted"))).toEqual([]);
  });
});
