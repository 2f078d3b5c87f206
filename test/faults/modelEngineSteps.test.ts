// The calls of the model engine over several runs, to a provider that only records them.
import { describe, expect, test } from "vitest";
import type { Values } from "../../provider/core/resource.ts";
import { UNKNOWN } from "../../provider/core/values.ts";
import type { Verbs } from "../support/verbs.ts";
import { destroy, failures, refresh, up, type Asked, type Host } from "../support/modelEngine.ts";
import { emptyStack, stateDelete, taint, unprotect, type Declared } from "../support/modelStack.ts";

/** Inputs that cause replacement: `fixed` deletes the old one afterwards, `first` before. */
const verdictOf = (state: Values, inputs: Values): Awaited<ReturnType<Verbs["diff"]>> => {
  const differs = (name: string) => inputs[name] !== UNKNOWN && state[name] !== inputs[name];
  if (differs("first")) return "delete-replace";
  if (differs("fixed")) return "replace";
  return Object.keys({ ...state, ...inputs }).some((name) => name !== "__context" && state[name] !== inputs[name])
    ? "update"
    : "same";
};

/** A provider whose steps have the given results, in order, by `verb name`. */
function engine(fails: Record<string, ("fails" | "partly" | "works")[]> = {}) {
  const stack = emptyStack();
  const asked: string[] = [];
  let count = 0;
  const nameOf = (values: Values) => (values["__context"] as { name: string }).name;
  const ask = (verb: string, what: string, state: Values = {}) => {
    asked.push(`${verb} ${what}`);
    const [next] = (fails[`${verb} ${what.split(" ")[0]}`] ?? []).splice(0, 1);
    if (next === "fails") throw new Error(`${verb} ${what} fails`);
    if (next === "partly")
      throw Object.assign(new Error("partly"), { id: `${what}-${++count}`, properties: state, reasons: ["partly"] });
  };
  const bound: Verbs = {
    check: (olds, news) => {
      ask("check", `${nameOf(news)}${Object.keys(olds).length === 0 ? "" : " (was)"}`);
      return Promise.resolve({ inputs: news, failures: [] });
    },
    diff: (_id, state, inputs) => {
      ask("diff", `${nameOf(inputs)}${Object.values(inputs).includes(UNKNOWN) ? " (unknown)" : ""}`);
      return Promise.resolve(verdictOf(state, inputs));
    },
    changed: (_id, state, inputs) =>
      Promise.resolve({
        names: Object.keys(inputs).filter((name) => state[name] !== inputs[name]),
        deleteBeforeReplace: false,
      }),
    create: async (inputs) => {
      ask("create", nameOf(inputs), inputs);
      return await Promise.resolve({ id: `${nameOf(inputs)}-${++count}`, state: inputs });
    },
    read: async (id, state) => {
      ask("read", id);
      return await Promise.resolve({ state, inputs: state });
    },
    update: async (id, state, inputs) => {
      ask("update", id, state);
      return await Promise.resolve(inputs);
    },
    delete: async (id) => {
      ask("delete", id);
      return await Promise.resolve();
    },
  };
  const host: Host = { bound: () => bound, parallel: 1 };
  return {
    stack,
    host,
    /** The calls and steps of one up; calls other than steps are omitted unless requested. */
    async up(program: readonly Declared[], options: Asked = {}, over: Partial<Host> = {}) {
      asked.length = 0;
      const report = await up(stack, program, { ...host, ...over }, options);
      return { asked: [...asked], steps: asked.filter((one) => !/^(check|diff)/.test(one)), report };
    },
    ids: () => stack.resources.map(({ id, mark }) => (mark ? `${id} ${mark}` : id)),
  };
}

const one = (name: string, inputs: Values = {}, more: Partial<Declared> = {}): Declared => ({
  ...{ type: "Volume", name, inputs },
  ...more,
});
const idOf = (name: string) => ({ $of: name, get: "id" });
const messages = ({ report }: { report: Awaited<ReturnType<typeof up>> }) =>
  failures(report).map(({ name, error }) => `${name}: ${(error as Error).message}`);

describe("the model of the engine, over several runs", () => {
  test("the model of the engine deletes nothing after a failure; the next up deletes the removed resources", async () => {
    const { up: run, ids } = engine({ "create b": ["fails"] });
    await run([one("old")]);
    expect((await run([one("new"), one("b", {}, { after: ["new"] })])).steps).toEqual(["create new", "create b"]);
    expect(ids()).toEqual(["old-1", "new-2"]);
    expect((await run([one("new"), one("b")])).steps).toEqual(["create b", "delete old-1"]);
  });

  test("the model of the engine deletes the original of a replacement in a later up, after everything else, if the deletion failed", async () => {
    const { up: run, ids } = engine({ "delete a-1": ["fails"] });
    await run([one("a", { fixed: 1 })]);
    expect((await run([one("a", { fixed: 2 })])).asked).toEqual([
      ...["check a (was)", "diff a", "check a", "create a", "delete a-1"],
    ]);
    expect(ids()).toEqual(["a-1 leaving", "a-2"]);
    expect((await run([one("a", { fixed: 2 })])).asked).toEqual(["check a (was)", "diff a", "delete a-1"]);
    expect(ids()).toEqual(["a-2"]);
  });

  test.each(["replace", "taint"])(
    "after %s, a resource is checked as new and created without a diff, and the old one is deleted at the end",
    async (by) => {
      const { up: run, stack, ids } = engine();
      await run([one("a"), one("b")]);
      if (by === "taint") taint(stack, "a");
      const options = by === "replace" ? { replace: ["a"] } : {};
      expect((await run([one("a"), one("b")], options)).asked).toEqual([
        ...["check a", "create a", "check b (was)", "diff b", "delete a-1"],
      ]);
      expect(ids()).toEqual(["b-2", "a-3"]);
      expect((await run([one("a"), one("b")])).steps).toEqual([]);
    },
  );

  test("the model of the engine checks and changes only the target, and deletes only the target", async () => {
    const { up: run, ids } = engine();
    await run([one("a", { size: 1 }), one("b", { size: 1 }), one("c"), one("d")]);
    const next = [one("a", { size: 2 }), one("b", { size: 2 })];
    expect((await run(next, { targets: ["a"] })).asked).toEqual(["check a (was)", "diff a", "update a-1"]);
    expect((await run(next, { targets: ["c"] })).asked).toEqual(["delete c-3"]);
    expect(ids()).toEqual(["a-1", "b-2", "d-4"]);
  });

  test("the model of the engine refuses to delete a target with untargeted dependents, and to create one with untargeted dependencies", async () => {
    const { up: run, ids } = engine();
    await run([one("a"), one("b", { of: idOf("a") })]);
    expect(messages(await run([], { targets: ["a"] }))).toEqual(["a: b would be deleted and is no target"]);
    const more = [one("a"), one("b", { of: idOf("a") }), one("c"), one("d", { of: idOf("c") })];
    expect(messages(await run(more, { targets: ["d"] }))).toEqual(["d: d needs what is no target and was never made"]);
    expect(ids()).toEqual(["a-1", "b-2"]);
  });

  test("the model of the engine treats a new name without an alias as another resource, and with an alias as the same", async () => {
    const { up: run, stack, ids } = engine();
    await run([one("a"), one("b", { of: idOf("a") })]);
    expect((await run([one("c", {}, { aliases: ["a"] }), one("b", { of: idOf("c") })])).steps).toEqual([]);
    expect(stack.resources.map(({ name, needs }) => [name, ...needs])).toEqual([["c"], ["b", "c"]]);
    expect((await run([one("d")])).steps).toEqual(["create d", "delete b-2", "delete a-1"]);
    expect(ids()).toEqual(["d-3"]);
  });

  test("the model of the engine deletes replaced dependents before a resource that is deleted first, and recreates them", async () => {
    const { up: run } = engine();
    const program = (first: number) => [
      one("a", { first }),
      one("b", { of: idOf("a") }, { replaceOnChanges: ["of"] }),
      one("c", { of: idOf("a") }),
    ];
    await run(program(1));
    expect((await run(program(2))).asked).toEqual([
      ...["check a (was)", "diff a", "check a", "diff b (unknown)", "diff c (unknown)"],
      ...["delete b-2", "delete a-1", "create a", "check b", "create b", "check c (was)", "diff c", "update c-3"],
    ]);
  });

  test("the model of the engine creates in the next up what was deleted but not recreated, as for a replacement", async () => {
    const { up: run, ids } = engine({ "create a": ["works", "fails"] });
    await run([one("a", { first: 1 })]);
    expect((await run([one("a", { first: 2 })])).steps).toEqual(["delete a-1", "create a"]);
    expect(ids()).toEqual(["a-1 replacing"]);
    expect((await run([one("a", { first: 2 })])).asked).toEqual([
      ...["check a (was)", "diff a", "check a", "create a"],
    ]);
    expect(ids()).toEqual(["a-2"]);
  });

  test("the model of the engine retries a failed create if a hook requests it; partial results are forgotten when the last try fails outright", async () => {
    const { up: run, ids, stack } = engine({ "create a": ["partly", "fails"], "create b": ["partly", "works"] });
    const { report, steps } = await run([one("a", {}, { retries: 1 })]);
    expect(steps).toEqual(["create a", "create a"]);
    expect(report[0]?.made?.map(({ id }) => id)).toEqual(["a-1"]);
    expect(ids()).toEqual([]);
    await run([one("b", {}, { retries: 1 })]);
    expect(stack.resources.map(({ name, failed }) => [name, failed])).toEqual([["b", ["partly"]]]);
  });

  test("the model of the engine continues after an error if requested: dependents are skipped, the rest is done", async () => {
    const { up: run, ids } = engine({ "update a-1": ["fails"] });
    await run([one("a", { size: 1 }), one("b", { of: idOf("a") }), one("c", {}, { after: ["b"] })]);
    const next = [one("a", { size: 2 }), one("b", { of: idOf("a"), size: 2 })];
    expect((await run(next, { continueOnError: true })).steps).toEqual(["update a-1", "delete c-3"]);
    expect(ids()).toEqual(["a-1", "b-2"]);
  });

  test("neither replaces nor deletes a protected resource until it is unprotected", async () => {
    const { up: run, stack, ids } = engine();
    await run([one("a", { fixed: 1 }, { protect: true }), one("b")]);
    expect(messages(await run([one("a", { fixed: 2 }, { protect: true })]))).toEqual(["a: a is protected"]);
    expect(messages(await run([]))).toEqual(["a: a is protected"]);
    expect(ids()).toEqual(["a-1"]);
    unprotect(stack);
    expect((await run([])).steps).toEqual(["delete a-1"]);
  });

  test("the model keeps the object of a resource that is retained on delete or removed from the state", async () => {
    const { up: run, stack } = engine();
    await run([one("a", {}, { retainOnDelete: true }), one("b")]);
    expect((await run([one("b")])).steps).toEqual([]);
    for (const kept of stack.resources) stateDelete(stack, kept);
    expect(stack.orphans.map(({ id }) => id)).toEqual(["a-1", "b-2"]);
    expect((await run([one("b")])).steps).toEqual(["create b"]);
  });

  test("the model does not forget a resource that others need", async () => {
    const { up: run, stack } = engine();
    await run([one("a"), one("b", { of: idOf("a") })]);
    const [needed] = stack.resources;
    if (!needed) throw new Error("nothing was made");
    expect(() => stateDelete(stack, needed)).toThrow("a is needed by b");
  });

  test("the model of the engine replaces everything without a diff if the provider reports a change of its endpoint", async () => {
    const { up: run } = engine();
    const at = (place: string, replaces: boolean): Partial<Host> => ({
      configuration: { place },
      replacesAll: (before, now) => replaces && before["place"] !== now["place"],
    });
    await run([one("a")], {}, at("here", true));
    expect((await run([one("a")], {}, at("there", false))).asked).toEqual(["check a (was)", "diff a"]);
    expect((await run([one("a")], {}, at("elsewhere", true))).asked).toEqual([
      ...["check a (was)", "check a", "create a", "delete a-1"],
    ]);
  });

  test("the model of the engine continues a refresh after an error, and reads resources whose deletion is pending", async () => {
    const { up: run, stack, host } = engine({ "delete a-1": ["fails"], "read a-1": ["fails"] });
    await run([one("a", { fixed: 1 })]);
    await run([one("a", { fixed: 2 })]);
    const report = await refresh(stack, host);
    expect(report.map(({ id, error }) => [id, error === undefined])).toEqual([
      ["a-1", false],
      ["a-2", true],
    ]);
    expect(failures(await destroy(stack, host))).toEqual([]);
    expect(stack.resources).toEqual([]);
  });
});
