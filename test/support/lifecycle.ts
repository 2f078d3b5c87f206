// The suite every resource type passes: one life from check to gone, through the binding, over the real service.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CONTEXT, kindOf, type Values } from "../../provider/core/resource.ts";
import { canonical } from "../../provider/core/values.ts";
import { resources } from "../../provider/resources/index.ts";
import { bind, type Bound } from "./binding.ts";
import { startService, type TestService } from "./startService.ts";

/** One change of inputs and what it has to come to. */
export interface Change {
  readonly set: Values;
  readonly expect: "update" | "replace" | "delete-replace" | "refused" | "no request";
  /** Only the diff is looked at: making the change needs what the suite has not got. */
  readonly diffOnly?: boolean;
  /** Properties the state must show afterwards. */
  readonly then?: Values;
}

/** What the suite needs of a type. */
export interface Life {
  /** Makes what the resource needs around it and answers its first inputs. */
  readonly given: (service: TestService) => Promise<Values>;
  readonly changes: (service: TestService) => Promise<readonly Change[]>;
  /** Inputs no read can find (R7), absent from an import. */
  readonly writeOnly?: readonly string[];
}

const visible = (values: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([name]) => name !== CONTEXT));
const writes = (service: TestService): number => service.requests.filter(({ method }) => method !== "GET").length;

/** Runs the suite for a type. */
export function lifecycle(type: string, { given, changes, writeOnly = [] }: Life): void {
  const resource = resources[type];
  if (!resource) throw new Error(`no resource type ${type}`);

  describe(`life of a ${type}`, () => {
    let service: TestService;
    let bound: Bound;
    /** What the program says, and what check makes of it. */
    let program: Values;
    let inputs: Values;
    let id: string;
    let state: Values;

    beforeAll(async () => {
      service = await startService();
      bound = bind(type, service);
      program = await given(service);
    });
    afterAll(() => service.close());

    test("check takes the inputs, without a request", async () => {
      const before = service.requests.length;
      const checked = await bound.check({}, program);
      expect(checked.failures).toEqual([]);
      inputs = checked.inputs;
      expect(service.requests.length).toBe(before);
    });

    test("create answers inputs and outputs, read the same, and diff finds nothing", async () => {
      ({ id, state } = await bound.create(inputs));
      expect(resource.id.render(resource.id.parse(id))).toBe(id);
      expect(visible(state)).toMatchObject(visible(inputs));
      const unknown = Object.keys(visible(state)).filter(
        (name) => !Object.hasOwn(resource.inputFields, name) && !Object.hasOwn(resource.outputFields, name),
      );
      expect(unknown).toEqual([]);
      const found = await bound.read(id, state);
      expect(found?.state).toEqual(state);
      expect(found?.inputs).toEqual(inputs);
      const before = service.requests.length;
      expect(await bound.diff(id, state, inputs)).toBe("same");
      expect(service.requests.length).toBe(before);
    });

    test("every change is what it says, and is there afterwards", async () => {
      for (const change of await changes(service)) {
        const changed = { ...program, ...change.set };
        let { inputs: next, failures } = await bound.check(inputs, changed);
        if (change.expect === "refused") {
          expect(failures, JSON.stringify(change.set)).not.toEqual([]);
          continue;
        }
        expect(failures, JSON.stringify(change.set)).toEqual([]);
        const before = service.requests.length;
        const kind = await bound.diff(id, state, next);
        expect(service.requests.length).toBe(before);
        expect(kind, JSON.stringify(change.set)).toBe(change.expect === "no request" ? "update" : change.expect);
        if (change.diffOnly) continue;
        const written = writes(service);
        program = changed;
        if (kind === "update") state = await bound.update(id, state, next);
        else {
          // For what replaces it the engine checks again, as if there had been nothing before.
          next = (await bound.check({}, program)).inputs;
          await replace(kind, next);
        }
        inputs = next;
        if (change.expect === "no request") expect(writes(service)).toBe(written);
        else
          expect(writes(service), `a change of ${JSON.stringify(change.set)} must cause a request`).toBeGreaterThan(
            written,
          );
        expect(state).toMatchObject(change.then ?? change.set);
        const found = await bound.read(id, state);
        expect(found?.state, "the object exists after the change").toEqual(state);
        expect(await bound.diff(id, state, inputs)).toBe("same");
      }
    });

    async function replace(kind: "same" | "replace" | "delete-replace", next: Values): Promise<void> {
      const old = { id, state };
      if (kind === "delete-replace") await bound.delete(old.id, old.state);
      ({ id, state } = await bound.create(next));
      if (kind === "replace") await bound.delete(old.id, old.state);
    }

    test("every input has been changed", async () => {
      const changed = new Set((await changes(service)).flatMap(({ set }) => Object.keys(set)));
      expect(Object.keys(resource.inputFields).filter((name) => !changed.has(name))).toEqual([]);
    });

    test("an import by id alone finds the same inputs", async () => {
      const found = await bound.read(id, {});
      for (const [name, field] of Object.entries(resource.inputFields)) {
        if (kindOf(field) === "behaviour" || writeOnly.includes(name) || inputs[name] === undefined) continue;
        expect(canonical(field, found?.inputs[name]), name).toEqual(canonical(field, inputs[name]));
      }
    });

    test("after delete it is gone, and deleting again is done", async () => {
      await bound.delete(id, state);
      expect(await bound.read(id, state)).toBeUndefined();
      await bound.delete(id, state);
    });
  });
}
