// Two services with real servers on one computer, and what is left of a cluster a day after its deletion.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { ManualClock } from "../../../service/index.ts";
import { processesIn } from "../../../service/runtime/postgres/processes.ts";
import { hang } from "../../support/patience.mts";
import { dataFolder, rowsOf, withServers } from "./servers.ts";

const day = 24 * 3600_000;

type Servers = Awaited<ReturnType<typeof withServers>>;

/** Deletes a cluster, and waits until it is deleted. */
async function remove({ call }: Servers, id: string): Promise<void> {
  expect((await call("DELETE", `/postgres/${id}`)).status).toBe(202);
  await expect.poll(async () => (await call("GET", `/postgres/${id}`)).text).toContain("has been deleted");
}

test("clusters of the same name in two data folders do not touch each other; a day after deletion nothing is left", async () => {
  const clock = new ManualClock();
  const [one, other] = [await withServers({ service: { clock } }), await withServers({ service: { clock } })];
  const [here, there] = await Promise.all([one.cluster({ name: "db" }), other.cluster({ name: "db" })]);
  expect(here.endpoints.primary.direct.port).not.toBe(there.endpoints.primary.direct.port);
  const [mine, theirs] = [await one.connect(here), await other.connect(there)];
  for (const client of [mine, theirs]) await client.query("CREATE TABLE items (id int)");
  await theirs.query("INSERT INTO items VALUES (1)");
  expect(await rowsOf(mine)).toBe(0);
  const servers = processesIn(other.data);
  await remove(one, here.id);
  expect(processesIn(one.data)).toEqual([]);
  expect(processesIn(other.data)).toEqual(expect.arrayContaining(servers.slice(0, 1)));
  // The same connection.
  expect(await rowsOf(theirs)).toBe(1);
  const kept = join(one.data, "postgres", "deleted", here.id);
  expect(existsSync(kept)).toBe(true);
  clock.advance(day - 1000);
  expect(existsSync(kept)).toBe(true);
  clock.advance(1000);
  await expect.poll(() => existsSync(kept)).toBe(false);
  await remove(other, there.id);
  clock.advance(day);
  for (const { data } of [one, other]) {
    await expect.poll(() => readdirSync(join(data, "postgres", "deleted"))).toEqual([]);
    expect(readdirSync(join(data, "postgres"))).toEqual(["deleted"]);
    expect(processesIn(data)).toEqual([]);
  }
});

test("a service on a copy of a data folder, with its owners, leaves the servers of the other one alone", async () => {
  const before = await withServers();
  const ready = await before.cluster();
  await (await before.connect(ready)).query("CREATE TABLE items AS SELECT 1 AS id");
  await before.service.close();
  const copied = dataFolder();
  execFileSync("cp", ["-a", `${before.data}/.`, copied]);
  const works = ({ get, connect }: Servers) =>
    vi.waitFor(async () => connect(await get(`/postgres/${ready.id}`)), { timeout: hang });
  const one = await withServers({ data: before.data });
  const mine = await works(one);
  const other = await withServers({ data: copied });
  expect(await rowsOf(await works(other))).toBe(1);
  await other.service.close();
  // The same connection.
  expect(await rowsOf(mine)).toBe(1);
});

test("a copy that a killed service did not remove completely goes at the next start, and one that is unknown stays", async () => {
  const clock = new ManualClock();
  const data = dataFolder();
  const first = await withServers({ data, service: { clock } });
  const { id } = await first.cluster();
  await remove(first, id);
  clock.advance(day);
  const deleted = join(data, "postgres", "deleted");
  await expect.poll(() => readdirSync(deleted)).toEqual([]);
  await first.service.close();
  for (const left of [id, "unknown"]) mkdirSync(join(deleted, left, "base"), { recursive: true });
  await withServers({ data, service: { clock } });
  await expect.poll(() => readdirSync(deleted)).toEqual(["unknown"]);
});
