// Requests that would delay all others (F48): refused by their size, before any work is done for them.
import { expect, test } from "vitest";
import { withApp } from "./client.ts";

const map = <T>(count: number, value: T): Record<string, T> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`K${i}`, value]));
const list = (count: number): number[] => Array.from({ length: count }, () => 1);
const machine = (config: object, more: object = {}) => ({ config: { image: "nginx", ...config }, ...more });
const post = (path: string, body: object, error: string, status = 400) => [error, path, body, status] as const;

test.each([
  post(
    "/machines",
    machine({ env: { MACHINES_SIMULATE: "deaf,".repeat(5000) } }),
    "invalid config.env.MACHINES_SIMULATE, got 25000 characters, must not be longer than 1000",
  ),
  post("/secrets", { values: map(200_000, "x") }, "invalid body, got 200002 values, must be at most 5000"),
  post("/secrets", { values: map(20_000, "x") }, "invalid values, got 20000 entries, must be at most 1000"),
  post("/secrets", { values: map(501, "x") }, "invalid values, got 501 secrets in all, an app has at most 500"),
  post("/machines", machine({ env: map(350_000, 1) }), "invalid body, got 350004 values, must be at most 5000"),
  post("/machines", machine({ env: map(1001, 1) }), "invalid config.env, got 1001 entries, must be at most 1000"),
  post(
    "/machines",
    machine({ standbys: list(1001) }),
    "invalid config.standbys, got 1001 entries, must be at most 1000",
  ),
  post(
    "/machines",
    machine({ containers: list(20).map(() => ({ env: map(900, 1) })) }),
    "invalid body, got more than 5000 values, must be at most 5000",
  ),
  // Unknown fields are limited as well.
  post("/machines", machine({}, map(125_000, 1)), "invalid body, got 125003 values, must be at most 5000"),
  post("/machines", machine({}, map(1001, 1)), "invalid body, got 1002 entries, must be at most 1000"),
  post(
    "/machines",
    machine({ novel: { deep: list(4000) } }),
    "invalid config.novel.deep, got 4000 entries, must be at most 1000",
  ),
  post(
    "/machines",
    machine({ image: "x".repeat(70_000) }),
    "invalid config.image, got 70000 characters, must not be longer than 65536 characters",
  ),
  post(
    "/machines",
    machine({ metadata: map(700, "x".repeat(90)) }),
    "invalid metadata, got 69891 characters in all, must be at most 65536",
  ),
  post(
    "/machines",
    machine({ env: { [`K${"x".repeat(500)}`]: 1 } }),
    `invalid config.env.K${"x".repeat(79)}…, got a value of type number, must be of type string`,
  ),
  post(
    "/secretkeys/k/encrypt",
    { plaintext: list(75_001) },
    "invalid plaintext, got 75001 entries, must be at most 75000",
  ),
  post(
    "/secretkeys/k/encrypt",
    { plaintext: "QUFB".repeat(1_000_000) },
    "invalid plaintext, got 4000000 characters, must not be longer than 1500000 characters",
  ),
  post(
    "/secretkeys/k/encrypt",
    { plaintext: "QUFB".repeat(350_000) },
    "invalid plaintext, got 1050000 bytes, must be at most 1048576",
  ),
])("F48 it is refused: %s", async (error, path, body, status) => {
  const { call, service } = await withApp({ strict: false });
  const { vault } = service.context;
  await call("POST", "/apps/web/secretkeys/k/generate", { type: "nacl_secretbox" });
  let sealed = 0;
  const seal = vault.seal.bind(vault);
  vault.seal = (...given) => (sealed++, seal(...given));
  const before = service.context.store.all("SELECT * FROM machines").length;
  const answer = await call("POST", `/apps/web${path}`, body);
  expect([answer.status, answer.body]).toEqual([status, { error }]);
  expect(sealed).toBe(0);
  expect(service.context.store.all("SELECT * FROM machines")).toHaveLength(before);
});

test("F48 databases refuse with their own status", async () => {
  const { call } = await withApp({ strict: false });
  const answer = await call("POST", "/postgres", { org_slug: "personal", ...map(1001, 1) });
  expect([answer.status, answer.body]).toEqual([
    422,
    { error: "invalid body, got 1002 entries, must be at most 1000" },
  ]);
});

test("F48 a placement expression has a maximum length", async () => {
  const { call } = await withApp();
  const ask = (region: string) => call("POST", "/platform/placements", { org_slug: "personal", region });
  expect((await ask("any,".repeat(250))).status).toBe(200);
  const answer = await ask("any,".repeat(100_000));
  expect([answer.status, answer.body.error]).toEqual([
    400,
    "invalid region, got 400000 characters, must not be longer than 1000 characters",
  ]);
  expect((await ask("any,".repeat(251))).body.error).toBe(
    "invalid region, got 1004 characters, must not be longer than 1000 characters",
  );
});

test("F48 lists and maps in the query have a maximum length", async () => {
  const { call, machines } = await withApp();
  const answers = await Promise.all([
    call("GET", `${machines}/x/wait?state=${"started,".repeat(101)}started`),
    call("GET", `${machines}?${Array.from({ length: 101 }, (_, i) => `metadata.k${i}=1`).join("&")}`),
  ]);
  expect(answers.map(({ status, body }) => [status, body.error])).toEqual([
    [400, "invalid state, got 102 entries, must be at most 100"],
    [400, "invalid metadata, got 101 entries, must be at most 100"],
  ]);
});

test("F48 a request just within the limits succeeds", async () => {
  const { call, machine: make } = await withApp();
  const { id } = await make({ env: map(1000, "x"), files: [{ guest_path: "/f", raw_value: "QUFB".repeat(100_000) }] });
  expect(id).toBeDefined();
  const values = map(500, "x");
  expect((await call("POST", "/apps/web/secrets", { values })).body.secrets).toHaveLength(500);
  // The same again, and one for another Machine.
  expect((await call("POST", "/apps/web/secrets", { values })).status).toBe(200);
  expect((await call("POST", "/apps/web/secrets/MORE", { value: "x" })).status).toBe(400);
  expect((await call("POST", "/apps/web/secrets", { values: { K0: null, MORE: "x" } })).status).toBe(200);
  await call("POST", "/apps/web/secretkeys/k/generate", { type: "xaes256gcm" });
  expect((await call("POST", "/apps/web/secretkeys/k/encrypt", { plaintext: list(65_536) })).status).toBe(200);
});

test("F48 a Machine that an older version allowed to exceed the limits runs normally", async () => {
  const { call, machine: make, machines, service, state } = await withApp();
  const { id } = await make({ env: { MACHINES_SIMULATE: "deaf" } });
  const { store, machineRows, machineTexts, configs } = service.context;
  await store.write(() =>
    store.run(
      `UPDATE machine_versions SET config = replace(config, 'deaf', '${"deaf,".repeat(700_000)}') WHERE machine = ?`,
      id,
    ),
  );
  machineRows.clear();
  machineTexts.clear();
  configs.clear();
  expect((await call("POST", `${machines}/${id}/stop`, {})).status).toBe(200);
  expect((await call("POST", `${machines}/${id}/start`, {})).status).toBe(200);
  expect(await state(id)).toBe("started");
});

test("F48 the log truncates long lists of unknown fields", async () => {
  const lines: string[] = [];
  const { call, machines } = await withApp({ strict: false, log: { write: (line) => lines.push(line) } });
  const names = Array.from({ length: 50 }, (_, i) => [`f${i}-${"x".repeat(50_000)}`, 1]);
  expect((await call("POST", machines, { ...machine({}), ...Object.fromEntries(names) })).status).toBe(200);
  const line = lines.find((one) => one.includes("were ignored")) ?? "";
  expect(line).toContain(`"f0-${"x".repeat(77)}…"`);
  expect(line.length).toBeLessThan(3000);
});

test.each([
  [
    "a body that is not UTF-8",
    Buffer.from('{"name":"caf\u00e9","org_slug":"personal"}', "latin1"),
    "invalid body, it is not UTF-8",
  ],
  [
    "101 levels",
    Buffer.from(`{"a":${"[".repeat(100)}${"]".repeat(100)}}`),
    "invalid body, it is nested too deeply, got 101 levels, must be at most 100",
  ],
  [
    "an unterminated text full of brackets",
    Buffer.from(`{"a":"${"[{,".repeat(50_000)}`),
    "invalid body, it is not JSON",
  ],
])("the error for %s says what is wrong with it", async (_, body, error) => {
  const { url, token } = await withApp({ strict: false });
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${url}/v1/apps`, { method: "POST", headers, body });
  expect([answer.status, await answer.json()]).toEqual([400, { error }]);
});

test("brackets, commas and quotes inside a text do not count", async () => {
  const { machine: make } = await withApp();
  const text = '[{,"\\'.repeat(10_000);
  const { config } = await make({ env: { A: text } });
  expect(config.env.A).toBe(text);
});
