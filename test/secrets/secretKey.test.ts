import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encryptingTypes, signingTypes } from "../../api/secretKeys.ts";
import { bind, type Bound } from "../support/binding.ts";
import { makeApp, send } from "../support/around.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";
import { allOr } from "../support/extent.mts";

const bytes = (length: number, fill = 7): string => Buffer.alloc(length, fill).toString("base64");

lifecycle("SecretKey", {
  writeOnly: ["value"],
  sent: ["value"],
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
    "%s: generated without a value, with a public half if it has one",
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
    "%s: a value becomes the key, and check and service accept the same values",
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

  test("a value that is not base64 is refused and not quoted", async () => {
    const { failures } = await key.check({}, { app: "app", name: "K", type: "hs256", value: "hush-hush" });
    expect(failures).toEqual(["value: got a string; must be base64"]);
  });

  test("an existing key is not overwritten, and the error says how to import it", async () => {
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

  test("a lost answer is settled by a read; the key is generated again only if nothing shows", async () => {
    const draws = () => service.requests.filter(({ operation }) => operation === "secretKeys.generate").length;
    const before = draws();
    service.fail({ operation: "secretKeys.generate", when: "after", status: "reset" });
    const { state } = await make("LOST", { type: "nacl_sign" });
    expect(state["publicKey"]).toBe((await send(service, "GET", at("LOST")))["public_key"]);
    // The interrupted request is not among the answered ones.
    expect(draws()).toBe(before);
    service.fail({ operation: "secretKeys.generate", when: "before", status: 503 });
    await make("UNMADE", { type: "nacl_sign" });
    expect(draws()).toBe(before + 2);
  });

  const unclear = [
    ["no answer", "reset"],
    ["a 503", 503],
  ] as const;
  test.each(allOr(unclear, unclear.slice(0, 1)))(
    "a value for which every set request gets %s is looked up",
    async (_, status) => {
      const withoutRetries = bind("SecretKey", service, { retries: "0" });
      const name = `GIVEN_UP_${status}`;
      const { inputs } = await key.check({}, { app: "app", name, type: "nacl_sign", value: bytes(32) });
      service.fail({ operation: "secretKeys.set", when: "before", status, times: 3 });
      await expect(withoutRetries.create(inputs)).rejects.toThrow(/secretKeys\.set/);
      await expect(send(service, "GET", at(name))).rejects.toThrow(/404/);
      service.fail({ operation: "secretKeys.set", when: "after", status });
      const { state } = await withoutRetries.create(inputs);
      expect(state).toMatchObject({ name, value: bytes(32) });
      expect(state["publicKey"]).toBe((await send(service, "GET", at(name)))["public_key"]);
    },
  );

  test("another key with that name is reported, and not destroyed without permission", async () => {
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

  test("after an import a value is refused with advice, and no value makes no difference", async () => {
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

  test("removing the value from the program does not generate another key without permission", async () => {
    const { inputs } = await make("WITHOUT", { type: "hs256", value: bytes(32) });
    const { failures } = await key.check(inputs, { app: "app", name: "WITHOUT", type: "hs256" });
    expect(failures.join()).toMatch(/^value: changing it replaces/);
  });
});
