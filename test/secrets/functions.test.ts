// What the functions return about secrets and keys, and what they do with keys.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeApp, send } from "../support/around.ts";
import { callings, type Calling } from "../support/functions.ts";
import { startService, type TestService } from "../support/startService.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const path = "/v1/apps/vault";

/** Forwards reads to the service and records their paths and queries. */
async function listener(service: TestService): Promise<{ url: string; asked: string[]; close: () => void }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    const authorization = request.headers.authorization ?? "";
    void fetch(`${service.url}${request.url ?? ""}`, { headers: { authorization } }).then(async (answer) =>
      response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text()),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, asked, close: () => server.close() };
}

describe.each(callings)("functions about secrets, $name binding", ({ start }) => {
  let service: TestService;
  let calling: Calling;
  let [ciphertext, signature] = ["", ""];

  beforeAll(async () => {
    service = await startService();
    calling = await start(service);
    await makeApp(service, "vault");
    await send(service, "POST", `${path}/secrets`, { values: { TOKEN: "c4n4ry", OTHER: "c4n4ry-2" } });
    await send(service, "POST", `${path}/secretkeys/box/generate`, { type: "nacl_secretbox" });
    await send(service, "POST", `${path}/secretkeys/pen/generate`, { type: "nacl_auth" });
    await send(service, "POST", `${path}/secretkeys/seal/generate`, { type: "es256" });
    ({ ciphertext } = await send<{ ciphertext: string }>(service, "POST", `${path}/secretkeys/box/encrypt`, {
      plaintext: base64("hello"),
      associated_data: base64("for you"),
    }));
    ({ signature } = await send<{ signature: string }>(service, "POST", `${path}/secretkeys/pen/sign`, {
      plaintext: base64("hello"),
    }));
  });
  afterAll(async () => {
    await calling.close();
    await service.close();
  });

  test("getSecrets lists names, digests and times, and requests no value", async () => {
    const { answer, isSecret } = await calling.call("getSecrets", { app: "vault", minVersion: 1 });
    const secrets = answer["secrets"] as { id: string; name: string; digest: string; createdAt: string }[];
    expect(secrets.map(({ id, name }) => [id, name])).toEqual([
      ["vault/OTHER", "OTHER"],
      ["vault/TOKEN", "TOKEN"],
    ]);
    expect(secrets.every(({ digest, createdAt }) => digest !== "" && createdAt !== "")).toBe(true);
    expect(isSecret).toBe(false);
    expect(JSON.stringify(answer)).not.toContain("c4n4ry");
    const { url, asked, close } = await listener(service);
    const heard = await start({ url, token: service.token });
    await heard.call("getSecrets", { app: "vault", minVersion: 1 });
    await heard.call("getSecret", { app: "vault", name: "TOKEN" });
    expect(asked).toEqual([`${path}/secrets?min_version=1`, `${path}/secrets/TOKEN`]);
    await heard.close();
    close();
  });

  test("getSecret looks one up by name or id", async () => {
    const { answer } = await calling.call("getSecret", { app: "vault", name: "vault/TOKEN" });
    expect(answer).toMatchObject({ id: "vault/TOKEN", name: "TOKEN" });
    expect(JSON.stringify(answer)).not.toContain("c4n4ry");
    await expect(calling.call("getSecret", { app: "vault", name: "NONE" })).rejects.toThrow(/secrets.get answered 404/);
  });

  test("getSecretKeys lists all keys, or those of some types; getSecretKey finds one", async () => {
    const names = async (args: object) =>
      ((await calling.call("getSecretKeys", { app: "vault", ...args })).answer["keys"] as { name: string }[]).map(
        ({ name }) => name,
      );
    expect(await names({})).toEqual(["box", "pen", "seal"]);
    expect(await names({ types: ["nacl_auth", "es256"] })).toEqual(["pen", "seal"]);
    await expect(names({ types: ["rot13"] })).rejects.toThrow(/types\[0\]: got "rot13"/);
    const { answer } = await calling.call("getSecretKey", { app: "vault", key: "vault/seal" });
    expect(answer).toMatchObject({ id: "vault/seal", type: "es256" });
    expect(answer["publicKey"]).toMatch(/^[A-Za-z0-9+/]+=*$/);
  });

  test("decrypt returns the plaintext as a secret, only with the right associated data", async () => {
    const args = { app: "vault", key: "vault/box", ciphertext, associatedData: base64("for you") };
    for (const isPreview of [false, true]) {
      const { answer, isSecret } = await calling.call("decrypt", args, { isPreview });
      expect([answer, isSecret]).toEqual([{ plaintext: base64("hello") }, true]);
    }
    const other = calling.call("decrypt", { ...args, associatedData: base64("for me") });
    await expect(other).rejects.toThrow(/secretKeys.decrypt answered 400/);
    const error: unknown = await calling
      .call("decrypt", { ...args, ciphertext: "§" })
      .catch((reason: unknown) => reason);
    expect(String(error)).toMatch(/ciphertext: got .*must be base64/);
  });

  test("verify accepts a valid signature and rejects an invalid one; a wrong key is an error", async () => {
    const args = { app: "vault", key: "vault/pen", plaintext: base64("hello"), signature };
    expect((await calling.call("verify", args)).answer).toEqual({ valid: true });
    expect((await calling.call("verify", { ...args, plaintext: base64("hallo") })).answer).toEqual({ valid: false });
    expect((await calling.call("verify", { ...args, signature: base64("no") })).answer).toEqual({ valid: false });
    // Another key's signature, and a key that cannot sign.
    expect((await calling.call("verify", { ...args, key: "seal" })).answer).toEqual({ valid: false });
    await expect(calling.call("verify", { ...args, key: "box" })).rejects.toThrow(
      /400: .*nacl_secretbox does not sign/,
    );
    await expect(calling.call("verify", { ...args, key: "none" })).rejects.toThrow(/secretKeys.verify answered 404/);
  });

  test("a refusal that mentions signatures is still an error when the key cannot sign", async () => {
    service.fail({
      operation: "secretKeys.verify",
      status: 400,
      body: { error: "this key verifies no signature" },
    });
    const args = { app: "vault", key: "box", plaintext: base64("hello"), signature };
    await expect(calling.call("verify", args)).rejects.toThrow(/verifies no signature/);
  });

  test("no message quotes secret inputs", async () => {
    const args = { app: "vault", key: "pen", plaintext: "c4n4ry§", signature };
    const error: unknown = await calling.call("verify", args).catch((reason: unknown) => reason);
    expect(String(error)).toMatch(/plaintext: got a string; must be base64/);
    expect(String(error)).not.toContain("c4n4ry");
  });

  test.each(["getSecrets", "getSecretKeys"])(
    "%s in an App that does not exist returns the service's 404",
    async (name) => {
      await expect(calling.call(name, { app: "nowhere" })).rejects.toThrow(/answered 404: .*app not found/i);
    },
  );
});
