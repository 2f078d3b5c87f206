// Metadata of a Machine (docs/interface.md#metadata).
import { expect, test } from "vitest";
import { ManualClock } from "../../../service/index.ts";
import { withApp } from "../client.ts";

async function setup(metadata?: Record<string, string>) {
  const app = await withApp({ clock: new ManualClock() });
  const made = await app.machine(metadata ? { metadata } : {});
  const one = `${app.machines}/${made.id}`;
  return { ...app, made, one, all: async () => (await app.call("GET", `${one}/metadata`)).body };
}

test.each(["PATCH", "PUT"])(
  "%s merges: null and the empty string remove keys, omitted keys are kept",
  async (method) => {
    const { call, one, all } = await setup({ a: "1", b: "2", c: "3" });
    const answer = await call(method, `${one}/metadata`, { metadata: { a: null, b: "", d: "4" } });
    expect([answer.status, answer.text]).toEqual([204, ""]);
    expect(await all()).toEqual({ c: "3", d: "4" });
  },
);

test("it is shown as config.metadata, changes updated_at, and causes no version and no restart", async () => {
  const { call, clock, made, one } = await setup();
  expect(made.config).not.toHaveProperty("metadata");
  clock.advance(5000);
  await call("PATCH", `${one}/metadata`, { metadata: { a: "1" } });
  const now = (await call("GET", one)).body;
  expect(now).toMatchObject({ version: made.version, state: "started", config: { metadata: { a: "1" } } });
  expect(now.updated_at > made.updated_at).toBe(true);
  expect((await call("GET", `${one}/versions`)).body).toHaveLength(1);
  await call("PATCH", `${one}/metadata`, { metadata: { a: null } });
  expect((await call("GET", one)).body.config).not.toHaveProperty("metadata");
});

test("a later update of the configuration overwrites it", async () => {
  const { call, one, all } = await setup({ a: "1" });
  await call("PATCH", `${one}/metadata`, { metadata: { b: "2" } });
  await call("POST", one, { config: { image: "nginx", metadata: { c: "3" } } });
  expect(await all()).toEqual({ c: "3" });
});

test("a stale machine_version is 412 and changes nothing", async () => {
  const { call, made, one, all } = await setup({ a: "1" });
  const updated = (await call("POST", one, { config: { image: "nginx", metadata: { a: "1" } } })).body;
  const stale = await call("PATCH", `${one}/metadata`, { metadata: { a: "2" }, machine_version: made.version });
  expect([stale.status, stale.body]).toEqual([412, { error: "failed_precondition: machine version mismatch" }]);
  expect(await all()).toEqual({ a: "1" });
  expect(
    (await call("PATCH", `${one}/metadata`, { metadata: { a: "2" }, machine_version: updated.version })).status,
  ).toBe(204);
  expect(await all()).toEqual({ a: "2" });
});

test("one key: set, read, remove; a missing one is 404, removing it twice succeeds", async () => {
  const { call, one, all } = await setup();
  const key = `${one}/metadata/k`;
  expect((await call("GET", key)).status).toBe(404);
  expect((await call("POST", key, { value: "v" })).status).toBe(204);
  expect((await call("GET", key)).body).toEqual({ value: "v" });
  expect((await call("DELETE", key)).status).toBe(204);
  expect((await call("DELETE", key)).status).toBe(204);
  expect(await all()).toEqual({});
});

test.each(["a/b", "ä ö", "%2e%2e", "__proto__", "constructor", "a?b#c", "x".repeat(255)])(
  "the key %j is returned unchanged",
  async (key) => {
    const { call, one, all } = await setup();
    const path = `${one}/metadata/${encodeURIComponent(key).replaceAll(".", "%2E")}`;
    const set = await call("POST", path, { value: "v" });
    expect(set.status).toBe(204);
    expect(Object.entries(await all())).toEqual([[key, "v"]]);
    expect((await call("GET", path)).body).toEqual({ value: "v" });
  },
);

test.each([{ metadata: { a: 1 } }, { metadata: ["a"] }, { metadata: "a" }, []])("%j is refused", async (body) => {
  const { call, one } = await setup();
  expect((await call("PATCH", `${one}/metadata`, body)).status).toBe(400);
  expect((await call("POST", `${one}/metadata/k`, { value: 5 })).status).toBe(400);
});

test("concurrent writers of different keys do not overwrite each other", async () => {
  const { call, one, all } = await setup();
  await Promise.all(
    Array.from({ length: 40 }, (_, i) => call("PATCH", `${one}/metadata`, { metadata: { [`k${i}`]: String(i) } })),
  );
  expect(Object.keys(await all())).toHaveLength(40);
});

test("a Machine that does not exist or was destroyed is 404", async () => {
  const { call, one, machines } = await setup({ a: "1" });
  for (const missing of [`${machines}/00000000000000`, one]) {
    if (missing === one) await call("DELETE", `${one}?force=true`);
    for (const [method, path, body] of [
      ["PATCH", "", { metadata: { a: "2" } }],
      ["PUT", "", { metadata: { a: "2" } }],
      ["POST", "/a", { value: "2" }],
      ["DELETE", "/a"],
    ] as const)
      expect([method, (await call(method, `${missing}/metadata${path}`, body)).status]).toEqual([method, 404]);
  }
});

test("updated_at is a valid key, and an empty value removes its key", async () => {
  const { call, one, all } = await setup({ a: "1", b: "2" });
  const updated_at = "2026-01-01T00:00:00Z";
  expect((await call("PATCH", `${one}/metadata`, { metadata: { a: "3" }, updated_at })).status).toBe(204);
  expect((await call("POST", `${one}/metadata/b`, { value: "", updated_at })).status).toBe(204);
  expect(await all()).toEqual({ a: "3" });
});
