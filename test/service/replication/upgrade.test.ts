// Members are replaced by those of the next version, which changes the tables (F97, F100).
import { expect, test } from "vitest";
import { firstSchema, migrations } from "../../../service/store/schema.ts";
import { version } from "../../../service/version.ts";
import { freePort } from "../../support/freePort.ts";
import { command, folder, foreground } from "../command.ts";
import { signal } from "../../support/processes.ts";
import { plantedIn } from "../histories/bugs.ts";
import { momentOf, serverForTests } from "./serverForTests.ts";
import {
  callOf,
  copyOf,
  create,
  expectEqualCopies,
  leaderOf,
  namesAt,
  serviceOn,
  standing,
  type Member,
} from "./processes.ts";

const server = serverForTests();

/** The next version has another column, which no insert names. */
const step = "ALTER TABLE apps ADD COLUMN note TEXT NOT NULL DEFAULT 'none'; UPDATE apps SET note = 'migrated'";
const nextVersion = "99.0.0";
const next = plantedIn([
  {
    find: "const currentSchema = () => ",
    replace: `migrations.push(${JSON.stringify(step)});\nconst currentSchema = () => `,
  },
  { find: `const version = "${version}";`, replace: `const version = "${nextVersion}";` },
]);
const [schema, nextSchema] = [firstSchema, firstSchema + 1].map((one) => one + migrations.length);
// The version is that in the list of members, which one that has just ended has left.
const tooOld = new RegExp(
  `entry \\d+ of the log was written by a newer machines-service \\(schema ${nextSchema}\\), and this is ${version}, which knows schema ${schema}\\. Start (that version again \\(npm install --global machines-service@${nextVersion}\\)|the newer version again)\\. A return to ${version} needs a moment from before the upgrade: `,
);

/** Members that keep their addresses. */
async function three() {
  const service = serviceOn(server.url);
  const places = await Promise.all(
    [1, 2, 3].map(async () => ({ data: folder(), listen: `127.0.0.1:${await freePort()}` })),
  );
  const members: Member[] = [];
  const startAt = async (i: number, env: NodeJS.ProcessEnv): Promise<Member> => {
    const { data, listen } = places[i] as (typeof places)[number];
    return (members[i] = await service.startWith(env, data, "--listen", listen));
  };
  for (const i of places.keys()) await startAt(i, {});
  const leader = members.indexOf(await leaderOf(members));
  return {
    ...{ service, members, leader, standbys: [0, 1, 2].filter((i) => i !== leader) as [number, number] },
    refusedAt: (i: number) => {
      const { data = "", listen = "" } = places[i] ?? {};
      return command(["start", "--data", data, "--listen", listen, ...service.options]);
    },
    startAt,
    /** Replaces the process in a folder. */
    async replace(i: number): Promise<void> {
      const { pid, end } = members[i] as Member;
      signal(pid, "SIGTERM");
      const { code, err } = await end;
      // One that follows ends by itself if the next version leads meanwhile.
      if (code !== 0) expect([code, err]).toEqual([1, expect.stringMatching(tooOld)]);
      await startAt(i, next);
    },
    async list() {
      const { out } = await command(["members", "--json", "--store", service.store]);
      return JSON.parse(out) as { address: string; role: string; version: string; behind: number }[];
    },
  };
}

/** The notes of all Apps of a member's copy. */
const notesAt = (member: Member): string[] =>
  (copyOf(member)["apps"] ?? []).map((row) => String((JSON.parse(row) as { note?: string }).note));

test.for(["the leader last", "the leader first"])(
  "members are replaced one after the other by a version with other tables, %s, and nothing is lost",
  async (order) => {
    const { service, members, leader, standbys, replace, list } = await three();
    const creating = create("app", () => members);
    await creating.more(20);
    const before = { names: new Set(await namesAt(await leaderOf(members))), moment: await momentOf(server) };
    const { data: copy = "" } = members[leader] ?? {};
    const check = await command(["upgrade", "--check", "--data", copy], { ...process.env, ...next });
    expect(check).toMatchObject({ code: 0, out: expect.stringContaining("Replace the members one after the other") });
    for (const i of order === "the leader last" ? [...standbys, leader] : [leader, ...standbys]) {
      await replace(i);
      await creating.more(20);
    }
    await creating.end();
    const leading = await leaderOf(members);
    const names = new Set(await namesAt(leading));
    expect(creating.acknowledged.filter((name) => !names.has(name))).toEqual([]);
    await expectEqualCopies(members);
    for (const one of members) expect(new Set(notesAt(one))).toEqual(new Set(["migrated", "none"]));
    await expect.poll(list).toEqual(
      members
        .map((one) => ({
          ...{ address: one.url, role: one === leading ? "leader" : "standby", version: nextVersion },
          ...{ behind: 0, seq: expect.any(Number), seenSecondsAgo: expect.any(Number) },
        }))
        .sort((a, b) => (a.address < b.address ? -1 : 1)),
    );
    // A new member begins with the tables of the version before, and gets the others where the log has them.
    const fourth = await service.startWith(next);
    await expectEqualCopies([...members, fourth]);
    // The version before takes what was there before the upgrade, and nothing later.
    const past = folder();
    const at = ["export", "--store", service.store, "--key-file", service.keyFile, "--at", before.moment];
    expect(await command([...at, "--data", past])).toMatchObject({ code: 0 });
    const returned = await foreground(past, ["--delays", "none"]);
    const had = new Set(await namesAt({ ...returned, data: past }));
    expect([...before.names].filter((name) => !had.has(name))).toEqual([]);
    expect(had.size).toBeLessThan(names.size);
  },
);

test("a member of the version before never leads after the next one, and says which version it needs", async () => {
  const { members, leader, standbys, startAt, refusedAt, replace } = await three();
  const [kept, replaced] = standbys;
  const creating = create("app", () => members.filter((_, i) => i !== kept));
  await creating.more(20);
  await replace(replaced);
  // It cannot take over, and hears nothing of what comes.
  const old = members[kept] as Member;
  process.kill(old.pid, "SIGSTOP");
  const before = members[leader] as Member;
  process.kill(before.pid, "SIGTERM");
  const first = members[replaced] as Member;
  await leaderOf([first]);
  expect((await before.end).code).toBe(0);
  const { epoch = 0 } = (await standing(first)) ?? {};
  await callOf(first)("POST", "/apps", { name: "with-other-tables", org_slug: "personal" });
  // No member of the next version runs when it continues.
  process.kill(first.pid, "SIGKILL");
  await first.end;
  process.kill(old.pid, "SIGCONT");
  expect(await old.end).toMatchObject({ code: 1, err: expect.stringMatching(tooOld) });
  // Nor does one that is started again, as a supervisor would.
  for (const i of [kept, leader])
    expect(await refusedAt(i)).toMatchObject({ code: 1, err: expect.stringMatching(tooOld) });
  for (const i of [0, 1, 2]) await startAt(i, next);
  const last = await leaderOf(members);
  expect((await standing(last))?.epoch).toBeGreaterThan(epoch);
  await creating.more(20);
  await creating.end();
  const names = new Set(await namesAt(last));
  expect([...creating.acknowledged, "with-other-tables"].filter((name) => !names.has(name))).toEqual([]);
  await expectEqualCopies(members);
});
