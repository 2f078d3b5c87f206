// backup and restore: everything that a service has, in a repository of restic. Volumes and clusters are simulated here;
// test/runtime/backup.test.ts has real ones.
import { existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { untilNext } from "../../service/backup/backups.ts";
import { keptBy, readPolicy } from "../../service/backup/policy.ts";
import { findRestic, startS3, testRepository, type TestRepository } from "../support/restic.ts";
import { wholeRun } from "../support/patience.mts";
import { thoroughTest } from "../support/thorough.ts";
import { caller } from "./client.ts";
import { command, folder, foreground } from "./command.ts";

describe("the policy", () => {
  const dailyFor = (days: number) =>
    Array.from({ length: days }, (_, i) => ({ id: `${i}`, time: Date.UTC(2026, 0, 1 + i, 3), isComplete: true }));

  test("it keeps the newest of each of the last days, weeks and months", () => {
    const backups = dailyFor(365);
    const kept = keptBy({ days: 7, weeks: 4, months: 12 }, backups);
    const times = backups.filter(({ id }) => kept.has(id)).map(({ time }) => new Date(time).toISOString().slice(0, 10));
    expect(times).toEqual([
      ...["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31", "2026-06-30", "2026-07-31"],
      ...["2026-08-31", "2026-09-30", "2026-10-31", "2026-11-30", "2026-12-13", "2026-12-20", "2026-12-25"],
      ...["2026-12-26", "2026-12-27", "2026-12-28", "2026-12-29", "2026-12-30", "2026-12-31"],
    ]);
  });

  test("the newest complete backup is kept, also when all later ones are incomplete", () => {
    const backups = dailyFor(30).map((one, i) => ({ ...one, isComplete: i === 0 }));
    expect([...keptBy({ days: 2, weeks: 0, months: 0 }, backups)].sort()).toEqual(["0", "28", "29"]);
  });

  test.each(["7d,4w,6m", "1m", "30d,12m"])("it can be %s", (text) => expect(readPolicy(text)).toBeDefined());
  test.each(["", "7", "7d,7d", "0d", "7y", "d"])("it cannot be %j", (text) => expect(readPolicy(text)).toBeUndefined());
});

describe("the schedule", () => {
  const hour = 3600_000;
  const now = Date.UTC(2026, 0, 1);
  const ended = (result: "complete" | "failed", at: number) =>
    ({ result, begun: at, ended: at, addedBytes: 0, missing: [] }) as const;

  test("the next one comes at once, after the interval, or ten minutes after a failure", () => {
    expect(untilNext(undefined, 24 * hour, now)).toBe(0);
    expect(untilNext(ended("complete", now - hour), 24 * hour, now)).toBe(23 * hour);
    expect(untilNext(ended("complete", now - 48 * hour), 24 * hour, now)).toBe(0);
    expect(untilNext(ended("failed", now - 60_000), 24 * hour, now)).toBe(540_000);
  });

  test("one that was made while the clock was ahead delays the next one by the interval at most", () => {
    for (const result of ["complete", "failed"] as const)
      expect(untilNext(ended(result, now + 8760 * hour), 24 * hour, now)).toBe(24 * hour);
  });
});

describe("a backup", () => {
  let restic: string | undefined;
  let repository: TestRepository;
  const run = (...args: string[]) => command(args, repository.env);
  beforeAll(async () => {
    restic = await findRestic();
  }, wholeRun);
  beforeEach(({ skip }) => {
    skip(restic === undefined);
    repository = testRepository(restic ?? "");
  });

  /** A running service with an App that has a secret and a Machine. */
  async function withApp(...more: string[]) {
    const data = folder();
    const service = await foreground(data, more, repository.env);
    const call = caller(service.url, service.token);
    await call("POST", "/apps", { name: "shop", org_slug: "personal" });
    await call("POST", "/apps/shop/secrets", { values: { KEY: "value" } });
    const { body: machine } = await call("POST", "/apps/shop/machines", {
      name: "web",
      region: "ams",
      config: { image: "registry.example.com/shop:1" },
    });
    return { ...service, data, call, machine };
  }

  test("it is restored into an empty folder: the same Machines, secrets and token, and another identity", async () => {
    const { data, machine, call, token } = await withApp();
    const secrets = await call("GET", "/apps/shop/secrets?show_secrets=true");
    const made = await run("backup", "--data", data, "--to", repository.at, "--json");
    expect(made).toMatchObject({ code: 0, err: "" });
    const { id } = JSON.parse(made.out) as { id: string };
    expect((await run("backup", "list", "--from", repository.at)).out).toMatch(new RegExp(`${id} .* complete`));
    expect(await run("backup", "verify", "--from", repository.at)).toMatchObject({ code: 0, err: "" });
    const target = folder();
    expect(await run("restore", "--from", repository.at, "--data", target)).toMatchObject({ code: 0, err: "" });
    const restored = await foreground(target);
    expect(restored.token).toBe(token);
    const again = caller(restored.url, token);
    expect((await again("GET", `/apps/shop/machines/${machine.id}`)).body).toMatchObject({
      id: machine.id,
      name: "web",
    });
    expect((await again("GET", "/apps/shop/secrets?show_secrets=true")).body).toEqual(secrets.body);
    expect(readFileSync(join(target, "history.db")).length).toBeGreaterThan(0);
    // It must not act for what still runs for the original.
    expect(existsSync(join(data, "data-id"))).toBe(true);
    expect(readFileSync(join(target, "data-id"), "utf8")).not.toBe(readFileSync(join(data, "data-id"), "utf8"));
    // Nothing is left of the way.
    expect(readdirSync(join(target, "backup")).sort()).toEqual(["cache", "lineage"]);
    expect(readdirSync(join(data, "backup")).sort()).toEqual(["cache", "lineage"]);
    expect(await run("restore", "--from", repository.at, "--data", target)).toMatchObject({ code: 1 });
  });

  thoroughTest("of services that share a repository, one has to be named", async () => {
    const services = [await withApp(), await withApp()];
    for (const { data, call, machine } of services) {
      await call("POST", `/apps/shop/machines/${machine.id}/metadata/of`, { value: data });
      expect(await run("backup", "--data", data, "--to", repository.at)).toMatchObject({ code: 0, err: "" });
    }
    const from = ["--from", repository.at];
    const listed = JSON.parse((await run("backup", "list", ...from, "--json")).out) as { lineage: string }[];
    const [first = "", second = ""] = listed.map(({ lineage }) => lineage);
    expect((await run("backup", "list", ...from)).out).toMatch(new RegExp(`SERVICE\\n.*${first}\\n.*${second}\\n`));
    const refusal = `the repository has backups of 2 services: ${first}, ${second}; name one with --service`;
    const target = folder();
    const refused = await run("restore", ...from, "--data", target);
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining(refusal) });
    expect(await run("restore", ...from, "--data", target, "--service", first)).toMatchObject({ code: 0, err: "" });
    const restored = await foreground(target);
    const { token, data, machine } = services[0] ?? (await withApp());
    const metadata = await caller(restored.url, token)("GET", `/apps/shop/machines/${machine.id}/metadata`);
    expect(metadata.body).toMatchObject({ of: data });
    // A service knows its own backups.
    expect(await run("backup", "verify", ...from, "--data", services[1]?.data ?? "")).toMatchObject({
      code: 0,
      err: "",
    });
  });

  thoroughTest("a stopped service is backed up too, and a change makes another one", async () => {
    const { data, pid, end } = await withApp();
    process.kill(pid, "SIGTERM");
    await end;
    expect(await run("backup", "--data", data, "--to", repository.at)).toMatchObject({ code: 0, err: "" });
    const list = JSON.parse((await run("backup", "list", "--json", "--from", repository.at)).out) as { missing: [] }[];
    expect(list.at(-1)).toMatchObject({ runtime: "simulated", missing: [] });
  });

  thoroughTest("one that is requested while the service creates its repository does not damage it", async () => {
    const { data } = await withApp("--backup", repository.at);
    expect(await run("backup", "--data", data)).toMatchObject({ code: 0, err: "" });
    expect(await run("backup", "verify", "--data", data)).toMatchObject({ code: 0, err: "" });
    expect(readdirSync(join(repository.at, "keys"))).toHaveLength(1);
  });

  thoroughTest("verify finds a damaged repository", async () => {
    const own = testRepository(restic ?? "");
    const { data } = await withApp();
    expect(await command(["backup", "--data", data, "--to", own.at], own.env)).toMatchObject({ code: 0 });
    const packs = readdirSync(join(own.at, "data"), { recursive: true, withFileTypes: true }).filter((one) =>
      one.isFile(),
    );
    for (const one of packs) {
      const file = join(one.parentPath, one.name);
      truncateSync(file, statSync(file).size - 1);
    }
    // What restic keeps of the repository would hide it.
    rmSync(join(data, "backup", "cache"), { recursive: true });
    const { code, err } = await command(["backup", "verify", "--data", data, "--from", own.at], own.env);
    expect(code).toBe(1);
    expect(err).toMatch(/repository|cannot be restored/);
  });

  thoroughTest(
    "the service makes backups on schedule, says so in its metrics and status, and a restart makes none that is not due",
    async () => {
      const own = testRepository(restic ?? "");
      const data = folder();
      const options = ["--backup", own.at, "--backup-every", "12h"];
      const first = await foreground(data, options, own.env);
      const list = async () =>
        JSON.parse((await command(["backup", "list", "--json", "--data", data], own.env)).out) as [];
      const metrics = async ({ url, token }: { readonly url: string; readonly token: string }) =>
        (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text();
      await expect.poll(() => metrics(first)).toContain('machines_service_backup_last_result{result="complete"} 1');
      expect(await metrics(first)).toContain("machines_service_backup_interval_seconds 43200");
      expect(await list()).toHaveLength(1);
      expect((await command(["status", "--data", data])).out).toMatch(/last backup: \w+, complete, just now/);
      process.kill(first.pid, "SIGTERM");
      await first.end;
      const second = await foreground(data, options, own.env);
      expect(await metrics(second)).toContain('machines_service_backup_last_result{result="complete"} 1');
      expect(await list()).toHaveLength(1);
      // The repository of the service needs no option.
      expect(await command(["backup", "--data", data])).toMatchObject({ code: 0, err: "" });
    },
  );

  thoroughTest("a backup that fails is reported, with the reason", async () => {
    const own = testRepository(restic ?? "");
    writeFileSync(join(own.at, "..", "other"), "wrong\n");
    const data = folder();
    const { data: from } = await withApp();
    await command(["backup", "--data", from, "--to", own.at], own.env);
    const env = { ...own.env, MACHINES_SERVICE_BACKUP_PASSPHRASE_FILE: join(own.at, "..", "other") };
    await foreground(data, ["--backup", own.at], env);
    await expect
      .poll(async () => (await command(["status", "--data", data])).out)
      .toContain("the last backup failed just now: the passphrase does not open the backups");
  });

  test("without restic, without a passphrase and with a wrong policy, the start says what to do", async () => {
    const start = (...args: string[]) => command(["start", "--data", folder(), "--listen", "127.0.0.1:0", ...args]);
    const at = repository.at;
    expect((await start("--backup", at, "--restic", "/no/restic", "--backup-passphrase-file", "x")).err).toMatch(
      /\/no\/restic was not found: install restic/,
    );
    expect((await start("--backup", at, "--restic", restic ?? "")).err).toMatch(/add --backup-passphrase-file or/);
    expect((await start("--backup", at, "--backup-keep", "7y")).err).toMatch(/--backup-keep takes .* got "7y"/);
    expect((await start("--backup-every", "1h")).err).toMatch(/--backup-every needs --backup/);
  });

  thoroughTest(
    "a service that is killed while it makes one continues: the repository is usable, and nothing is left",
    async () => {
      const options = ["--backup", repository.at];
      const data = folder();
      const first = await foreground(data, options, repository.env);
      const staging = join(data, "backup", "staging");
      await expect.poll(() => existsSync(staging), { interval: 1 }).toBe(true);
      process.kill(first.pid, "SIGKILL");
      await first.end;
      expect(existsSync(staging)).toBe(true);
      await foreground(data, options, repository.env);
      await expect.poll(async () => (await command(["status", "--data", data])).out).toContain("complete, just now");
      expect(existsSync(staging)).toBe(false);
      expect(await command(["backup", "--data", data])).toMatchObject({ code: 0, err: "" });
      expect(await command(["backup", "verify", "--data", data])).toMatchObject({ code: 0, err: "" });
      expect(readdirSync(join(repository.at, "locks"))).toEqual([]);
    },
  );

  thoroughTest("it is kept by a server with the interface of S3, whose credentials are in a file", async () => {
    const s3 = await startS3();
    if (!s3) return;
    const { data } = await withApp();
    const file = join(data, "..", "environment");
    writeFileSync(
      file,
      Object.entries(s3.variables)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(""),
    );
    const options = ["--backup-environment", file];
    expect(await run("backup", "--data", data, "--to", s3.url, ...options)).toMatchObject({ code: 0, err: "" });
    expect(await run("backup", "verify", "--data", data, "--from", s3.url, ...options)).toMatchObject({ code: 0 });
    const target = folder();
    expect(await run("restore", "--data", target, "--from", s3.url, ...options)).toMatchObject({ code: 0, err: "" });
  });
});
