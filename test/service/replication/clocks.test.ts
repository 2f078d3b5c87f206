// Clocks of members and of their database that are wrong, and that jump by hours and days (F97).
import { describe, expect, test } from "vitest";
import { usualTiming } from "../../../service/replication/member.ts";
import { leaveOut } from "../../../tools/lib/leftOut.mjs";
import { afterThisTest } from "../../support/leftovers.ts";
import { command } from "../command.ts";
import { plantedIn } from "../histories/bugs.ts";
import { startPostgres } from "./postgres.ts";
import { callOf, create, expectEqualCopies, leaderOf, namesAt, serviceOn, standing, type Member } from "./processes.ts";
import { findFaketime, WrongClock } from "./wrongClock.ts";

const library = findFaketime();
if (library === undefined) leaveOut("members with clocks that jump", "libfaketime is not installed");

/** A lease that lasts however slow the computer is. */
const longLease = plantedIn([{ find: `leaseMs: ${usualTiming.leaseMs / 1000}e3,`, replace: "leaseMs: 36e5," }]);

/** A database and members, each with a clock of its own. */
async function setup(count: number, env: NodeJS.ProcessEnv = {}) {
  const ofDatabase = new WrongClock(library ?? "");
  const server = await startPostgres({ env: ofDatabase.env });
  afterThisTest(() => server.remove());
  const service = serviceOn(server.url);
  const clocks = Array.from({ length: count }, () => new WrongClock(library ?? ""));
  const members: Member[] = [];
  for (const clock of clocks) members.push(await service.startWith({ ...env, ...clock.env }));
  return {
    ...{ service, members, ofDatabase },
    clockOf: (member: Member) => clocks[members.indexOf(member)] as WrongClock,
    /** What the command says of each member. */
    async list(): Promise<{ address: string; seenSecondsAgo: number; behind: number }[]> {
      const { out } = await command(["members", "--json", "--store", service.store]);
      return JSON.parse(out) as [];
    },
    remove: (address: string) => command(["members", "remove", address, "--store", service.store]),
  };
}

describe.runIf(library)("clocks that jump", () => {
  test("a leader stays, and nothing is lost, however its clock, the others' and the database's jump", async () => {
    const { members, ofDatabase, clockOf } = await setup(3, longLease);
    const leader = await leaderOf(members);
    const [other] = members.filter((one) => one !== leader) as [Member];
    const creating = create("app", () => members);
    await creating.more(10);
    const { epoch } = (await standing(leader)) ?? {};
    const machines = `/apps/${creating.acknowledged[0]}/machines`;
    const { body } = await callOf(leader)("POST", machines, { config: { image: "nginx" }, skip_launch: true });
    const takeLease = () => callOf(other)("POST", `${machines}/${body.id}/lease`, { ttl: 3600 });
    expect((await takeLease()).status).toBe(201);
    for (const [clock, by] of [
      [ofDatabase, "+3d"],
      [ofDatabase, "-5h"],
      [clockOf(leader), "+2d"],
      [clockOf(other), "-30d"],
      [clockOf(leader), "-2d"],
      [ofDatabase, "+1h"],
    ] as const) {
      clock.set(by);
      await creating.more(10);
      expect(await standing(leader)).toMatchObject({ role: "leader", epoch });
      // The lease of the Machine lasts as long as it was meant to.
      expect((await takeLease()).status).toBe(409);
    }
    await creating.end();
    const names = new Set(await namesAt(leader));
    expect(creating.acknowledged.filter((name) => !names.has(name))).toEqual([]);
    await expectEqualCopies(members);
  });

  test("when the leader dies while the database's clock jumps, another member leads", async () => {
    const { service, members, ofDatabase } = await setup(3);
    const creating = create("app", () => members);
    for (const by of ["-1d", "+2d"]) {
      await creating.more(10);
      const leader = await leaderOf(members);
      // It does not renew its lease by the other clock.
      process.kill(leader.pid, "SIGSTOP");
      ofDatabase.set(by);
      process.kill(leader.pid, "SIGKILL");
      await leader.end;
      const others = members.filter((one) => one !== leader);
      await leaderOf(others);
      members[members.indexOf(leader)] = await service.start(leader.data);
    }
    await creating.more(10);
    await creating.end();
    const names = new Set(await namesAt(await leaderOf(members)));
    expect(creating.acknowledged.filter((name) => !names.has(name))).toEqual([]);
    await expectEqualCopies(members);
  });

  test("the list of members has those that run, and one that does not can be removed", async () => {
    const { members, ofDatabase, list, remove } = await setup(3, longLease);
    const leader = await leaderOf(members);
    const [gone, ...running] = [...members].sort((a, b) => Number(a === leader) - Number(b === leader)) as [
      Member,
      ...Member[],
    ];
    await expect.poll(async () => (await list()).length).toBe(3);
    process.kill(gone.pid, "SIGKILL");
    await gone.end;
    // It was seen at a time that is to come.
    ofDatabase.set("-2d");
    const seenOf = async (urls: readonly string[]) =>
      (await list()).filter(({ address }) => urls.includes(address)).map(({ seenSecondsAgo }) => seenSecondsAgo < 60);
    await expect.poll(() => seenOf(running.map(({ url }) => url))).toEqual([true, true]);
    expect(await seenOf([gone.url])).toEqual([false]);
    expect((await remove(gone.url)).code).toBe(0);
    const [first] = running as [Member];
    expect((await remove(first.url)).err).toContain("is running; stop it first");
    ofDatabase.set("+30d");
    await expect.poll(() => seenOf(running.map(({ url }) => url))).toEqual([true, true]);
    expect((await list()).length).toBe(2);
  });
});
