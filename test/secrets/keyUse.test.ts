import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bind, type Bound } from "../support/binding.ts";
import { makeApp, send } from "../support/around.ts";
import type { Life } from "../support/life.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

const text = (plain: string): string => Buffer.from(plain).toString("base64");
const draw = (service: TestService, app: unknown, name: string, type: string) =>
  send(service, "POST", `/v1/apps/${String(app)}/secretkeys/${name}/generate`, { type });

const life = (type: string, appName: string): Life => ({
  // It exists only in the state.
  survives: "untouched",
  sent: ["plaintext", "associatedData"],
  importRefused: /cannot be imported or looked up: .*leave the import out/,
  given: async (service) => {
    for (const app of [appName, `${appName}-2`])
      for (const key of ["ONE", "TWO"]) await draw(service, await makeApp(service, app).catch(() => app), key, type);
    return { app: appName, key: `${appName}/ONE`, plaintext: text("one") };
  },
  changes: () =>
    Promise.resolve([
      { set: { plaintext: text("two") }, expect: "update" },
      ...(type === "hs256" ? [] : [{ set: { associatedData: text("with") }, expect: "update" as const }]),
      { set: { associatedData: undefined }, expect: type === "hs256" ? "same" : "update" },
      { set: { keyUpdatedAt: "2026-01-01T00:00:00Z" }, expect: "update" },
      { set: { keyUpdatedAt: undefined }, expect: "update" },
      { set: { key: "TWO" }, expect: "replace" },
      { set: { app: `${appName}-2` }, expect: "replace" },
    ]),
  drift: [
    {
      interfere: async (service, { app, madeWith }) => {
        const path = `/v1/apps/${String(app)}/secretkeys/TWO`;
        await expect
          .poll(async () => (await draw(service, app, "TWO", type), (await send(service, "GET", path))["updated_at"]), {
            interval: 200,
          })
          .not.toBe(madeWith);
      },
      shows: { plaintext: undefined },
    },
  ],
  steady: { keyUpdatedAt: "the program's alone", associatedData: "the program's alone" },
});

lifecycle("Ciphertext", life("xaes256gcm", "life-cipher"));
lifecycle("Signature", life("hs256", "life-signature"));

describe("values created with a key", () => {
  let service: TestService;
  let encrypted: Bound;
  let signed: Bound;
  beforeAll(async () => {
    service = await startService();
    encrypted = bind("Ciphertext", service);
    signed = bind("Signature", service);
    await makeApp(service, "app");
    await draw(service, "app", "BOX", "nacl_secretbox");
    await draw(service, "app", "SIGN", "es256");
  });
  afterAll(() => service.close());

  const make = async (bound: Bound, values: Record<string, unknown>) => {
    const { inputs, failures } = await bound.check({}, { app: "app", plaintext: text("hush-hush"), ...values });
    expect(failures).toEqual([]);
    return { inputs, ...(await bound.create(inputs)) };
  };

  test("a ciphertext decrypts to its plaintext, with its associated data", async () => {
    const { state } = await make(encrypted, { key: "app/BOX", associatedData: text("with") });
    const decrypt = (associated?: string) =>
      send(service, "POST", "/v1/apps/app/secretkeys/BOX/decrypt", {
        ciphertext: state["ciphertext"],
        ...(associated && { associated_data: text(associated) }),
      });
    expect(await decrypt("with")).toEqual({ plaintext: text("hush-hush") });
    await expect(decrypt()).rejects.toThrow(/400/);
  });

  test("a signature verifies", async () => {
    const { state } = await make(signed, { key: "SIGN" });
    await send(service, "POST", "/v1/apps/app/secretkeys/SIGN/verify", {
      plaintext: text("hush-hush"),
      signature: state["signature"],
    });
  });

  test("a refresh keeps it while its key exists, and forgets it with the key", async () => {
    await draw(service, "app", "BRIEF", "es256");
    const { id, state } = await make(signed, { key: "BRIEF" });
    expect((await signed.read(id, state))?.state).toEqual(state);
    await send(service, "DELETE", "/v1/apps/app/secretkeys/BRIEF");
    expect(await signed.read(id, state)).toBeUndefined();
  });

  test("deletion sends no request", async () => {
    const { id, state } = await make(signed, { key: "SIGN" });
    const before = service.requests.length;
    await signed.delete(id, state);
    expect(service.requests.length).toBe(before);
  });

  test("the error for a key of the wrong kind names it, and quotes no data", async () => {
    const error: unknown = await make(encrypted, { key: "SIGN" }).catch((reason: unknown) => reason);
    expect(String(error)).toMatch(/a key of type es256 does not encrypt/);
    expect(String(error)).not.toContain(text("hush-hush"));
  });
});
