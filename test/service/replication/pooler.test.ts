// Members whose database is behind PgBouncer, in each of its modes (F97).
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { findPooler, type PoolerProgram } from "../../../service/runtime/postgres/pooler.ts";
import { leaveOut } from "../../../tools/lib/leftOut.mjs";
import { command, folder, foreground } from "../command.ts";
import { startPooler } from "./pooled.ts";
import { serverForTests } from "./serverForTests.ts";
import { callOf, create, expectEqualCopies, leaderOf, namesAt, serviceOn, type Member } from "./processes.ts";

const installed = findPooler();
if (!installed) leaveOut("members whose database is behind PgBouncer", "it is not installed");

const ok = async (...args: string[]): Promise<string> => {
  const { code, out, err } = await command(args);
  expect([code, err]).toEqual([0, expect.any(String)]);
  return out;
};

async function stop({ pid, end }: Pick<Member, "pid" | "end">): Promise<void> {
  process.kill(pid, "SIGTERM");
  expect((await end).code).toBe(0);
}

describe.runIf(installed)("a database behind PgBouncer", () => {
  const server = serverForTests();

  test.for(["session", "transaction", "statement"] as const)(
    "members begin, follow, take over and hand over through a pooler in %s mode",
    async (mode) => {
      const service = serviceOn(await startPooler(installed as PoolerProgram, server, mode));
      const members = [await service.start(), await service.start(), await service.start()];
      const leader = await leaderOf(members);
      let running: readonly Member[] = members;
      const creating = create("app", () => running);
      await creating.more(20);
      const killed = leader;
      running = members.filter((one) => one !== killed);
      process.kill(killed.pid, "SIGKILL");
      const second = await leaderOf(running);
      await creating.more(20);
      const again = await service.start(killed.data);
      running = [...running.filter((one) => one !== second), again];
      await stop(second);
      const third = await leaderOf(running);
      await creating.more(20);
      await creating.end();
      const names = new Set(await namesAt(third));
      expect(creating.acknowledged.filter((name) => !names.has(name))).toEqual([]);
      await expectEqualCopies(running);
    },
  );

  test.for(["session", "transaction", "statement"] as const)(
    "data are moved in and out, and get another key, through a pooler in %s mode",
    async (mode) => {
      const alone = folder();
      const single = await foreground(alone, ["--delays", "none"]);
      await callOf({ ...single, data: alone })("POST", "/apps", { name: "web", org_slug: "personal" });
      await stop(single);
      const service = serviceOn(await startPooler(installed as PoolerProgram, server, mode));
      const store = ["--store", service.store, "--key-file"];
      await ok("import", "--data", alone, ...store, service.keyFile);
      const member = await service.start();
      await callOf(member)("POST", "/apps", { name: "more", org_slug: "personal" });
      await stop(member);
      const nextKey = join(dirname(service.keyFile), "next");
      writeFileSync(nextKey, await ok("key", "new"), { mode: 0o600 });
      await ok("key", "rotate", ...store, service.keyFile, "--new-key-file", nextKey);
      const out = folder();
      await ok("export", "--data", out, ...store, nextKey);
      const last = await foreground(out, ["--delays", "none"]);
      expect(last.token).toBe(readFileSync(join(alone, "token"), "utf8").trim());
      expect(await namesAt({ ...last, data: out })).toEqual(["web", "more"]);
    },
  );
});
