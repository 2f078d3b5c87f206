// A follower is promoted after the data of the Postgres servers were lost (F101). test/runtime/members.test.ts does so with the engines of
// Machines.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { processesIn } from "../../../service/runtime/postgres/processes.ts";
import { thoroughTest } from "../../support/thorough.ts";
import { command } from "../command.ts";
import { requestsOfClusters, rowsOf } from "../postgres/servers.ts";
import { serverForTests } from "./serverForTests.ts";
import { callOf, leaderOf, serviceOn, standing, type Service } from "./processes.ts";

const server = serverForTests();

const promote = async ({ store, keyFile }: Service, address: string, ...more: string[]) =>
  command(["members", "promote", address, "--store", store, "--key-file", keyFile, ...more]);

const rolesOf = async ({ store }: Service) => {
  const listed = JSON.parse((await command(["members", "--json", "--store", store])).out) as Record<string, string>[];
  return Object.fromEntries(listed.map(({ address, role }) => [address, role]));
};

test("a service whose members may all lead has no one to promote", async () => {
  const service = serviceOn(server.url);
  const one = await service.start();
  expect((await promote(service, one.url)).err).toContain("every member may lead, so none needs to be promoted");
});

// In process: test/service/lost.test.ts.
thoroughTest(
  "a promoted member has the clusters with their databases, users and extensions, and without rows",
  async () => {
    const service = serviceOn(server.url, "--postgres", "embedded", "--pgbouncer", "none");
    const first = await service.start();
    const second = await service.start();
    const before = requestsOfClusters(callOf(first));
    const call = callOf(second);
    const cluster = await before.cluster({ name: "main" });
    const path = `/postgres/${cluster.id}`;
    await call("POST", `${path}/databases`, { name: "more" });
    await call("POST", `${path}/users`, { username: "reader", role: "reader" });
    const extensions = `${path}/databases/fly-db/extensions`;
    expect((await call("POST", extensions, { name: "citext" })).status).toBeLessThan(300);
    await before.backUp(cluster.id);
    const { password } = await before.get(`${path}/users/reader/credentials`);
    await (await before.connect(cluster)).query("CREATE TABLE items (id int)");

    // Nothing is lost while a member runs that has the data.
    await expect.poll(() => rolesOf(service)).toEqual({ [first.url]: "leader", [second.url]: "follower" });
    expect((await promote(service, second.url, "--accept-data-loss")).err).toContain(
      `${first.url} may lead, and is running`,
    );
    expect((await promote(service, first.url)).err).toContain("may lead already");
    expect((await promote(service, "http://none")).err).toContain("there is no member http://none");
    process.kill(first.pid, "SIGKILL");
    await first.end;
    await expect.poll(async () => (await promote(service, second.url)).err).toContain("Add --accept-data-loss");
    const refused = await promote(service, second.url, "--yes");
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringContaining("Postgres clusters that begin without their rows and backups: main"),
    ]);
    expect((await standing(second))?.leader).toBe(null);
    expect(await promote(service, second.url, "--accept-data-loss")).toMatchObject({ code: 0, err: "" });
    await leaderOf([second]);

    const after = requestsOfClusters(call);
    const ready = await after.settled(cluster.id);
    expect(ready.status).toBe("ready");
    const owner = await after.connect(ready);
    await expect(rowsOf(owner)).rejects.toThrow(/does not exist/);
    const installed = "SELECT 1 FROM pg_extension WHERE extname = 'citext'";
    await expect.poll(async () => (await owner.query(installed)).rowCount).toBe(1);
    expect((await after.get(`${path}/users/reader/credentials`)).password).toBe(password);
    expect((await (await after.connect(ready, "reader", "more")).query("SELECT session_user AS name")).rows).toEqual([
      { name: "reader" },
    ]);
    expect(await after.get(`${path}/backups`)).toEqual([]);
    await owner.query("CREATE TABLE items (id int)");

    // The lost one is back: it only follows, its servers end, and its data stay.
    const servers = join(first.data, "postgres", cluster.id);
    const again = await service.start(first.data);
    expect(again.said()).toContain("this member only follows: the Postgres servers");
    await expect.poll(() => processesIn(servers)).toEqual([]);
    expect(existsSync(join(servers, "data"))).toBe(true);
    expect(readdirSync(join(servers, "backups"))).toHaveLength(1);
    await expect
      .poll(() => rolesOf(service))
      .toEqual({ [again.url]: "follower", [first.url]: "leader", [second.url]: "leader" });

    // What was lost is created again once: another takeover changes nothing.
    process.kill(second.pid, "SIGTERM");
    await second.end;
    const third = await service.start(second.data);
    await leaderOf([third]);
    const kept = requestsOfClusters(callOf(third));
    // Its server starts again.
    await expect.poll(async () => rowsOf(await kept.connect(await kept.settled(cluster.id)))).toBe(0);
  },
);
