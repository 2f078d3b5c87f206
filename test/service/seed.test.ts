// seed: the objects of a file exist afterwards, once, in the running service, or in a new one that is not running afterwards.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sentence } from "../../service/commands/sentence.ts";
import { createService, startLocal } from "../../service/index.ts";
import { seed as seedIn } from "../../service/local/seed.ts";
import { lookUp } from "../../service/runtime/dns.ts";
import { addToken } from "../../service/store/tokens.ts";
import { caller } from "./client.ts";
import { command, folder, start } from "./command.ts";

const example = /\n## Seed\n.*?```json\n(.*?)```/s.exec(
  readFileSync(join(__dirname, "../../docs/service.md"), "utf8"),
)?.[1];

/** Writes a seed file beside a data folder. */
function fileOf(data: string, content: object | string): string {
  const file = join(data, "../seed.json");
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

const seed = (data: string, content: object | string) => command(["seed", fileOf(data, content), "--data", data]);

/** The table that seed prints, without its headings. */
const tallies = (out: string): string[] =>
  out
    .trimEnd()
    .split("\n")
    .slice(1)
    .map((line) => line.replace(/ +/g, " "));

test("the documented example fills an unused folder, and changes nothing again", async () => {
  const data = folder();
  const first = await seed(data, example ?? "");
  expect([first.code, first.err]).toEqual([0, ""]);
  expect(tallies(first.out)).toEqual([
    "organizations 1 0",
    "images 1 0",
    "hostnames 1 0",
    "apps 1 0",
    "secrets 1 0",
    "volumes 1 0",
    "machines 2 0",
  ]);
  expect(await command(["status", "--data", data])).toMatchObject({ code: 3 });
  await start(data);
  expect(tallies((await seed(data, example ?? "")).out)).toEqual([
    "organizations 0 1",
    "images 1 0",
    "hostnames 1 0",
    "apps 0 1",
    "secrets 0 1",
    "volumes 0 1",
    "machines 0 2",
  ]);
  await command(["stop", "--data", data]);

  const service = createService({ data, delays: "none" });
  const { store } = service.context;
  addToken(store, "team-token", { slug: "team", expiresAt: null }, 0);
  const url = await service.app.listen({ host: "127.0.0.1", port: 0 });
  const call = caller(url, "team-token");
  const [volume, ...noMore] = (await call("GET", "/apps/shop/volumes")).body;
  expect(noMore).toEqual([]);
  const machines = (await call("GET", "/apps/shop/machines")).body;
  const web = machines.find(({ name }: { name: string }) => name === "web");
  expect(machines).toHaveLength(2);
  expect(web.config.mounts).toEqual([expect.objectContaining({ volume: volume.id, path: "/data" })]);
  expect(web.image_ref).toMatchObject({
    digest: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    labels: { commit: "4c2d8d1" },
  });
  expect(volume).toMatchObject({ region: "fra", size_gb: 10, attached_machine_id: web.id });
  expect((await call("GET", "/apps/shop/secrets?show_secrets=true")).body.secrets).toEqual([
    expect.objectContaining({ name: "DATABASE_URL", value: "postgres://shop:secret@db.internal/shop" }),
  ]);
  const needs = { a: [], aaaa: [], challenge: "", ownership: "" };
  expect(lookUp(store, "shop.example.com", needs)).toEqual({ cname: ["shop.machines.example.com"] });
  expect(store.all("SELECT name FROM tokens WHERE name = 'seed'")).toEqual([]);
  await service.close();
});

test("a running service is filled through its API, within its rate limits", async () => {
  const data = folder();
  await start(data, "--rate-limits", "documented", "--delays", "none");
  const machine = (name: string) => ({ name, config: { image: "nginx" } });
  const app = { name: "web", machines: ["a", "b", "c", "d"].map(machine) };
  const { code, out, err } = await seed(data, { apps: [app] });
  expect([code, err, tallies(out)]).toEqual([0, "", ["apps 1 0", "machines 4 0"]]);
  const { url, token } = await startLocal({ data });
  const found = (await caller(url, token)("GET", "/apps/web/machines")).body;
  expect(found.map(({ name, state }: { name: string; state: string }) => `${name} ${state}`)).toEqual([
    "a started",
    "b started",
    "c started",
    "d started",
  ]);
});

test("existing objects are kept, missing ones are created: volumes of one name are matched by their number", async () => {
  const data = folder();
  const disk = (region: string) => ({ name: "data", region });
  const db = (name: string, region: string) => ({
    name,
    region,
    config: { image: "postgres", mounts: [{ volume: "data", path: "/d" }] },
  });
  const first = { name: "db", secrets: { A: "1" }, volumes: [disk("fra")], machines: [db("one", "fra")] };
  expect((await seed(data, { apps: [first] })).err).toBe("");
  const more = {
    name: "db",
    secrets: { A: "2", B: "2" },
    volumes: [disk("fra"), disk("fra"), disk("ams")],
    machines: [db("one", "fra"), db("two", "fra"), db("three", "ams")],
  };
  await start(data);
  const { err, out } = await seed(data, { apps: [more] });
  expect(err).toBe("");
  expect(tallies(out)).toEqual(["apps 0 1", "secrets 1 1", "volumes 2 1", "machines 2 1"]);
  await command(["stop", "--data", data]);
  const service = createService({ data });
  const ask = async (url: string) =>
    (await service.app.inject({ url, headers: { authorization: `Bearer ${service.token}` } })).json();
  const mounted = (await ask("/v1/apps/db/machines")).map(
    (machine: { config: { mounts: { volume: string }[] } }) => machine.config.mounts[0]?.volume,
  );
  expect(new Set(mounted).size).toBe(3);
  expect((await ask("/v1/apps/db/secrets/A?show_secrets=true")).value).toBe("1");
  await service.close();
});

const refused: (readonly [string, object | string, string])[] = [
  ["no JSON", '{ "apps": [ "hunter2" }', "is not JSON"],
  ["an unknown field", { aps: [] }, "unknown aps, allowed are orgs, images, dns, apps"],
  [
    "an unknown field deep inside",
    { apps: [{ name: "a", machines: [{ name: "m", config: { imag: "x" } }] }] },
    "unknown apps[0].machines[0].config.imag, allowed are image, ",
  ],
  ["a missing name", { apps: [{ machines: [] }] }, "invalid apps[0].name, got nothing, must be of type string"],
  [
    "a bad name",
    { apps: [{ name: "Not a name" }] },
    'invalid apps[0].name, got "Not a name", must be 1 to 62 of a-z, 0-9 and -',
  ],
  [
    "a bad size",
    { apps: [{ name: "a", volumes: [{ name: "v", size_gb: 0 }] }] },
    "invalid apps[0].volumes[0].size_gb, got 0, must be a whole number from 1 to 500",
  ],
  [
    "a bad digest",
    { images: [{ reference: "a:1", digest: "md5:1" }] },
    'invalid images[0].digest, got "md5:1", must be sha256: and 64 hexadecimal digits',
  ],
  [
    "no image",
    { images: [{ reference: "Web", digest: `sha256:${"4f".repeat(32)}` }] },
    'invalid images[0].reference, got "Web", must be an image such as',
  ],
  [
    "a bad name of a secret",
    { apps: [{ name: "a", secrets: { "1-x": "hunter2" } }] },
    'invalid name in apps[0].secrets, got "1-x", must be 1 to 255 letters, digits and _',
  ],
  [
    "an unknown organization",
    { apps: [{ org: "nobody", name: "a" }] },
    'invalid apps[0].org, got "nobody", must be an organization in orgs or an existing one',
  ],
];

test.each(refused)("%s is refused before anything is created", async (_, content, message) => {
  const data = folder();
  const file = fileOf(data, content);
  const error = await seedIn(data, file).then(
    () => "nothing",
    (error: unknown) => sentence(error),
  );
  expect(error).toContain(`seed: ${file}`);
  expect(error).toContain(message);
  expect(error).not.toMatch(/hunter2|\n/);
});

test("a refused file causes one sentence on stderr and exit status 1", async () => {
  const data = folder();
  const { code, out, err } = await seed(data, { aps: [] });
  expect([code, out, err]).toEqual([
    1,
    "",
    `machines-service: seed: ${join(data, "../seed.json")}: unknown aps, allowed are orgs, images, dns, apps\n`,
  ]);
  expect(existsSync(data)).toBe(false);
});

test("a refusal of the service is reported with its location, and earlier objects are kept", async () => {
  const data = folder();
  const machine = (name: string, region: string) => ({ name, region, config: { image: "nginx" } });
  const app = { name: "web", machines: [machine("one", "fra"), machine("two", "nowhere")] };
  const { code, err } = await seed(data, { apps: [app] });
  expect(code).toBe(1);
  expect(err).toContain('apps[0].machines[1] was refused with 422: region "nowhere" not found');
  await start(data);
  expect(tallies((await seed(data, { apps: [{ ...app, machines: [machine("one", "fra")] }] })).out)).toEqual([
    "apps 0 1",
    "machines 0 1",
  ]);
});

test("a volume in use, and an App of another owner, are reported", async () => {
  const data = folder();
  const mounting = (name: string) => ({
    name,
    config: { image: "nginx", mounts: [{ volume: "data", path: "/data" }] },
  });
  const crowded = { name: "web", volumes: [{ name: "data" }], machines: [mounting("one"), mounting("two")] };
  expect((await seed(data, { apps: [crowded] })).err).toContain(
    'invalid apps[0].machines[1].config.mounts[0].volume, got "data", no volume of that name is free',
  );
  await start(data);
  const taken = { orgs: [{ slug: "team" }], apps: [{ org: "team", name: "web" }] };
  expect((await seed(data, taken)).err).toContain('apps[0].name, got "web", is an App of another organization');
});

test("a stopped service is not filled: only its start knows its runtime, its regions and its registries", async () => {
  const data = folder();
  await start(data);
  await command(["stop", "--data", data]);
  const { code, out, err } = await seed(data, { apps: [{ name: "shop" }] });
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain(`the service of ${data} is stopped; start it first: `);
});

test.each([["url"], ["logs"]])("%s of an App creates no service in a mistyped folder", async (name) => {
  const data = folder();
  const { code, out, err } = await command([name, "shop", "--data", data]);
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain(`no service is running for ${data}; start it first: `);
  expect(existsSync(data)).toBe(false);
});
