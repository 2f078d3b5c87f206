import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { bind, type Bound } from "../support/binding.ts";
import { resources } from "../../provider/registry.ts";
import { makeApp, send } from "../support/around.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

const at = (app: unknown): string => `/v1/apps/${String(app)}/secrets`;
const set = (service: TestService, app: unknown, values: Record<string, string | null>) =>
  send(service, "POST", at(app), { values });

lifecycle("AppSecrets", {
  writeOnly: ["values"],
  sent: ["values", "valuesWo"],
  // Its App is still there.
  survives: "changed",
  given: async (service) => {
    await makeApp(service, "other-secrets");
    return { app: await makeApp(service, "life-secrets"), values: { A: "one", B: "" } };
  },
  changes: () =>
    Promise.resolve([
      { set: { values: { A: "two", B: "" } }, expect: "update", then: { version: 2 } },
      { set: { values: { B: "", C: "three" } }, expect: "update" },
      { set: { values: undefined, valuesWo: { C: "four", D: "d" } }, expect: "update", then: { valuesVersion: 0 } },
      { set: { valuesWo: { C: "five" } }, expect: "same" },
      { set: { valuesWo: { C: "five" }, valuesVersion: 1 }, expect: "update" },
      { set: { valuesWo: undefined }, expect: "same" },
      { set: { app: "other-secrets", valuesWo: { C: "three" } }, expect: "replace" },
      { set: { values: { B: "", C: "three" }, valuesWo: undefined }, expect: "refused" },
      { set: { values: { B: "", C: "three" }, valuesWo: undefined, valuesVersion: undefined }, expect: "update" },
    ]),
  steady: { valuesWo: "no state has it", valuesVersion: "below, as these values are not write-only" },
  drift: [
    { interfere: (service, { app }) => set(service, app, { B: "changed" }), shows: { values: { C: "three" } } },
    { interfere: (service, { app }) => set(service, app, { C: null }), shows: { values: { B: "" } } },
    { interfere: (service, { app }) => set(service, app, { B: "x", C: "y" }), shows: { values: {} } },
  ],
});

describe("AppSecrets", () => {
  let service: TestService;
  let secrets: Bound;
  let app: string;
  let count = 0;
  beforeAll(async () => {
    service = await startService();
    secrets = bind("AppSecrets", service);
  });
  beforeEach(async () => void (app = await makeApp(service, `app-${++count}`)));
  afterAll(() => service.close());

  const make = async (values: Record<string, unknown>) => {
    const { inputs, failures } = await secrets.check({}, { app, values });
    expect(failures).toEqual([]);
    return { inputs, ...(await secrets.create(inputs)) };
  };
  const change = async ({ id, inputs, state }: Awaited<ReturnType<typeof make>>, values: Record<string, unknown>) => {
    const next = await secrets.check(inputs, { app, values });
    return secrets.update(id, state, next.inputs);
  };
  const onService = async () => {
    const { secrets: all } = await send<{ secrets: { name: string; value: string }[] }>(
      service,
      "GET",
      `${at(app)}?show_secrets=true`,
    );
    return Object.fromEntries(all.map(({ name, value }) => [name, value]));
  };
  const asked = async (work: () => Promise<unknown>): Promise<string[]> => {
    const before = service.requests.length;
    await work();
    return service.requests.slice(before).map(({ operation }) => operation ?? "");
  };

  test("a change sets what differs and unsets removed names in one request, and keeps others' names", async () => {
    await set(service, app, { OTHERS: "theirs" });
    const made = await make({ KEEP: "k", CHANGE: "a", GO: "g" });
    let state = {};
    expect(await asked(async () => (state = await change(made, { KEEP: "k", CHANGE: "b" })))).toEqual([
      "secrets.list",
      "secrets.update",
    ]);
    expect(await onService()).toEqual({ OTHERS: "theirs", KEEP: "k", CHANGE: "b" });
    expect(Object.keys((state as typeof made.state)["digests"] as object).sort()).toEqual(["CHANGE", "KEEP"]);
  });

  test("a read is one list, and reveals no values", async () => {
    const { id, state } = await make({ A: "hush-hush" });
    await set(service, app, { A: "their-hush", OTHERS: "their-hush" });
    const before = service.requests.length;
    const found = await secrets.read(id, state);
    expect(service.requests.slice(before).map(({ path }) => path)).toEqual([at(app)]);
    expect(JSON.stringify(found)).not.toMatch(/hush/);
  });

  test("its deletion unsets only its names, in one request, and keeps what others have written since (R12)", async () => {
    const { id, state } = await make({ A: "1", B: "2" });
    await set(service, app, { OTHERS: "theirs", B: "changed" });
    const found = await secrets.read(id, state);
    expect(await asked(() => secrets.delete(id, found?.state ?? {}))).toEqual(["secrets.list", "secrets.update"]);
    expect(await onService()).toEqual({ OTHERS: "theirs", B: "changed" });
  });

  test("a state of an older version, without the time of the write, is compared by digests", async () => {
    const { id, state } = await make({ A: "1", B: "2" });
    await set(service, app, { B: "changed" });
    await secrets.delete(id, Object.fromEntries(Object.entries(state).filter(([name]) => name !== "updatedAt")));
    expect(await onService()).toEqual({ B: "changed" });
  });

  test("only what others changed is written again", async () => {
    const { id, inputs, state } = await make({ A: "1", B: "2" });
    await set(service, app, { A: "changed" });
    const found = await secrets.read(id, state);
    await set(service, app, { B: "changed after the refresh" });
    await secrets.update(id, found?.state ?? {}, inputs);
    expect(await onService()).toEqual({ A: "1", B: "changed after the refresh" });
  });

  test("a change by others is repaired even after two refreshes", async () => {
    const { id, inputs, state } = await make({ A: "1", B: "2" });
    await set(service, app, { A: "changed" });
    const once = await secrets.read(id, state);
    const twice = await secrets.read(id, once?.state ?? {});
    expect(twice?.state).toEqual(once?.state);
    await secrets.update(id, twice?.state ?? {}, inputs);
    expect(await onService()).toEqual({ A: "1", B: "2" });
  });

  test("a name that others have set is overwritten with a warning that quotes no value", async () => {
    const said = vi.spyOn(console, "error").mockImplementation(() => undefined);
    try {
      await set(service, app, { TAKEN: "theirs", LATER: "theirs" });
      const made = await make({ TAKEN: "hush-hush", FREE: "x" });
      expect(said.mock.calls.flat().join()).toMatch(/has TAKEN already, .*overwritten/);
      said.mockClear();
      await change(made, { TAKEN: "hush-hush", FREE: "y", LATER: "hush-hush" });
      expect(said.mock.calls.flat().join()).toMatch(/has LATER already/);
      expect(said.mock.calls.flat().join()).not.toContain("hush-hush");
      expect(await onService()).toEqual({ TAKEN: "hush-hush", FREE: "y", LATER: "hush-hush" });
    } finally {
      said.mockRestore();
    }
  });

  test("after an import all values must be written, and nothing else differs", async () => {
    const { id, inputs } = await make({ A: "1" });
    const found = await secrets.read(id, {});
    expect(found?.inputs).toEqual({ app });
    expect(await secrets.diff(id, found?.state ?? {}, inputs)).toBe("update");
    const state = await secrets.update(id, found?.state ?? {}, inputs);
    expect(await secrets.diff(id, state, inputs)).toBe("same");
  });

  test("an invalid name is refused by property, even while a value is unknown, and no value is quoted", async () => {
    const unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
    const { failures } = await secrets.check({}, { app, values: { "BAD-NAME": "hush-hush", FINE: unknown } });
    expect(failures).toEqual([
      'values["BAD-NAME"]: the name must be 1 to 255 letters, digits and _, and not begin with a digit',
    ]);
    const wrong = await secrets.check({}, { app, values: { A: 4711 } });
    expect(wrong.failures.join()).toMatch(/^values\.A: got a number; /);
  });

  describe("a name that another resource takes over is recognised by the time of the write", () => {
    const kept = (name: string) =>
      `${name} of App ${app} stays set: something else has written it since this resource did.`;
    let said: string[];
    beforeEach(() => {
      said = [];
      vi.spyOn(console, "error").mockImplementation((message) => void said.push(String(message)));
    });
    afterEach(() => void vi.restoreAllMocks());
    const single = () => bind("Secret", service);
    const makeSingle = async (name: string, value: string) => {
      const { inputs } = await single().check({}, { app, name, value });
      return single().create(inputs);
    };

    test("the time of the write shows that another Secret has taken over a name of a Secret", async () => {
      const old = await makeSingle("A", "old");
      const next = await makeSingle("A", "new");
      await single().delete(old.id, old.state);
      expect(await onService()).toEqual({ A: "new" });
      expect(said.join()).toContain(kept("A"));
      await single().delete(next.id, next.state);
      expect(await onService()).toEqual({});
    });

    test("the time of the write shows that AppSecrets have taken over a name of a Secret, and back", async () => {
      const old = await makeSingle("A", "old");
      const all = await make({ A: "new", B: "b" });
      await single().delete(old.id, old.state);
      expect(await onService()).toEqual({ A: "new", B: "b" });
      const next = await makeSingle("A", "newer");
      const state = await change(all, { C: "c" });
      expect(await onService()).toEqual({ A: "newer", C: "c" });
      expect(said.join()).toContain(kept("A"));
      await secrets.delete(all.id, state);
      await single().delete(next.id, next.state);
      expect(await onService()).toEqual({});
    });

    test("the time of the write shows that other AppSecrets, which change or are deleted, have taken over a name", async () => {
      const [one, other] = [await make({ A: "old", B: "b" }), await make({ C: "c" })];
      const state = await change(other, { A: "new", C: "c" });
      expect(await asked(() => secrets.delete(one.id, one.state))).toEqual(["secrets.list", "secrets.update"]);
      expect(await onService()).toEqual({ A: "new", C: "c" });
      await make({ A: "newer", C: "newer" });
      expect(await asked(() => secrets.delete(other.id, state))).toEqual(["secrets.list"]);
      expect(await onService()).toEqual({ A: "newer", C: "newer" });
    });

    test("a name is recognised as taken over while the answer to the other's write is still pending", async () => {
      const old = await makeSingle("A", "old");
      service.fail({ operation: "secrets.update", when: "after", delayMs: 200 });
      await Promise.all([
        make({ A: "new" }),
        expect
          .poll(async () => (await onService())["A"], { interval: 10 })
          .toBe("new")
          .then(() => single().delete(old.id, old.state)),
      ]);
      expect(await onService()).toEqual({ A: "new" });
    });

    test("a replacement with the same name deletes first", () => {
      expect(resources["Secret"]?.uniqueBy).toEqual(["app", "name"]);
      expect(resources["AppSecrets"]?.uniqueBy).toEqual(["app"]);
    });
  });
});
