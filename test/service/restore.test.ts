// restore: what happens beside it, and what it leaves. A program that does what restic does keeps the repository;
// test/service/backup.test.ts has restic itself.
import { randomBytes } from "node:crypto";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Restic } from "../../service/backup/restic.ts";
import { restoreAll } from "../../service/backup/restore.ts";
import { keyBytes, keyText } from "../../service/store/keyFile.ts";
import { lockData, writeRunning } from "../../service/store/lock.ts";
import { keyFile } from "../../service/store/vault.ts";
import { fakeRepository } from "../support/fakeRestic.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { caller } from "./client.ts";
import { command, folder, foreground } from "./command.ts";

/** A repository with the backup of a stopped service with one App. */
async function backedUp() {
  const { repository, to, from } = fakeRepository();
  const data = folder();
  const service = await foreground(data);
  await caller(service.url, service.token)("POST", "/apps", { name: "shop", org_slug: "personal" });
  expect(await command(["backup", "--data", data, ...to])).toMatchObject({ code: 0, err: "" });
  await command(["stop", "--data", data]);
  return { repository, to, from };
}

/** Restores into a folder. Acts once the contents are there, and before they are placed. */
async function restoreWhile(
  target: string,
  repository: ReturnType<typeof fakeRepository>["repository"],
  act: () => Promise<void>,
) {
  class Held extends Restic {
    override async restore(...args: Parameters<Restic["restore"]>) {
      await super.restore(...args);
      await act();
    }
  }
  const restic = new Held(repository, join(target, "backup", "cache"));
  return restoreAll({ restic, folder: target, volumesOf: () => Promise.reject(new Error("it has no volumes")) });
}

const namesOf = async ({ url, token }: { url: string; token: string }): Promise<string[]> => {
  const { body } = await caller(url, token)("GET", "/apps?org_slug=personal");
  return (body as { apps: { name: string }[] }).apps.map(({ name }) => name);
};

test("neither another restore, an import nor a service begins in a folder while one is restored there", async () => {
  const { repository, from } = await backedUp();
  const target = folder();
  await restoreWhile(target, repository, async () => {
    for (const one of [
      ["restore", ...from],
      ["import", "none"],
      ["start", "--listen", "127.0.0.1:0"],
    ])
      expect(await command([...one, "--data", target])).toMatchObject({
        code: 1,
        err: expect.stringContaining("or restores into it. Wait for its end"),
      });
  });
  expect(await namesOf(await foreground(target))).toEqual(["shop"]);
});

test("a folder whose restore has not ended is served by no service, and the restore can be repeated", async () => {
  const { repository, from } = await backedUp();
  const target = folder();
  await expect(
    restoreWhile(target, repository, () => Promise.reject(new Error("the network is gone"))),
  ).rejects.toThrow("the network is gone");
  for (const one of [
    ["start", "--detach", "--listen", "127.0.0.1:0"],
    ["import", "none"],
  ])
    expect(await command([...one, "--data", target])).toMatchObject({
      code: 1,
      err: expect.stringContaining(`a restore into ${target} has not ended; repeat it`),
    });
  expect(await command(["restore", "--data", target, ...from])).toMatchObject({ code: 0, err: "" });
  expect(await namesOf(await foreground(target))).toEqual(["shop"]);
});

test("a folder whose repeated restore failed at its beginning is served by no service either", async () => {
  const { repository, from } = await backedUp();
  const target = folder();
  await expect(restoreWhile(target, repository, () => Promise.reject(new Error("killed")))).rejects.toThrow("killed");
  class Unreachable extends Restic {
    override restore(): Promise<never> {
      return Promise.reject(new Error("no network"));
    }
  }
  const restic = new Unreachable(repository, join(target, "backup", "cache"));
  const volumesOf = () => Promise.reject(new Error("it has no volumes"));
  await expect(restoreAll({ restic, folder: target, volumesOf })).rejects.toThrow("no network");
  expect((await command(["start", "--detach", "--data", target, "--listen", "127.0.0.1:0"])).code).toBe(1);
  expect((await command(["restore", "--data", target, ...from])).code).toBe(0);
});

test("a restore that ended just after it had placed the store has ended", async () => {
  const { from } = await backedUp();
  const target = folder();
  expect(await command(["restore", "--data", target, ...from])).toMatchObject({ code: 0, err: "" });
  mkdirSync(join(target, "backup", "restoring"));
  expect(existsSync(join(target, "service.db"))).toBe(true);
  expect(await namesOf(await foreground(target))).toEqual(["shop"]);
});

test("a backup of a stopped service is restored for the engines that the service had", async () => {
  const { to, from } = fakeRepository();
  const data = folder();
  await foreground(data, ["--postgres", "embedded"]);
  await command(["stop", "--data", data]);
  expect(await command(["backup", "--data", data, ...to])).toMatchObject({ code: 0, err: "" });
  const [made] = JSON.parse((await command(["backup", "list", ...from, "--json"])).out) as object[];
  expect(made).toMatchObject({ runtime: "simulated", postgres: "embedded" });
  const target = folder();
  expect(await command(["restore", "--data", target, ...from])).toMatchObject({
    code: 0,
    out: expect.stringMatching(/start .*--postgres embedded\n$/),
  });
  expect(await command(["start", "--data", target, "--listen", "127.0.0.1:0"])).toMatchObject({
    code: 1,
    err: expect.stringContaining("--postgres simulated: the backup"),
  });
  await foreground(target, ["--postgres", "embedded"]);
});

test("a backup of a stopped service whose engines are not known is restored for any", async () => {
  const { to, from } = fakeRepository();
  const data = folder();
  await foreground(data);
  await command(["stop", "--data", data]);
  // As an earlier version left the folder.
  rmSync(join(data, "engines.json"));
  expect(await command(["backup", "--data", data, ...to])).toMatchObject({ code: 0, err: "" });
  const target = folder();
  expect(await command(["restore", "--data", target, ...from])).toMatchObject({
    code: 0,
    out: expect.stringContaining("with the --runtime and --postgres that it had"),
  });
  // The backup of a restored folder has what that one has.
  expect(await command(["backup", "--data", target, ...to])).toMatchObject({ code: 0, err: "" });
  await foreground(target, ["--postgres", "embedded"]);
});

const isRoot = process.getuid?.() === 0;

test.skipIf(!isRoot)(
  "what root restores, imports and changes in the folder of another user is that user's",
  async () => {
    const { from, to } = await backedUp();
    const restored = folder();
    const imported = folder();
    for (const data of [restored, imported]) {
      mkdirSync(data);
      chownSync(data, 65534, 65534);
    }
    expect(await command(["restore", "--data", restored, ...from])).toMatchObject({ code: 0, err: "" });
    const [{ id }] = JSON.parse((await command(["token", "list", "--data", restored, "--json"])).out) as [
      { id: string },
    ];
    expect(await command(["token", "rotate", id, "--data", restored])).toMatchObject({ code: 0 });
    expect(await command(["backup", "--data", restored, ...to])).toMatchObject({ code: 0, err: "" });
    const file = join(restored, "..", "export.machines");
    expect(await command(["export", file, "--data", restored])).toMatchObject({ code: 0 });
    expect(await command(["import", file, "--data", imported])).toMatchObject({ code: 0 });
    const ownersIn = (data: string) =>
      readdirSync(data, { recursive: true, encoding: "utf8" })
        .filter((name) => !name.startsWith(join("backup", "cache")))
        .map((name) => [name, statSync(join(data, name)).uid]);
    for (const data of [restored, imported]) {
      const owners = ownersIn(data);
      expect(owners.map(([name]) => name)).toEqual(expect.arrayContaining(["service.db", "service.lock", "token"]));
      expect(owners.filter(([, uid]) => uid !== 65534)).toEqual([]);
    }
  },
);

test.each([
  [0, [], ""],
  [1, ["vol_1: restic failed"], "machines-service: vol_1: restic failed\n"],
])("a restore of an App exits with %i if it could not restore %j", async (code, missing, err) => {
  const data = mkdtempSync(join(tmpdir(), "machines-app-"));
  afterThisTest(() => rmSync(data, { recursive: true, force: true }));
  // What the running service does is in test/runtime/backup.test.ts.
  const restored = { backup: "20261130T000000Z", machines: 1, volumes: 1, missing };
  const server = createServer((_, answer) => answer.end(JSON.stringify({ kind: "restore an App", restored })));
  afterThisTest(() => void server.close());
  await new Promise<void>((listens) => server.listen(0, "127.0.0.1", listens));
  const { port } = server.address() as AddressInfo;
  writeFileSync(keyFile(data), keyText(randomBytes(keyBytes)));
  const lock = lockData(data);
  try {
    writeRunning(data, { url: `http://127.0.0.1:${port}`, pid: process.pid, data });
    expect(await command(["restore", "--app", "shop", "--data", data])).toEqual({
      ...{ code, err },
      out: "App shop is as it was in backup 20261130T000000Z: 1 Machines, 1 volumes\n",
    });
  } finally {
    lock.release();
  }
});
