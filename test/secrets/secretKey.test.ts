import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encryptingTypes, signingTypes } from "../../api/secretKeys.ts";
import { bind, type Bound } from "../support/binding.ts";
import { makeApp, send } from "../support/around.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

const bytes = (length: number, fill = 7): string => Buffer.alloc(length, fill).toString("base64");

lifecycle("SecretKey", {
  writeOnly: ["value"],
  given: async (service) => {
    await makeApp(service, "other-key");
    return { app: await makeApp(service, "life-key"), name: "SIGN", type: "hs256", value: bytes(32) };
  },
  changes: () =>
    Promise.resolve([
      { set: { type: "nacl_sign" }, expect: "refused" },
      { set: { value: bytes(33) }, expect: "refused" },
      { set: { name: "OTHER" }, expect: "refused" },
      { set: { allowDataLoss: true }, expect: "no request" },
      { set: { value: bytes(32, 8) }, expect: "delete-replace" },
      { set: { type: "nacl_sign" }, expect: "delete-replace" },
      { set: { name: "OTHER" }, expect: "replace" },
      { set: { app: "other-key" }, expect: "replace" },
    ]),
});

describe("SecretKey", () => {
  let service: TestService;
  let key: Bound;
  beforeAll(async () => {
    service = await startService();
    key = bind("SecretKey", service);
    await makeApp(service, "app");
  });
  afterAll(() => service.close());

  const at = (name: string) => `/v1/apps/app/secretkeys/${name}`;
  const make = async (name: string, rest: Record<string, unknown>) => {
    const { inputs, failures } = await key.check({}, { app: "app", name, ...rest });
    expect(failures).toEqual([]);
    return { inputs, ...(await key.create(inputs)) };
  };

  test.each([...signingTypes, ...encryptingTypes])(
    "%s: drawn without a value, with a public half if it has one",
    async (type) => {
      const { state } = await make(`DRAWN_${type.toUpperCase()}`, { type });
      expect(typeof state["publicKey"]).toBe(
        ["es256", "nacl_box", "nacl_sign"].includes(type) ? "string" : "undefined",
      );
      expect(state).toMatchObject({ type, createdAt: expect.any(String) });
      expect(state).not.toHaveProperty("value");
    },
  );

  test.each([...signingTypes, ...encryptingTypes])(
    "%s: a value is the key, and the service takes what check takes",
    async (type) => {
      const right = { hs384: 48, hs512: 64 }[type as string] ?? 32;
      await make(`GIVEN_${type.toUpperCase()}`, { type, value: bytes(right) });
      for (const wrong of [0, right - 1, 2000]) {
        const value = bytes(wrong);
        const { failures } = await key.check({}, { app: "app", name: "WRONG", type, value });
        expect(failures).toEqual([expect.stringMatching(new RegExp(`^value: got ${wrong} bytes, must be ${right}`))]);
        await expect(send(service, "POST", at("WRONG"), { type, value })).rejects.toThrow(/400/);
      }
    },
  );

  test("a value that is no base64 is refused and not quoted", async () => {
    const { failures } = await key.check({}, { app: "app", name: "K", type: "hs256", value: "hush-hush" });
    expect(failures).toEqual(["value: got a string; must be base64"]);
  });

  test("a key that is there already is not overwritten, and how to import it is told", async () => {
    await send(service, "POST", `${at("THEIRS")}/generate`, { type: "nacl_sign" });
    const before = await send(service, "GET", at("THEIRS"));
    for (const value of [undefined, bytes(32)]) {
      const { inputs } = await key.check(
        {},
        { app: "app", name: "THEIRS", type: "nacl_sign", ...(value && { value }) },
      );
      await expect(key.create(inputs)).rejects.toThrow(
        /App app has a secret key THEIRS already; .* import machines:index:SecretKey <name> app\/THEIRS/,
      );
    }
    expect(await send(service, "GET", at("THEIRS"))).toEqual(before);
  });

  test("a lost answer is settled by looking; it is drawn again only where nothing shows", async () => {
    const draws = () => service.requests.filter(({ operation }) => operation === "secretKeys.generate").length;
    const before = draws();
    service.fail({ operation: "secretKeys.generate", when: "after", status: "reset" });
    const { state } = await make("LOST", { type: "nacl_sign" });
    expect(state["publicKey"]).toBe((await send(service, "GET", at("LOST")))["public_key"]);
    // The interrupted one is not among those that were answered.
    expect(draws()).toBe(before);
    service.fail({ operation: "secretKeys.generate", when: "before", status: 503 });
    await make("UNMADE", { type: "nacl_sign" });
    expect(draws()).toBe(before + 2);
  });

  test.each([
    ["no answer", "reset"],
    ["a 503", 503],
  ] as const)("a value whose setting gets %s to the last is looked for", async (_, status) => {
    const impatient = bind("SecretKey", service, { retries: "0" });
    const name = `GIVEN_UP_${status}`;
    const { inputs } = await key.check({}, { app: "app", name, type: "nacl_sign", value: bytes(32) });
    service.fail({ operation: "secretKeys.set", when: "before", status, times: 3 });
    await expect(impatient.create(inputs)).rejects.toThrow(/secretKeys\.set/);
    await expect(send(service, "GET", at(name))).rejects.toThrow(/404/);
    service.fail({ operation: "secretKeys.set", when: "after", status });
    const { state } = await impatient.create(inputs);
    expect(state).toMatchObject({ name, value: bytes(32) });
    expect(state["publicKey"]).toBe((await send(service, "GET", at(name)))["public_key"]);
  });

  test("another key under the name shows, and is not destroyed without leave", async () => {
    const { id, inputs, state } = await make("TAKEN_OVER", { type: "nacl_sign", value: bytes(32) });
    await send(service, "POST", `${at("TAKEN_OVER")}/generate`, { type: "nacl_sign" });
    const found = await key.read(id, state);
    expect(found?.state).not.toHaveProperty("value");
    expect(await key.diff(id, found?.state ?? {}, { ...inputs, allowDataLoss: true })).toBe("delete-replace");
    const { failures } = await key.check(found?.inputs ?? {}, {
      app: "app",
      name: "TAKEN_OVER",
      type: "nacl_sign",
      value: bytes(32),
    });
    expect(failures.join()).toMatch(/^value: it is unknown .* created by others, .* allowDataLoss: true replaces it/);
  });

  test("after an import a value is refused with the way out, and without one nothing differs", async () => {
    const program = { app: "app", name: "IMPORTED", type: "hs256" };
    const { id } = await make("IMPORTED", { type: "hs256", value: bytes(32) });
    const found = await key.read(id, {});
    const { failures } = await key.check(found?.inputs ?? {}, { ...program, value: bytes(32) });
    expect(failures).toEqual([expect.stringMatching(/^value: it is unknown .* imported.* Leave `value` out/)]);
    expect(failures.join()).not.toContain(bytes(32));
    const without = await key.check(found?.inputs ?? {}, program);
    expect(without.failures).toEqual([]);
    expect(await key.diff(id, found?.state ?? {}, without.inputs)).toBe("same");
    const allowed = await key.check(found?.inputs ?? {}, { ...program, value: bytes(32), allowDataLoss: true });
    expect(allowed.failures).toEqual([]);
    expect(await key.diff(id, found?.state ?? {}, allowed.inputs)).toBe("delete-replace");
  });

  test("taking the value out of the program is no wish for another key without leave", async () => {
    const { inputs } = await make("WITHOUT", { type: "hs256", value: bytes(32) });
    const { failures } = await key.check(inputs, { app: "app", name: "WITHOUT", type: "hs256" });
    expect(failures.join()).toMatch(/^value: changing it replaces/);
  });
});
