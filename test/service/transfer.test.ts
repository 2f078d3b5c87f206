// The data as a whole: reset, exported and imported, upgraded, and refused when damaged.
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createService, startLocal, type Service } from "../../service/index.ts";
import { exportStore, importStore } from "../../service/store/transfer.ts";
import { version } from "../../service/version.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { caller } from "./client.ts";
import { command, folder, foreground, start } from "./command.ts";
import { plantMigration, writeOldFolder } from "./oldFolder.ts";

const secret = "a-secret-nobody-may-read";

/** Sends a request to a service in this process. */
async function ask(service: Service, method: "GET" | "POST", url: string, payload?: object) {
  const headers = { authorization: `Bearer ${service.token}` };
  const answer = await service.app.inject({ method, url: `/v1${url}`, headers, ...(payload ? { payload } : {}) });
  return { status: answer.statusCode, body: answer.json() };
}

/** A data folder with an App, a secret and a Machine; returns the token. */
async function filled(data: string): Promise<string> {
  const service = createService({ data, delays: "none" });
  await ask(service, "POST", "/apps", { name: "web", org_slug: "personal" });
  await ask(service, "POST", "/apps/web/secrets/PASSWORD", { value: secret });
  await ask(service, "POST", "/apps/web/machines", { name: "one", config: { image: "nginx" } });
  const { token } = service;
  await service.close();
  return token;
}

/** The contents of a data folder, as a service shows them. */
async function held(data: string) {
  const service = createService({ data });
  const secrets = (await ask(service, "GET", "/apps/web/secrets?show_secrets=true")).body.secrets;
  const machines = (await ask(service, "GET", "/apps/web/machines")).body;
  const { token } = service;
  await service.close();
  return { token, value: secrets?.[0]?.value, machine: machines[0]?.name };
}

const modes = (data: string): string[] =>
  readdirSync(data).flatMap((name) => {
    const mode = statSync(join(data, name)).mode & 0o777;
    return (mode & 0o077) === 0 ? [] : [`${name} ${mode.toString(8)}`];
  });

test("other users cannot read the files of a running service, whatever the umask and earlier modes", async () => {
  const data = folder();
  await filled(data);
  const before = process.umask(0);
  try {
    for (const name of ["service.db", "key", "token"]) chmodSync(join(data, name), 0o644);
    chmodSync(data, 0o755);
    await start(data);
    const { url, token } = await startLocal({ data });
    await caller(url, token)("POST", "/apps", { name: "more", org_slug: "personal" });
  } finally {
    process.umask(before);
  }
  expect(readdirSync(data)).toEqual(
    expect.arrayContaining(["service.db", "service.db-wal", "service.db-shm", "service.log"]),
  );
  expect(statSync(data).mode & 0o777).toBe(0o700);
  expect(modes(data).filter((line) => !line.includes(".lock"))).toEqual([]);
});

test("reset empties the store and keeps its token; it needs --yes, and a stopped service", async () => {
  const data = folder();
  expect((await command(["reset", "--yes", "--data", data])).err).toContain("there is no service in");
  const token = await filled(data);
  expect(await command(["reset", "--data", data])).toMatchObject({
    code: 1,
    err: expect.stringContaining("add --yes if that is what you want"),
  });
  const { pid } = await startLocal({ data });
  expect(await command(["reset", "--yes", "--data", data])).toMatchObject({
    code: 1,
    err: expect.stringContaining(`(pid ${pid}, `),
  });
  await command(["stop", "--data", data]);
  expect((await held(data)).value).toBe(secret);

  expect(await command(["reset", "--yes", "--data", data])).toMatchObject({ code: 0, err: "" });
  expect(readFileSync(join(data, "token"), "utf8").trim()).toBe(token);
  const service = createService({ data });
  expect(service.token).toBe(token);
  expect((await ask(service, "GET", "/apps/web")).status).toBe(404);
  await service.close();
});

test("an export is one private file with everything, also from a running service; import restores it elsewhere", async () => {
  const [data, other] = [folder(), folder()];
  const token = await filled(data);
  const { url, pid } = await foreground(data, ["--delays", "none"]);
  const call = caller(url, token);
  await call("POST", "/apps/web/machines", { name: "late", config: { image: "nginx" } });
  const file = join(data, "../all.machines");
  const exported = await command(["export", file, "--data", data]);
  expect(exported).toMatchObject({
    code: 0,
    err: expect.stringMatching(/^machines-service: an export has no rows of/),
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect((await call("GET", "/apps/web")).body.machine_count).toBe(2);
  expect((await command(["export", file, "--data", data])).err).toContain("exists already; choose another name");
  process.kill(pid, "SIGTERM");

  expect(await command(["import", file, "--data", other])).toMatchObject({ code: 0, err: "" });
  const key = readFileSync(join(data, "key"), "utf8").trim();
  expect(readFileSync(file).includes(key)).toBe(true);
  expect(readFileSync(join(other, "service.db")).includes(key)).toBe(false);
  expect(readFileSync(join(other, "service.db")).includes(token)).toBe(false);
  expect(modes(other).filter((line) => !line.includes(".lock"))).toEqual([]);
  expect(await held(other)).toEqual({ token, value: secret, machine: "one" });
  expect(readdirSync(other).filter((name) => /\d{2,}/.test(name))).toEqual([]);
});

test("an import replaces no existing data", async () => {
  const [data, taken, empty] = [folder(), folder(), folder()];
  await filled(data);
  await filled(taken);
  const file = join(data, "../all.machines");
  await command(["export", file, "--data", data]);
  const refused = async (source: string, target: string): Promise<string> => {
    const { code, out, err } = await command(["import", source, "--data", target]);
    expect([code, out]).toEqual([1, ""]);
    expect(err.trim().split("\n")).toHaveLength(1);
    return err;
  };
  expect(await refused(file, taken)).toContain("service.db exists already");
  const { pid } = await startLocal({ data: taken });
  expect(await refused(file, taken)).toContain(`pid ${pid}`);
  await command(["stop", "--data", taken]);
  rmSync(join(taken, "service.db"));
  expect(await refused(file, taken)).toContain("key belongs to other data; move it away first");

  expect(await refused("/nowhere/all.machines", empty)).toBe(
    "machines-service: there is no file /nowhere/all.machines\n",
  );
  const text = join(data, "../text");
  writeFileSync(text, "This is no export, and long enough to be taken for one by nobody at all.".repeat(20));
  expect(await refused(text, empty)).toContain("text is not an export of machines-service");
  expect(await refused(join(data, "service.db"), empty)).toContain("service.db is not an export of machines-service");
  const newer = new DatabaseSync(file);
  newer.exec("PRAGMA user_version = 999");
  newer.close();
  expect(await refused(file, empty)).toContain(`was written by machines-service ${version} (schema 999)`);
  expect(readdirSync(empty)).toEqual(["service.lock"]);
});

test("restoring a backup in place of a damaged store restores its contents", async () => {
  const data = folder();
  writeOldFolder(data);
  const store = join(data, "service.db");
  copyFileSync(store, `${store}.backup-13`);
  await createService({ data }).close();
  const pages = readFileSync(store);
  pages.fill("x", 4096 * 3, 4096 * 20); // after the part that is read on opening
  writeFileSync(store, pages);
  const { code, err } = await command(["start", "--data", data, "--listen", "127.0.0.1:0"]);
  expect([code, err]).toEqual([1, expect.stringContaining(`${store} is damaged. Put a backup in its place`)]);
  expect(err).toContain("(next to it: service.db.backup-13)");
  expect(err.trim().split("\n")).toHaveLength(1);
  for (const end of ["", "-wal", "-shm", "-mark"]) rmSync(store + end, { force: true });
  writeFileSync(store, readFileSync(join(data, "service.db.backup-13")));
  const service = createService({ data });
  expect((await ask(service, "GET", "/apps/web")).status).toBe(200);
  await service.close();
});

test("importing an export in place of a damaged store restores everything, including secrets", async () => {
  const data = folder();
  const token = await filled(data);
  const file = join(data, "../all.machines");
  await command(["export", file, "--data", data]);
  writeFileSync(join(data, "service.db"), Buffer.alloc(8192, "garbage"));
  expect((await command(["export", `${file}-2`, "--data", data])).err).toContain("service.db is damaged");
  expect(existsSync(`${file}-2`)).toBe(false);
  for (const end of ["", "-wal", "-shm", "-mark"]) rmSync(join(data, `service.db${end}`), { force: true });
  expect(await command(["import", file, "--data", data])).toMatchObject({ code: 0, err: "" });
  expect(await held(data)).toEqual({ token, value: secret, machine: "one" });
});

test("F46 a store whose log is lost is refused with a sentence, not silently replaced", async () => {
  for (const lose of ["removed", "cut"]) {
    const data = folder();
    const running = createService({ data, delays: "none" });
    await ask(running, "POST", "/apps", { name: "web", org_slug: "personal" });
    const copied = folder();
    mkdirSync(copied, { recursive: true });
    for (const name of ["service.db", "key", "token"]) copyFileSync(join(data, name), join(copied, name));
    if (lose === "cut") writeFileSync(join(copied, "service.db-wal"), "");
    await running.close();
    const { code, err } = await command(["start", "--data", copied, "--listen", "127.0.0.1:0"]);
    expect([lose, code, err.trim().split("\n").length]).toEqual([lose, 1, 1]);
    expect(err).toContain("service.db is empty, and the key and the token next to it exist: service.db-wal");
    expect(err).toContain(
      "to begin with an empty store, move away service.db and all files whose name begins with service.db-",
    );
    for (const name of readdirSync(copied)) if (name.startsWith("service.db")) rmSync(join(copied, name));
    await createService({ data: copied }).close();
  }
});

test("F28 a store whose log was removed after a partial checkpoint is not served as if complete", async () => {
  const data = folder();
  const running = createService({ data, delays: "none" });
  await ask(running, "POST", "/apps", { name: "first", org_slug: "personal" });
  await running.close(); // copies the log
  const again = createService({ data, delays: "none" });
  await ask(again, "POST", "/apps", { name: "second", org_slug: "personal" });
  const all = ["service.db", "service.db-wal", "service.db-mark", "key", "token"];
  const copyOf = (...names: string[]): string => {
    const copied = folder();
    mkdirSync(copied, { recursive: true });
    for (const name of names) copyFileSync(join(data, name), join(copied, name));
    return copied;
  };
  const [whole, cut, bare] = [copyOf(...all), copyOf(...all.filter((name) => !name.endsWith("-wal"))), copyOf(...all)];
  await again.close();

  const served = createService({ data: whole });
  expect((await ask(served, "GET", "/apps/second")).status).toBe(200);
  await served.close();

  const older =
    "service.db is older than its last change: service.db-wal is lost or truncated, or an older copy replaced the store.";
  for (const words of [
    ["start", "--data", cut, "--listen", "127.0.0.1:0"],
    ["token", "list", "--data", cut],
    ["export", join(cut, "../all.machines"), "--data", cut],
  ]) {
    const { code, err } = await command(words);
    expect([words[0], code, err.trim().split("\n").length, err]).toEqual([
      words[0],
      1,
      1,
      expect.stringContaining(older),
    ]);
  }
  rmSync(join(cut, "service.db-mark"));
  const continued = createService({ data: cut });
  expect((await ask(continued, "GET", "/apps/first")).status).toBe(200);
  expect((await ask(continued, "GET", "/apps/second")).status).toBe(404);
  await continued.close();

  rmSync(join(bare, "service.db"));
  const { code, err } = await command(["start", "--data", bare, "--listen", "127.0.0.1:0"]);
  expect([code, err]).toEqual([1, expect.stringContaining("service.db is missing, but service.db-mark next to it")]);
  expect(existsSync(join(bare, "service.db"))).toBe(false);
});

test("F46 a lock with other content is refused with a sentence", async () => {
  const data = folder();
  mkdirSync(data, { recursive: true });
  writeFileSync(join(data, "service.lock"), "this is no lock, and long enough to be read as a database ".repeat(50));
  const { code, err } = await command(["start", "--data", data, "--listen", "127.0.0.1:0"]);
  expect([code, err]).toEqual([
    1,
    `machines-service: ${join(data, "service.lock")} cannot be used as a lock: it holds something else. Move it away; a new one is created.\n`,
  ]);
});

test("F46 a link in a data folder is not followed, neither to change permissions nor to write a draft", async () => {
  const data = folder();
  await filled(data);
  const elsewhere = join(data, "../elsewhere");
  writeFileSync(elsewhere, readFileSync(join(data, "token")), { mode: 0o644 });
  chmodSync(elsewhere, 0o644);
  rmSync(join(data, "token"));
  symlinkSync(elsewhere, join(data, "token"));
  await createService({ data }).close();
  expect(statSync(elsewhere).mode & 0o777).toBe(0o644);
  const target = join(data, "../target");
  writeFileSync(target, "precious");
  symlinkSync(target, join(data, `../all.machines.${process.pid}`));
  exportStore(data, join(data, "../all.machines"));
  expect(readFileSync(target, "utf8")).toBe("precious");
});

test("F46 partial files of a killed upgrade or import are removed by the next one", async () => {
  const data = folder();
  writeOldFolder(data);
  afterThisTest(plantMigration());
  writeFileSync(join(data, "service.db.backup-13.4242"), "half");
  await createService({ data }).close();
  expect(readdirSync(data).filter((name) => name.includes("backup"))).toEqual(["service.db.backup-13"]);
  const [whole, other] = [join(data, "../whole.machines"), folder()];
  exportStore(data, whole);
  mkdirSync(other, { recursive: true });
  writeFileSync(join(other, "service.db.4242"), "half");
  importStore(other, whole);
  expect(readdirSync(other).filter((name) => /\d/.test(name))).toEqual([]);
});
