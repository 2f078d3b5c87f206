// Large values in one App do not slow others: how they are stored, how often, and their limits (F46).
import { expect, test, vi } from "vitest";
import { touch } from "../../service/context.ts";
import { withApp } from "./client.ts";

const mi = 2 ** 20;

test("F46 no table with unbounded values is read completely for each key comparison", async () => {
  const { service } = await withApp();
  const { store } = service.context;
  const withoutRowid = store
    .all<{ name: string; sql: string }>("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")
    .filter(({ sql }) => /WITHOUT ROWID/i.test(sql))
    .map(({ name }) => name);
  for (const table of ["machines", "machine_versions", "secrets", "secret_sets", "secret_keys", "hostnames", "leases"])
    expect(withoutRowid).not.toContain(table);
  expect(withoutRowid).not.toContain("backups");
  const machines = store.all<{ name: string }>("SELECT name FROM pragma_table_info('machines')");
  expect(machines.map(({ name }) => name)).not.toEqual(expect.arrayContaining(["config"]));
});

test.each(["machines", "volumes"])("F46 a page of an organization's %s reads no rows of others", async (kind) => {
  const { service, call } = await withApp();
  const { store } = service.context;
  const each = vi.spyOn(store, "each");
  await call("GET", `/orgs/personal/${kind}`);
  const [[sql, ...values] = [""]] = each.mock.calls;
  const steps = store.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...values).map(({ detail }) => detail);
  expect(steps[0]).toBe(`SEARCH t USING INDEX ${kind}_updated (org=? AND (updated_at,id)>(?,?))`);
  expect(steps.join()).not.toMatch(/SCAN t|TEMP B-TREE/);
});

test("F46 the encrypted secrets of a version are stored once, while a Machine has them or the next one gets them", async () => {
  const { call, machines, machine, service } = await withApp();
  const sets = () => service.context.store.all("SELECT version FROM secret_sets ORDER BY version");
  const env = async (id: string) =>
    (await call("POST", `${machines}/${id}/exec`, { command: ["env"] })).body.stdout
      .split("\n")
      .filter((line: string) => line.startsWith("ONE="));
  await call("POST", "/apps/web/secrets/ONE", { value: "1" });
  const [a, b] = [(await machine()).id, (await machine()).id];
  expect(sets()).toEqual([{ version: 1 }]);
  await call("POST", "/apps/web/secrets/ONE", { value: "2" });
  expect(sets()).toEqual([{ version: 1 }]);
  await call("POST", `${machines}/${b}`, { config: { image: "nginx" } });
  expect(sets()).toEqual([{ version: 1 }, { version: 2 }]);
  expect([await env(a), await env(b)]).toEqual([["ONE=1"], ["ONE=2"]]);
  await call("DELETE", `${machines}/${a}?force=true`);
  expect(sets()).toEqual([{ version: 2 }]);
  await call("DELETE", `${machines}/${b}?force=true`);
  expect(sets()).toEqual([{ version: 2 }]); // the next Machine gets it
  await call("POST", "/apps/web/secrets/ONE", { value: "3" });
  expect(sets()).toEqual([]);
  const without = (await call("POST", machines, { config: { image: "nginx" }, skip_secrets: true })).body;
  expect([await env(without.id), sets()]).toEqual([[], []]);
  await machine();
  await call("DELETE", "/apps/web");
  expect(sets()).toEqual([]);
});

test("F46 a refused update keeps the secrets of a Machine", async () => {
  const { call, machines, machine, service } = await withApp();
  await call("POST", "/apps/web/secrets/ONE", { value: "1" });
  const { id } = await machine();
  await call("POST", "/apps/web/secrets/ONE", { value: "2" });
  // The lease is checked last, after the row was written.
  const refused = await call("POST", `${machines}/${id}`, { config: { image: "nginx" }, lease_ttl: 9999 });
  expect(refused.status).toBe(400);
  expect(service.context.store.all("SELECT version FROM secret_sets")).toEqual([{ version: 1 }]);
  const { stdout } = (await call("POST", `${machines}/${id}/exec`, { command: ["env"] })).body;
  expect(stdout).toContain("ONE=1");
});

/** A configuration of this length as JSON; each text in it is short enough to be accepted. */
function config(length: number) {
  const names = Array.from({ length: 17 }, (_, i) => `A${i}`);
  const bare = JSON.stringify({ image: "nginx", env: Object.fromEntries(names.map((name) => [name, ""])) }).length;
  const rest = length - bare - 16 * 62_000;
  const env = Object.fromEntries(names.map((name, i) => [name, "x".repeat(i < 16 ? 62_000 : rest)]));
  return { image: "nginx", env };
}

test("F46 a configuration has at most 1 Mi characters, and all versions together at most 8 Mi", async () => {
  const { call, machines, machine, service } = await withApp();
  const { id } = await machine();
  for (const path of [machines, `${machines}/${id}`]) {
    const { status, body } = await call("POST", path, { config: config(mi + 1) });
    expect([status, body.error]).toEqual([400, "invalid config, got 1048577 characters, must be at most 1048576"]);
  }
  for (let i = 0; i < 10; i++)
    expect((await call("POST", `${machines}/${id}`, { config: config(mi) })).status).toBe(200);
  expect(service.context.store.all("SELECT sum(size) AS sum, count(*) AS n FROM machine_versions")).toEqual([
    { sum: 8 * mi, n: 8 },
  ]);
  expect((await call("GET", `${machines}/${id}`)).body.config).toEqual(config(mi));
});

test("F46 metadata in a configuration has the same limit as any other", async () => {
  const { call, machines } = await withApp();
  const metadata = { a: "x".repeat(60_000), b: "x".repeat(10_000) };
  const made = await call("POST", machines, { config: { image: "nginx", metadata } });
  expect([made.status, made.body.error]).toEqual([
    400,
    "invalid metadata, got 70015 characters in all, must be at most 65536",
  ]);
});

test("F46 all secrets of an App have at most 2 MiB together; existing ones are kept", async () => {
  const { call } = await withApp();
  const value = "x".repeat(65_536);
  const values = Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`S${i}`, value]));
  expect((await call("POST", "/apps/web/secrets", { values })).status).toBe(200);
  for (const [path, body] of [
    ["/apps/web/secrets/MORE", { value: "1" }],
    ["/apps/web/secrets", { values: { MORE: "1" } }],
  ] as const) {
    const more = await call("POST", path, body);
    expect([more.status, more.body.error]).toEqual([
      400,
      "invalid values, got 2097153 bytes in all the app's secrets, must be at most 2097152",
    ]);
  }
  expect((await call("GET", "/apps/web/secrets")).body.secrets).toHaveLength(32);
  expect((await call("POST", "/apps/web/secrets/S0", { value: "1" })).status).toBe(201);
});

test("F46 pages of an organization's list are shorter with large Machines, and complete together", async () => {
  const { call, machines } = await withApp();
  const metadata = { a: "x".repeat(65_000) };
  for (let i = 0; i < 150; i++) await call("POST", machines, { config: { image: "nginx", metadata } });
  const ids = new Set<string>();
  let [cursor, pages] = ["", 0];
  do {
    const { body } = await call("GET", `/orgs/personal/machines?limit=1000&cursor=${cursor}`);
    for (const { id } of body.machines) ids.add(id);
    cursor = body.next_cursor;
    pages++;
  } while (cursor !== "");
  expect([ids.size, pages]).toEqual([150, 3]);
});

test("F46 a list too long for memory is sent in pieces, complete even while others change it", async () => {
  // A strict service would check every answer as a whole.
  const { call, machines, url, token, service } = await withApp({ strict: false });
  const body = { config: config(mi - 100) };
  const ids: string[] = [];
  for (let i = 0; i < 12; i++) ids.push((await call("POST", machines, body)).body.id);
  const answer = await fetch(`${url}/v1${machines}`, { headers: { authorization: `Bearer ${token}` } });
  expect([answer.status, answer.headers.get("content-length")]).toEqual([200, null]);
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = "";
  const read = async (): Promise<boolean> => {
    const { value, done } = await reader.read();
    if (value) text += decoder.decode(value, { stream: true });
    return !done;
  };
  await read();
  const gone = ids.pop() ?? "";
  // Much more than the network buffers.
  await service.context.store.write(() => {
    service.context.store.run("DELETE FROM machines WHERE id = ?", gone);
    touch(service.context, gone);
  });
  while (await read());
  const found: string[] = JSON.parse(text).map(({ id }: { id: string }) => id);
  expect(found.filter((id) => id !== gone)).toEqual(ids);
  const short = await fetch(`${url}/v1${machines}?summary=true`, { headers: { authorization: `Bearer ${token}` } });
  expect(((await short.json()) as object[]).length).toBe(11);
});

test("F46 a list shows Machines with long configurations exactly as single reads do", async () => {
  const { call, machine, machines } = await withApp();
  const files = [{ guest_path: "/f", raw_value: "QUFB".repeat(60_000) }];
  await machine({ image: "nginx" });
  const plain = await machine({ image: "nginx", files }, { lease_ttl: 100 });
  const tagged = await machine({ image: "nginx", files, env: { A: "é\u2028" }, metadata: { role: "é" } });
  await machine({ image: "nginx", files, checks: { up: { type: "tcp", port: 80 } } });
  await machine({ image: "nginx", files, metadata: { role: "last" } });
  for (const query of ["", "?include_leases=true"]) {
    const { body } = await call("GET", `${machines}${query}`);
    expect(body).toHaveLength(5);
    for (const one of body) expect(one).toEqual((await call("GET", `${machines}/${one.id}${query}`)).body);
  }
  const { body } = await call("GET", `${machines}?include_leases=true`);
  const shown = (id: string) => body.find((one: { id: string }) => one.id === id);
  expect(shown(plain.id).lease).toMatchObject({ description: "" });
  expect(shown(tagged.id).config).toMatchObject({ files, metadata: { role: "é" } });
});
