import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { bind, type Bound } from "../support/binding.ts";
import { makeApp, send } from "../support/around.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

const set = (service: TestService, app: unknown, name: unknown, value: string) =>
  send(service, "POST", `/v1/apps/${String(app)}/secrets/${String(name)}`, { value });

lifecycle("Secret", {
  writeOnly: ["value"],
  given: async (service) => {
    await makeApp(service, "other-secret");
    return { app: await makeApp(service, "life-secret"), name: "TOKEN", value: "one" };
  },
  changes: () =>
    Promise.resolve([
      { set: { value: "two" }, expect: "update", then: { version: 2 } },
      { set: { value: "" }, expect: "update", then: { version: 3 } },
      { set: { valueWo: "three" }, expect: "refused" },
      { set: { value: undefined, valueWo: "three" }, expect: "update", then: { version: 4, valueVersion: 0 } },
      { set: { valueWo: "four" }, expect: "same" },
      { set: { valueVersion: 1 }, expect: "update", then: { version: 5 } },
      { set: { valueWo: undefined, valueVersion: 2 }, expect: "refused" },
      { set: { valueWo: undefined }, expect: "same" },
      { set: { value: "five", valueWo: undefined }, expect: "refused" },
      {
        set: { value: "five", valueWo: undefined, valueVersion: undefined },
        expect: "update",
        then: { value: "five" },
      },
      { set: { value: undefined, valueWo: "six", valueVersion: 7 }, expect: "update" },
      { set: { name: "OTHER" }, expect: "replace" },
      { set: { app: "other-secret" }, expect: "replace" },
    ]),
  drift: [
    {
      interfere: (service, { app, name }) => set(service, app, name, "changed"),
      shows: { value: undefined, valueVersion: undefined },
    },
  ],
  steady: { valueWo: "no state has it" },
});

describe("Secret", () => {
  let service: TestService;
  let secret: Bound;
  beforeAll(async () => {
    service = await startService();
    secret = bind("Secret", service);
    await makeApp(service, "app");
  });
  afterAll(() => service.close());

  const make = async (name: string, value = "hush-hush") => {
    const { inputs, failures } = await secret.check({}, { app: "app", name, value });
    expect(failures).toEqual([]);
    return { inputs, ...(await secret.create(inputs)) };
  };

  test("a change by others is repaired even after two refreshes", async () => {
    const { id, inputs, state } = await make("TWICE");
    await set(service, "app", "TWICE", "changed");
    const once = await secret.read(id, state);
    const twice = await secret.read(id, once?.state ?? {});
    expect(await secret.diff(id, twice?.state ?? {}, inputs)).toBe("update");
    const next = await secret.update(id, twice?.state ?? {}, inputs);
    expect(next["digest"]).toBe(state["digest"]);
  });

  test("an existing secret is overwritten with a warning that quotes no value", async () => {
    const said = vi.spyOn(console, "error").mockImplementation(() => undefined);
    try {
      await make("FREE");
      expect(said).not.toHaveBeenCalled();
      await set(service, "app", "TAKEN", "theirs");
      await make("TAKEN");
      expect(said.mock.calls.flat().join()).toMatch(/App app has TAKEN already, .*overwritten/);
      expect(said.mock.calls.flat().join()).not.toContain("hush-hush");
    } finally {
      said.mockRestore();
    }
  });

  test("an invalid name is refused, and no value is quoted", async () => {
    const { failures } = await secret.check({}, { app: "app", name: "1ST", value: 4711 });
    expect(failures.join("\n")).toMatch(/name: got "1ST"; must be 1 to 255 letters/);
    expect(failures.join("\n")).toMatch(/value: got a number; /);
  });
});
