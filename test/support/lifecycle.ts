// The suite every resource type passes: one life from check to gone, through each binding, over the real service.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { kindOf, type Values } from "../../provider/core/resource.ts";
import { canonical, same, withoutUndefined } from "../../provider/core/values.ts";
import { resources } from "../../provider/registry.ts";
import { bindings, type Bound } from "./binding.ts";
import { brokenPromises, revealed, Unknown, type Properties } from "./properties.ts";
import { operationsById } from "../../service/faults/faults.ts";
import { isWrite, startService, type TestService } from "./startService.ts";

/** One change of inputs and what it has to come to. */
export interface Change {
  /** Inputs as they are from then on; an undefined one is taken out of the program. */
  readonly set: Values;
  readonly expect: "same" | "update" | "replace" | "delete-replace" | "refused" | "no request";
  /** Only the diff is looked at: making the change needs what the suite has not got. */
  readonly diffOnly?: boolean;
  /** Properties the state must show afterwards. */
  readonly then?: Values;
}

/** Something others do to the object behind the program's back. */
export interface Meddling {
  /** Does it; `state` is the object's. */
  readonly meddle: (service: TestService, state: Values) => Promise<unknown>;
  /** What a refresh then shows; a property that is there no longer is undefined. */
  readonly shows: Values;
}

/** What the suite needs of a type. */
export interface Life {
  /** Makes what the resource needs around it and answers its first inputs. */
  readonly given: (service: TestService) => Promise<Values>;
  readonly changes: (service: TestService) => Promise<readonly Change[]>;
  /** One for every input that can be changed outside. Each is repaired by an update. */
  readonly drift?: readonly Meddling[];
  /** Inputs nobody outside can change, or whose change there is welcome, with the reason. */
  readonly steady?: Readonly<Record<string, string>>;
  /** Its id says all, so that deleting leaves nothing that could be gone. */
  readonly survives?: boolean;
  /** What an import is refused with, where there can be none. */
  readonly importRefused?: RegExp;
  /** What a lost answer to its creation is told with, where nobody can say afterwards whether it took effect. */
  readonly ambiguous?: RegExp;
  /** Inputs no read can find (R7), absent from an import. */
  readonly writeOnly?: readonly string[];
}

const visible = (values: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !name.startsWith("__")));
/** What an update must cause: a write, or what makes something of a key and changes nothing on the service. */
const effects = (service: TestService): number =>
  service.requests.filter((seen) => isWrite(seen) || /\.(encrypt|sign)$/.test(seen.operation ?? "")).length;

const unknownIn = (told: Properties): string[] =>
  Object.keys(told).filter((name) => revealed(told[name]) instanceof Unknown);

/** Runs the suite for a type. */
export function lifecycle(
  type: string,
  { given, changes, drift = [], steady = {}, survives = false, importRefused, ambiguous, writeOnly = [] }: Life,
): void {
  const resource = resources[type];
  if (!resource) throw new Error(`no resource type ${type}`);

  describe.each(bindings)(`life of a ${type}, $name binding`, ({ start }) => {
    let close: () => Promise<void>;
    let service: TestService;
    let bound: Bound;
    /** What the program says, and what check makes of it. */
    let program: Values;
    let inputs: Values;
    let id: string;
    let state: Values;
    /** The first operation of its creation that changes something. */
    let creation: string | undefined;

    beforeAll(async () => {
      service = await startService();
      ({ bound, close } = await start(type, service));
      program = await given(service);
    });
    afterAll(async () => {
      await close();
      await service.close();
    });

    /** What a preview says, which sends nothing but questions. Undefined where the binding has none. */
    async function previewed<T>(ask: (preview: NonNullable<Bound["preview"]>) => Promise<T>): Promise<T | undefined> {
      if (!bound.preview) return undefined;
      const before = service.requests.length;
      const told = await ask(bound.preview);
      expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
      return told;
    }

    /** Creates what a preview was asked about first: what that knew has come true. */
    async function created(next: Values): Promise<void> {
      const told = await previewed((preview) => preview.create(next));
      ({ id, state } = await bound.create(next));
      if (!told) return;
      expect(brokenPromises(revealed(told.state), state)).toEqual([]);
      expect(["", id]).toContain(told.id);
    }

    /** Likewise; and all is known but what the change can move. */
    async function updated(next: Values, isSent: boolean): Promise<void> {
      const told = await previewed((preview) => preview.update(id, state, next));
      state = await bound.update(id, state, next);
      if (!told) return;
      expect(brokenPromises(revealed(told), state)).toEqual([]);
      const movable = isSent ? Object.keys(resource?.dependsOn ?? {}) : [];
      expect(unknownIn(told).filter((name) => !movable.includes(name))).toEqual([]);
      expect(
        Object.keys(visible(state)).filter((name) => !Object.hasOwn(told, name) && !movable.includes(name)),
      ).toEqual([]);
    }

    test("check takes the inputs, without a request", async () => {
      const before = service.requests.length;
      const checked = await bound.check({}, program);
      expect(checked.failures).toEqual([]);
      inputs = checked.inputs;
      expect(service.requests.length).toBe(before);
    });

    test("create answers inputs and outputs, read the same, and diff finds nothing", async () => {
      const sent = service.requests.length;
      await created(inputs);
      creation = service.requests.slice(sent).find(isWrite)?.operation;
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
        await bound.nextRun();
        const changed = withoutUndefined({ ...program, ...change.set });
        let { inputs: next, failures } = await bound.check(inputs, changed);
        if (change.expect === "refused") {
          expect(failures, JSON.stringify(change.set)).not.toEqual([]);
          continue;
        }
        expect(failures, JSON.stringify(change.set)).toEqual([]);
        const before = service.requests.length;
        const kind = await bound.diff(id, state, next);
        // The one question a diff asks: whether what it replaces may go.
        const asks = resource.refuseToReplace !== undefined && kind.endsWith("replace") ? 1 : 0;
        expect(service.requests.length - before).toBeLessThanOrEqual(asks);
        expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
        expect(kind, JSON.stringify(change.set)).toBe(change.expect === "no request" ? "update" : change.expect);
        if (change.diffOnly || kind === "same") continue;
        const written = effects(service);
        program = changed;
        if (kind === "update") await updated(next, change.expect !== "no request");
        else {
          // For what replaces it the engine checks again, as if there had been nothing before.
          next = (await bound.check({}, program)).inputs;
          await replace(kind, next);
        }
        inputs = next;
        if (change.expect === "no request") expect(effects(service)).toBe(written);
        else
          expect(effects(service), `a change of ${JSON.stringify(change.set)} must cause a request`).toBeGreaterThan(
            written,
          );
        expect(state).toMatchObject(withoutUndefined(change.then ?? change.set));
        const found = await bound.read(id, state);
        expect(found?.state, "the object exists after the change").toEqual(state);
        expect(await bound.diff(id, state, inputs)).toBe("same");
      }
    });

    const isRequired = (name: string): boolean => {
      const field = resource.inputFields[name];
      return field !== undefined && !field.optional && field.default === undefined;
    };

    async function replace(kind: "same" | "replace" | "delete-replace", next: Values): Promise<void> {
      const old = { id, state };
      if (kind === "delete-replace") await bound.delete(old.id, old.state);
      await created(next);
      if (kind === "replace") await bound.delete(old.id, old.state);
    }

    test("every input has been changed", async () => {
      const changed = new Set((await changes(service)).flatMap(({ set }) => Object.keys(set)));
      expect(Object.keys(resource.inputFields).filter((name) => !changed.has(name))).toEqual([]);
    });

    test("what others change a refresh shows, and an update repairs", async () => {
      for (const [i, { meddle, shows }] of drift.entries()) {
        await meddle(service, state);
        // As in another run: what this one has listed it does not ask again at once.
        const next = await start(type, service, { requestTimeoutSeconds: String(40 + i) });
        const found = await next.bound.read(id, state);
        await next.close();
        const about = JSON.stringify(shows);
        for (const [name, value] of Object.entries(shows)) expect(found?.state[name], about).toEqual(value);
        expect(await bound.diff(id, found?.state ?? {}, inputs), about).toBe("update");
        state = await bound.update(id, found?.state ?? {}, inputs);
        const repaired = await bound.read(id, state);
        expect(repaired?.state, about).toEqual(state);
        expect(await bound.diff(id, state, inputs), about).toBe("same");
      }
    });

    test("every input others can change has been changed by them", () => {
      const seen = new Set(drift.flatMap(({ shows }) => Object.keys(shows)));
      const open = Object.entries(resource.inputFields).filter(
        ([name, field]) =>
          kindOf(field) !== "behaviour" &&
          !resource.replaceOn.includes(name) &&
          !Object.hasOwn(steady, name) &&
          !seen.has(name),
      );
      expect(open.map(([name]) => name)).toEqual([]);
    });

    const importTest = importRefused === undefined ? test : () => undefined;
    if (importRefused)
      test("an import is refused", async () => {
        await expect(bound.read(id, {})).rejects.toThrow(importRefused);
      });

    importTest("an import by id alone finds the same inputs", async () => {
      const found = await bound.read(id, {});
      for (const [name, field] of Object.entries(resource.inputFields)) {
        if (field.meta["passing"] === true || kindOf(field) === "behaviour") continue;
        if (writeOnly.includes(name) || inputs[name] === undefined) continue;
        expect(canonical(field, found?.inputs[name]), name).toEqual(canonical(field, inputs[name]));
      }
    });

    importTest(
      "an import writes down what a program would: no default, nothing that steers, nothing that passes",
      async () => {
        const found = await bound.read(id, {});
        const wordy = Object.entries(visible(found?.inputs ?? {})).filter(([name, value]) => {
          const field = resource.inputFields[name];
          if (!field || kindOf(field) === "behaviour" || field.meta["passing"] === true) return true;
          return field.default !== undefined && same(field, value, field.default);
        });
        expect(wordy).toEqual([]);
      },
    );

    importTest("what an import wrote down passes its check and differs in nothing", async () => {
      const found = await bound.read(id, {});
      // What no read can find the user adds, where it is required: the next preview shows exactly that (R7).
      const added = writeOnly.filter((name) => isRequired(name)).map((name) => [name, program[name]]);
      const written = { ...visible(found?.inputs ?? {}), ...Object.fromEntries(added) };
      for (const olds of [{}, found?.inputs ?? {}]) {
        const { inputs: next, failures } = await bound.check(olds, written);
        expect(failures).toEqual([]);
        expect(await bound.diff(id, found?.state ?? {}, next)).toBe(added.length > 0 ? "update" : "same");
      }
    });

    test("after delete it is gone, and deleting again is done", async () => {
      await bound.nextRun();
      await bound.delete(id, state);
      if (!survives) expect(await bound.read(id, state)).toBeUndefined();
      await bound.delete(id, state);
    });

    test("F01: an answer to its creation that is lost leaves exactly one", async () => {
      if (creation === undefined) return; // it changes nothing on the service
      await bound.nextRun();
      const since = service.service.audit.last;
      service.fail({ operation: creation, when: "after", status: "reset" });
      const creating = bound.create(inputs);
      await (ambiguous === undefined ? creating : expect(creating).rejects.toThrow(ambiguous));
      const sent = service.service.audit.after(since).filter(({ operation }) => operation === creation);
      // What may be repeated is there once, however often it is sent.
      if (operationsById.get(creation)?.repeat === "once") expect(sent).toHaveLength(1);
      if (ambiguous !== undefined) return;
      ({ id, state } = await creating);
      expect((await bound.read(id, state))?.state).toEqual(state);
      await bound.delete(id, state);
    });
  });
}
