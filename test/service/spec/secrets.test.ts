// Secrets of an App (docs/interface.md#secrets).
import { expect, test } from "vitest";
import { caller, withApp, withStillClock } from "../client.ts";

const at = "/apps/web/secrets";

test("a secret is set with 201, and shown without its value", async () => {
  const { call } = await withStillClock();
  const set = await call("POST", `${at}/TOKEN`, { value: "canary" });
  expect(set.status).toBe(201);
  expect(set.body).toEqual({
    name: "TOKEN",
    digest: expect.any(String),
    created_at: "2026-01-01T00:00:00Z",
    updated_at: "2026-01-01T00:00:00Z",
    version: 1,
    Version: 1,
  });
  const { version: _, Version: __, ...shown } = set.body;
  expect((await call("GET", `${at}/TOKEN`)).body).toEqual(shown);
  const list = await call("GET", at);
  expect([list.status, list.body]).toEqual([200, { secrets: [shown] }]);
  for (const answer of [set, list]) expect(answer.text).not.toContain("canary");
});

test("show_secrets shows the value, of one and of all", async () => {
  const { call } = await withApp();
  for (const [name, value] of [
    ["A", "one"],
    ["B", ""],
    ["C", "ünïcode\n\u0000"],
  ])
    await call("POST", `${at}/${name}`, { value });
  expect((await call("GET", `${at}?show_secrets=true`)).body.secrets).toMatchObject([
    { name: "A", value: "one" },
    { name: "B", value: "" },
    { name: "C", value: "ünïcode\n\u0000" },
  ]);
  expect((await call("GET", `${at}/A?show_secrets=1`)).body.value).toBe("one");
  expect((await call("GET", `${at}/A?show_secrets=false`)).body).not.toHaveProperty("value");
  expect((await call("GET", `${at}?show_secrets=perhaps`)).status).toBe(400);
});

test("a token of one App sees no values", async () => {
  const { call, url } = await withApp();
  await call("POST", `${at}/TOKEN`, { value: "canary" });
  const deploy = caller(url, (await call("POST", "/apps/web/deploy_token", {})).body.token);
  expect((await deploy("GET", at)).body.secrets).toMatchObject([{ name: "TOKEN" }]);
  for (const path of [at, `${at}/TOKEN`]) {
    const answer = await deploy("GET", `${path}?show_secrets=true`);
    expect([answer.status, answer.text.includes("canary")]).toEqual([403, false]);
  }
});

test("every write creates an ascending version of the App", async () => {
  const { call } = await withApp();
  await call("POST", "/apps", { name: "other", org_slug: "personal" });
  const versions = [
    await call("POST", `${at}/A`, { value: "1" }),
    await call("POST", `${at}/A`, { value: "2" }),
    await call("POST", at, { values: { B: "1", C: "1" } }),
    await call("DELETE", `${at}/A`),
    await call("POST", "/apps/web/secretkeys/k/generate", { type: "hs256" }),
    await call("POST", at, { values: { B: null } }),
  ].map(({ body }) => body);
  expect(versions.map(({ version }) => version)).toEqual([1, 2, 3, 4, 5, 6]);
  for (const { version, Version } of versions) expect(Version).toBe(version);
  expect((await call("POST", "/apps/other/secrets/A", { value: "1" })).body.version).toBe(1);
});

test("several are set and unset at once; omitted ones are kept", async () => {
  const { call } = await withApp();
  await call("POST", at, { values: { A: "1", B: "2", C: "3" } });
  const answer = await call("POST", at, { values: { A: "new", B: null, D: "4" } });
  expect(answer.status).toBe(200);
  expect(answer.body).toMatchObject({ secrets: [{ name: "A" }, { name: "C" }, { name: "D" }], version: 2, Version: 2 });
  expect(answer.text).not.toContain("new");
  expect((await call("GET", `${at}?show_secrets=true`)).body.secrets).toMatchObject([
    { name: "A", value: "new" },
    { name: "C", value: "3" },
    { name: "D", value: "4" },
  ]);
  expect((await call("POST", at, { values: { NONE: null } })).status).toBe(200);
});

test("an invalid entry among several changes nothing", async () => {
  const { call } = await withApp();
  for (const values of [
    { A: "1", "not-a-name": "2" },
    { A: "1", B: 5 },
    { A: "1", B: ["canary"] },
  ]) {
    const answer = await call("POST", at, { values });
    expect([answer.status, answer.text.includes("canary")]).toEqual([400, false]);
  }
  expect((await call("GET", at)).body.secrets).toEqual([]);
});

test("the digest changes only with the value, and reveals nothing about it", async () => {
  const { call, clock } = await withStillClock();
  const digest = async (value: string, name = "A") => (await call("POST", `${at}/${name}`, { value })).body.digest;
  const first = await digest("1");
  clock.advance(1000);
  expect(await digest("1")).toBe(first);
  expect(await digest("2")).not.toBe(first);
  expect(await digest("1")).toBe(first);
  expect(await digest("1", "B")).not.toBe(first);
  expect(await digest("canary")).not.toContain("canary");
  const elsewhere = await withApp();
  expect((await elsewhere.call("POST", `${at}/A`, { value: "1" })).body.digest).not.toBe(first);
});

test("overwriting changes updated_at and keeps created_at", async () => {
  const { call, clock } = await withStillClock();
  await call("POST", `${at}/A`, { value: "1" });
  clock.advance(60_000);
  expect((await call("POST", `${at}/A`, { value: "2" })).body).toMatchObject({
    created_at: "2026-01-01T00:00:00Z",
    updated_at: "2026-01-01T00:01:00Z",
  });
});

test("a missing secret is 404, and deleting one returns the version", async () => {
  const { call } = await withApp();
  for (const method of ["GET", "DELETE"])
    expect(await call(method, `${at}/NONE`)).toMatchObject({ status: 404, body: { error: expect.any(String) } });
  await call("POST", `${at}/A`, { value: "1" });
  expect(await call("DELETE", `${at}/A`)).toMatchObject({ status: 200, body: { version: 2, Version: 2 } });
  expect((await call("GET", `${at}/A`)).status).toBe(404);
});

test.each([
  ["1A", { value: "x" }],
  ["a-b", { value: "x" }],
  ["a.b", { value: "x" }],
  ["A".repeat(256), { value: "x" }],
  ["A", {}],
  ["A", { value: null }],
  ["A", { value: 5 }],
  ["A", undefined],
])("setting %s to %j is 400", async (name, body) => {
  const { call } = await withApp();
  expect((await call("POST", `${at}/${name}`, body)).status).toBe(400);
  expect((await call("GET", at)).body.secrets).toEqual([]);
});

test.each(["constructor", "__proto__", "_", "a1", "A".repeat(255)])("%s is an ordinary name", async (name) => {
  const { call } = await withApp();
  expect((await call("POST", `${at}/${name}`, { value: "x" })).status).toBe(201);
  expect((await call("GET", `${at}/${name}?show_secrets=true`)).body).toMatchObject({ name, value: "x" });
  const all = JSON.parse(`{"values":{"${name}":"y"}}`) as object;
  expect((await call("POST", at, all)).body.secrets).toMatchObject([{ name }]);
  expect((await call("GET", `${at}/${name}?show_secrets=true`)).body.value).toBe("y");
});

test("min_version is a version; there is only one store, so the answer is always current", async () => {
  const { call } = await withApp();
  const { version } = (await call("POST", `${at}/A`, { value: "1" })).body;
  for (const query of [`min_version=${version}`, "min_version=0", `version=${version}`])
    for (const path of [at, `${at}/A`])
      expect([query, (await call("GET", `${path}?${query}`)).status]).toEqual([query, 200]);
  expect((await call("GET", `${at}?min_version=latest`)).status).toBe(400);
});

test("setting a secret restarts nothing", async () => {
  const { call, machine, machines } = await withApp();
  const { id } = await machine();
  const before = (await call("GET", `${machines}/${id}`)).text;
  await call("POST", `${at}/A`, { value: "1" });
  expect((await call("GET", `${machines}/${id}`)).text).toBe(before);
});

test("secrets are deleted with their App, and Apps do not see each other's", async () => {
  const { call } = await withApp();
  await call("POST", "/apps", { name: "other", org_slug: "personal" });
  await call("POST", `${at}/A`, { value: "1" });
  expect((await call("GET", "/apps/other/secrets/A")).status).toBe(404);
  await call("DELETE", "/apps/web");
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  expect((await call("GET", at)).body.secrets).toEqual([]);
});
