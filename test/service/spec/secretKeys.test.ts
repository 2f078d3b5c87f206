// Secret keys of an App (docs/interface.md#secret-keys). ../crypto.test.ts covers the cryptography.
import { createHmac, createPublicKey, verify } from "node:crypto";
import { expect, test } from "vitest";
import { withApp, withStillClock } from "../client.ts";

const at = "/apps/web/secretkeys";
const base64 = (text: string): string => Buffer.from(text).toString("base64");
const numbers = (text: string): number[] => [...Buffer.from(text)];

const signing = ["nacl_auth", "hs256", "hs384", "hs512", "es256", "nacl_sign"];
const encrypting = ["nacl_secretbox", "xaes256gcm", "nacl_box"];
const withPublicKey = ["es256", "nacl_sign", "nacl_box"];

async function setup() {
  const app = await withApp();
  return {
    ...app,
    generate: (name: string, type: string) => app.call("POST", `${at}/${name}/generate`, { type }),
    ask: (verb: string, body: object, name = "k") => app.call("POST", `${at}/${name}/${verb}`, body),
  };
}

test.each([...signing, ...encrypting])(
  "a key of the type %s is generated with 201; its value is never returned",
  async (type) => {
    const { call, clock } = await withStillClock();
    const made = await call("POST", `${at}/k/generate`, { type });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      name: "k",
      type,
      ...(withPublicKey.includes(type) ? { public_key: expect.stringMatching(/^[A-Za-z0-9+/]+=*$/) } : {}),
      created_at: "2026-01-01T00:00:00Z",
      updated_at: "2026-01-01T00:00:00Z",
      version: 1,
      Version: 1,
    });
    const { version: _, Version: __, ...shown } = made.body;
    expect((await call("GET", `${at}/k`)).body).toEqual(shown);
    expect((await call("GET", at)).body).toEqual({ secret_keys: [shown] });
    clock.advance(1000);
    const again = await call("POST", `${at}/k/generate`, { type });
    expect(again.body).toMatchObject({ created_at: shown.created_at, updated_at: "2026-01-01T00:00:01Z", version: 2 });
    if (withPublicKey.includes(type)) expect(again.body.public_key).not.toBe(shown.public_key);
  },
);

test.each(signing)("%s signs, and verify returns 204 for that signature and 400 for any other", async (type) => {
  const { generate, ask } = await setup();
  await generate("k", type);
  const plaintext = base64("hello");
  const signed = await ask("sign", { plaintext });
  expect([signed.status, Object.keys(signed.body)]).toEqual([200, ["signature"]]);
  const { signature } = signed.body;
  const good = await ask("verify", { plaintext, signature });
  expect([good.status, good.text]).toEqual([204, ""]);
  for (const body of [
    { plaintext: base64("hallo"), signature },
    { plaintext, signature: base64("nonsense") },
    { plaintext, signature: "" },
  ])
    expect(await ask("verify", body)).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining("signature") },
    });
  await generate("k", type);
  expect((await ask("verify", { plaintext, signature })).status).toBe(400);
});

test.each(encrypting)("%s encrypts, bound to the associated data, and decrypts again", async (type) => {
  const { generate, ask } = await setup();
  await generate("k", type);
  const [plaintext, associated_data] = [base64("hello"), base64("context")];
  const { ciphertext } = (await ask("encrypt", { plaintext, associated_data })).body;
  expect(Buffer.from(ciphertext, "base64").toString("latin1")).not.toContain("hello");
  expect((await ask("encrypt", { plaintext, associated_data })).body.ciphertext).not.toBe(ciphertext);
  expect(await ask("decrypt", { ciphertext, associated_data })).toMatchObject({ status: 200, body: { plaintext } });
  for (const body of [
    { ciphertext },
    { ciphertext, associated_data: base64("other") },
    { ciphertext: base64("nonsense"), associated_data },
    { ciphertext: "", associated_data },
  ])
    expect(await ask("decrypt", body)).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining("ciphertext") },
    });
  const empty = await ask("encrypt", { plaintext: "", associated_data: null });
  expect((await ask("decrypt", { ciphertext: empty.body.ciphertext })).body).toEqual({ plaintext: "" });
  await generate("k", type);
  expect((await ask("decrypt", { ciphertext, associated_data })).status).toBe(400);
});

test("bytes are base64; an array of integers is equivalent", async () => {
  const { ask, call } = await setup();
  const key = Array.from({ length: 32 }, (_, i) => i);
  expect((await call("POST", `${at}/k`, { type: "hs256", value: key })).status).toBe(201);
  const expected = createHmac("sha256", Buffer.from(key)).update("hello").digest("base64");
  expect((await ask("sign", { plaintext: base64("hello") })).body.signature).toBe(expected);
  expect((await ask("sign", { plaintext: numbers("hello") })).body.signature).toBe(expected);
  const signature = [...Buffer.from(expected, "base64")];
  expect((await ask("verify", { plaintext: numbers("hello"), signature })).status).toBe(204);
  await call("POST", `${at}/box/generate`, { type: "xaes256gcm" });
  const { ciphertext } = (await ask("encrypt", { plaintext: numbers("hi"), associated_data: [1, 2] }, "box")).body;
  const body = { ciphertext: [...Buffer.from(ciphertext, "base64")], associated_data: "AQI=" };
  expect((await ask("decrypt", body, "box")).body.plaintext).toBe(base64("hi"));
});

test("any other tool can verify with the public key of es256", async () => {
  const { generate, ask } = await setup();
  const point = Buffer.from((await generate("k", "es256")).body.public_key, "base64");
  const { signature } = (await ask("sign", { plaintext: base64("hello") })).body;
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString("base64url"));
  const key = createPublicKey({ key: { kty: "EC", crv: "P-256", x: x ?? "", y: y ?? "" }, format: "jwk" });
  const bytes = Buffer.from(signature, "base64");
  expect(verify("sha256", Buffer.from("hello"), { key, dsaEncoding: "ieee-p1363" }, bytes)).toBe(true);
});

test("an imported key is used unchanged, also under another name", async () => {
  const { call, ask } = await setup();
  const value = Buffer.alloc(32, 7).toString("base64");
  for (const name of ["a", "b"]) {
    const set = await call("POST", `${at}/${name}`, { type: "nacl_secretbox", value });
    expect([set.status, set.text.includes(value)]).toEqual([201, false]);
  }
  const { ciphertext } = (await ask("encrypt", { plaintext: base64("hello") }, "a")).body;
  expect((await ask("decrypt", { ciphertext }, "b")).body.plaintext).toBe(base64("hello"));
});

test.each([
  ["set", {}],
  ["set", { type: "hs256" }],
  ["set", { type: "hs256", value: base64("short") }],
  ["set", { type: "rot13", value: base64("a".repeat(32)) }],
  ["set", { type: "nacl_secretbox", value: base64("a".repeat(33)) }],
  ["set", { type: "xaes256gcm", value: "not base64!" }],
  ["set", { type: "xaes256gcm", value: [256] }],
  ["set", { type: "es256", value: Buffer.alloc(32).toString("base64") }],
  ["generate", {}],
  ["generate", { type: "rot13" }],
  ["generate", { type: "hs256", value: base64("a".repeat(32)) }],
])("%s of %j is 400, and the value is not repeated", async (verb, body) => {
  const { call } = await setup();
  const answer = await call("POST", verb === "set" ? `${at}/k` : `${at}/k/generate`, body);
  expect(answer.status).toBe(400);
  expect(answer.text).not.toContain(base64("a".repeat(32)));
  expect((await call("GET", at)).body.secret_keys).toEqual([]);
});

test("a signing key does not encrypt, and an encryption key does not sign", async () => {
  const { generate, ask } = await setup();
  await generate("signs", "hs256");
  await generate("encrypts", "nacl_secretbox");
  const plaintext = base64("a");
  for (const [verb, name, body] of [
    ["encrypt", "signs", { plaintext }],
    ["decrypt", "signs", { ciphertext: plaintext }],
    ["sign", "encrypts", { plaintext }],
    ["verify", "encrypts", { plaintext, signature: plaintext }],
  ] as const)
    expect(await ask(verb, body, name)).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining("type") },
    });
});

test("any operation on a missing key is 404", async () => {
  const { call, ask } = await setup();
  expect((await call("GET", `${at}/none`)).status).toBe(404);
  expect((await call("DELETE", `${at}/none`)).status).toBe(404);
  for (const [verb, body] of [
    ["encrypt", { plaintext: "" }],
    ["decrypt", { ciphertext: "" }],
    ["sign", { plaintext: "" }],
    ["verify", { plaintext: "", signature: "" }],
  ] as const)
    expect([verb, (await ask(verb, body, "none")).status]).toEqual([verb, 404]);
});

test("missing and malformed bytes are 400", async () => {
  const { generate, ask } = await setup();
  await generate("k", "nacl_auth");
  for (const body of [
    {},
    { plaintext: 5 },
    { plaintext: "?" },
    { plaintext: [-1] },
    { plaintext: ["a"] },
    { plaintext: "YQ" },
  ])
    expect([body, (await ask("sign", body)).status]).toEqual([body, 400]);
  expect((await ask("verify", { plaintext: "" })).status).toBe(400);
});

test("a large plaintext is accepted", async () => {
  const { generate, ask } = await setup();
  await generate("k", "xaes256gcm");
  const plaintext = Buffer.alloc(2 ** 20, "x").toString("base64");
  const { ciphertext } = (await ask("encrypt", { plaintext })).body;
  expect((await ask("decrypt", { ciphertext })).body.plaintext).toBe(plaintext);
});

test("deleting a key returns the version; then it is gone", async () => {
  const { call, generate } = await setup();
  await generate("k", "hs512");
  expect(await call("DELETE", `${at}/k`)).toMatchObject({ status: 200, body: { version: 2, Version: 2 } });
  expect((await call("GET", `${at}/k`)).status).toBe(404);
});

test("the list filters by types; min_version is a version", async () => {
  const { call, generate } = await setup();
  for (const [name, type] of [
    ["b", "hs256"],
    ["a", "es256"],
    ["c", "nacl_box"],
  ] as const)
    await generate(name, type);
  const names = async (query: string) =>
    (await call("GET", at + query)).body.secret_keys.map(({ name }: { name: string }) => name);
  expect(await names("")).toEqual(["a", "b", "c"]);
  expect(await names("?types=hs256,nacl_box")).toEqual(["b", "c"]);
  expect(await names("?types=hs512")).toEqual([]);
  expect(await names("?min_version=3")).toEqual(["a", "b", "c"]);
  for (const query of ["?types=rot13", "?min_version=x"])
    expect([query, (await call("GET", at + query)).status]).toEqual([query, 400]);
  expect((await call("GET", `${at}/a?min_version=x`)).status).toBe(400);
});

test("secrets and secret keys have separate names", async () => {
  const { call, generate } = await setup();
  await generate("A", "hs256");
  await call("POST", "/apps/web/secrets/A", { value: "1" });
  expect((await call("GET", "/apps/web/secrets")).body.secrets).toHaveLength(1);
  await call("DELETE", "/apps/web/secrets/A");
  expect((await call("GET", `${at}/A`)).status).toBe(200);
});
