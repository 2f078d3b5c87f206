// The suite that every resource type passes: its whole life, in each binding, with the real service.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bareId } from "../../api/names.ts";
import { newPass } from "../../provider/core/listing.ts";
import { leavesIn } from "../../provider/core/redaction.ts";
import { CONTEXT, contextOf, isParent, kindOf, type Values } from "../../provider/core/resource.ts";
import { canonical, same, withoutUndefined } from "../../provider/core/values.ts";
import { withoutWriteOnly, writeOnlyIn } from "../../provider/core/writeOnly.ts";
import type { ResourceName } from "../../provider/registry.ts";
import { linesOf, onService } from "../faults/inventory.ts";
import { bind, type Bound } from "./binding.ts";
import { breakOnPurpose, roundsOf } from "./mutantRounds.ts";
import type { Life } from "./life.ts";
import { jumpingClient } from "./jumpingClient.ts";
import { brokenPromises, revealed, Unknown, type Properties } from "./properties.ts";
import { resourceOf } from "./simulation.ts";
import { operationsById } from "../../service/faults/faults.ts";
import { isWrite, startService, type TestService } from "./startService.ts";

const visible = (values: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !name.startsWith("__")));
/** The kind of request that an update must cause: a write, or the use of a key, which changes nothing on the service. */
const effects = (service: TestService): number =>
  service.requests.filter((seen) => isWrite(seen) || /\.(encrypt|sign)$/.test(seen.operation ?? "")).length;

const unknownIn = (preview: Properties): string[] =>
  Object.keys(preview).filter((name) => revealed(preview[name]) instanceof Unknown);

/** Runs the suite for a type. */
export function lifecycle(
  type: ResourceName,
  {
    given,
    changes,
    drift = [],
    steady = {},
    creates = 1,
    survives,
    importRefused,
    ambiguous,
    writeOnly = [],
    sent = [],
  }: Life,
): void {
  const resource = resourceOf(type);

  describe.each(roundsOf(type))(`life of a ${type}, $name binding`, ({ name: binding, start, mutant }) => {
    breakOnPurpose(mutant);
    let close: () => Promise<void>;
    let service: TestService;
    let bound: Bound;
    /** The program's inputs, the first ones, and the checked ones. */
    let program: Values;
    let first: Values;
    let inputs: Values;
    let id: string;
    let state: Values;
    /** The first operation of its creation that changes something. */
    let creation: string | undefined;

    beforeAll(async () => {
      service = await startService({ keepBodies: true });
      ({ bound, close } = await start(type, service));
      // The values that are not stored are remembered by the owner, which a program of the dynamic binding always sends.
      first = { ...(await given(service)), [CONTEXT]: { owner: `life of a ${type}` } };
      program = first;
    });
    afterAll(async () => {
      await close();
      await service.close();
    });

    /** The checked inputs, which the engine stores. */
    const checked = async (olds: Values, news: Values): ReturnType<Bound["check"]> => {
      const found = await bound.check(olds, news);
      expect(writeOnlyIn(resource, found.inputs)).toEqual({});
      return found;
    };

    /** The result of a preview, which only sends reads. Undefined if the binding has none. */
    async function previewed<T>(ask: (preview: NonNullable<Bound["preview"]>) => Promise<T>): Promise<T | undefined> {
      if (!bound.preview) return undefined;
      const before = service.requests.length;
      const preview = await ask(bound.preview);
      expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
      return preview;
    }

    /** Creates after a preview: values that the preview knew must match. */
    async function created(next: Values): Promise<void> {
      const planned = await previewed((preview) => preview.create(next));
      const before = service.bodies.length;
      ({ id, state } = await bound.create(next));
      expectSent(sent, before);
      expectThere();
      expect(await isListed(id)).not.toBe(false);
      if (!planned) return;
      expect(brokenPromises(revealed(planned.state), state)).toEqual([]);
      expect(["", id]).toContain(planned.id);
    }

    /** Inputs that only a request shows are in the requests since. */
    function expectSent(names: readonly string[], since: number): void {
      const bodies = JSON.stringify(service.bodies.slice(since));
      for (const name of names.filter((one) => sent.includes(one)))
        for (const leaf of leavesIn(program[name]))
          expect(bodies, `${name} must be sent`).toContain(bareId(String(leaf)));
    }

    const lines = (): readonly string[] => linesOf({ type, name: "life", id, inputs, state, needs: [], failed: [] });

    /** The service has every object that the state has. */
    const expectThere = (): void => expect(onService(service.service)).toEqual(expect.arrayContaining([...lines()]));

    /** Whether a new run finds the object in the list of its App or cluster; undefined if the type has no list. */
    async function isListed(one: string): Promise<boolean | undefined> {
      const { list, within, id: format } = resource;
      const wanted = format.parse(one);
      const objects = await list?.objects(newPass(jumpingClient(service).api), wanted[within.part] ?? "");
      // Several addresses have one id, and each is listed.
      return objects?.some(({ parts }) =>
        format.parts.every((part) => wanted[part]?.split(",").includes(parts[part] ?? "")),
      );
    }

    /** Likewise; and everything is known that the change does not affect. */
    async function updated(next: Values, isSent: boolean): Promise<void> {
      const planned = await previewed((preview) => preview.update(id, state, next));
      state = await bound.update(id, state, next);
      if (!planned) return;
      expect(brokenPromises(revealed(planned), state)).toEqual([]);
      const movable = isSent ? Object.keys(resource.dependsOn ?? {}) : [];
      expect(unknownIn(planned).filter((name) => !movable.includes(name))).toEqual([]);
      expect(
        Object.keys(visible(state)).filter((name) => !Object.hasOwn(planned, name) && !movable.includes(name)),
      ).toEqual([]);
    }

    test("check accepts the inputs, without a request", async () => {
      const before = service.requests.length;
      const { inputs: accepted, failures } = await checked({}, program);
      expect(failures).toEqual([]);
      inputs = accepted;
      expect(service.requests.length).toBe(before);
    });

    test("create returns inputs and outputs, a read the same, and a diff is empty", async () => {
      const asked = service.requests.length;
      await created(inputs);
      creation = service.requests.slice(asked).find(isWrite)?.operation;
      expect(resource.id.render(resource.id.parse(id))).toBe(id);
      expect(visible(state)).toMatchObject(visible(inputs));
      const unknown = Object.keys(visible(state)).filter(
        (name) => !Object.hasOwn(resource.inputFields, name) && !Object.hasOwn(resource.outputFields, name),
      );
      expect(unknown).toEqual([]);
      const found = await bound.read(id, state);
      expect(found?.state).toEqual(state);
      expect(found?.inputs).toEqual(inputs);
      const next = await start(type, service, { requestTimeoutSeconds: "39" });
      const unasked = service.requests.length;
      await next.bound.read(id, state);
      await next.close();
      expect(service.requests.length, "a read asks the service").toBeGreaterThan(unasked);
      const before = service.requests.length;
      expect(await bound.diff(id, state, inputs)).toBe("same");
      expect(service.requests.length).toBe(before);
    });

    test("every change has its expected kind, and takes effect", async () => {
      for (const change of await changes(service)) {
        await bound.nextRun();
        const changed = withoutUndefined({ ...program, ...change.set });
        const { inputs: next, failures } = await checked(inputs, changed);
        if (change.expect === "refused") {
          // What only the state shows is refused by the diff.
          const byDiff = () => bound.diff(id, state, next).catch(() => "refused");
          expect(failures.length > 0 ? "refused" : await byDiff(), JSON.stringify(change.set)).toBe("refused");
          continue;
        }
        expect(failures, JSON.stringify(change.set)).toEqual([]);
        const before = service.requests.length;
        const kind = await bound.diff(id, state, next);
        // The only request of a diff: whether the replaced object may be deleted.
        const asks = resource.refuseToReplace !== undefined && kind.endsWith("replace") ? 1 : 0;
        // The plugin also asks once in each run whether the service can be used.
        const requests = service.requests.slice(before).filter(({ operation }) => operation !== "platform.regions");
        expect(requests.length).toBeLessThanOrEqual(asks);
        expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
        expect(kind, JSON.stringify(change.set)).toBe(change.expect === "no request" ? "update" : change.expect);
        if (change.diffOnly || kind === "same") continue;
        const written = effects(service);
        program = changed;
        inputs = next;
        const bodies = service.bodies.length;
        if (kind === "update") await updated(next, change.expect !== "no request");
        else await replace(kind);
        if (change.expect === "no request") expect(effects(service)).toBe(written);
        else
          expect(effects(service), `a change of ${JSON.stringify(change.set)} must cause a request`).toBeGreaterThan(
            written,
          );
        expectSent(Object.keys(change.set), bodies);
        expect(state).toMatchObject(withoutWriteOnly(resource, withoutUndefined(change.then ?? change.set)));
        const found = await bound.read(id, state);
        expect(found?.state, "the object exists after the change").toEqual(state);
        expectThere();
        // A part of another object is imported with the parts that others have set.
        if (!importRefused && resource.partOf === undefined) expectImported(await bound.read(id, {}));
        expect(await bound.diff(id, state, inputs)).toBe("same");
      }
    });

    /** The forms of an input that is never stored. */
    const writeOnlyForms = (input: string) =>
      Object.entries(resource.inputFields).flatMap(([name, { meta }]) =>
        meta.writeOnly?.insteadOf === input ? [{ ...meta.writeOnly, name }] : [],
      );
    const waysToGive = (input: string): string[] => [
      input,
      ...writeOnlyForms(input).flatMap(({ name, version }) => [name, version]),
    ];

    const isRequired = (name: string): boolean => {
      const field = resource.inputFields[name];
      if (writeOnlyForms(name).some((form) => form.isRequired)) return true;
      return field !== undefined && !field.optional && field.default === undefined;
    };

    async function replace(kind: "replace" | "delete-replace"): Promise<void> {
      const old = { id, state };
      if (kind === "delete-replace") await bound.delete(old.id, old.state);
      // For the replacement the engine checks again, without old inputs.
      ({ inputs } = await checked({}, program));
      await created(inputs);
      if (kind === "delete-replace") return;
      expect(await isListed(old.id)).not.toBe(false);
      await bound.delete(old.id, old.state);
    }

    test("every input has been changed", async () => {
      const changed = new Set((await changes(service)).flatMap(({ set }) => Object.keys(set)));
      const open = Object.keys(resource.inputFields).filter((name) => !changed.has(name));
      expect(open, "inputs that `changes` sets nowhere").toEqual([]);
    });

    test("every optional input has been removed", async () => {
      const removed = new Set(
        (await changes(service)).flatMap(({ set }) => Object.keys(set).filter((name) => set[name] === undefined)),
      );
      const open = Object.entries(resource.inputFields).filter(
        ([name, field]) =>
          field.optional &&
          field.default === undefined &&
          kindOf(field) === "default" &&
          !resource.replaceOn.includes(name) &&
          !removed.has(name),
      );
      const names = open.map(([name]) => name);
      expect(names, "optional inputs that no change removes").toEqual([]);
    });

    test("a refresh shows outside changes, and an update repairs them", async () => {
      // The last change of the test before was a replacement, whose end this run would wait for.
      await bound.nextRun();
      for (const [i, { interfere, shows }] of drift.entries()) {
        await interfere(service, state);
        // As in another run: this run would not read a list again at once.
        const next = await start(type, service, { requestTimeoutSeconds: String(40 + i) });
        const found = await next.bound.read(id, state);
        await next.close();
        const about = JSON.stringify(shows);
        for (const [name, value] of Object.entries(shows)) expect(found?.state[name], about).toEqual(value);
        ({ inputs } = await checked(found?.inputs ?? {}, program));
        expect(await bound.diff(id, found?.state ?? {}, inputs), about).toBe("update");
        state = await bound.update(id, found?.state ?? {}, inputs);
        const repaired = await bound.read(id, state);
        expect(repaired?.state, about).toEqual(state);
        expect(await bound.diff(id, state, inputs), about).toBe("same");
      }
    });

    test("every input that others can change has been changed by them", () => {
      const seen = new Set(drift.flatMap(({ shows }) => Object.keys(shows)));
      const open = Object.entries(resource.inputFields).filter(
        ([name, field]) =>
          kindOf(field) !== "behaviour" &&
          !resource.replaceOn.includes(name) &&
          !Object.hasOwn(steady, name) &&
          !seen.has(name),
      );
      const names = open.map(([name]) => name);
      expect(names, "inputs that `drift` shows nowhere, and for which `steady` has no reason").toEqual([]);
    });

    const importTest = importRefused === undefined ? test : () => undefined;
    if (importRefused)
      test("an import is refused", async () => {
        await expect(bound.read(id, {})).rejects.toThrow(importRefused);
      });

    /** An import by the id alone has the inputs. */
    function expectImported(found: Awaited<ReturnType<Bound["read"]>>): void {
      for (const [name, field] of Object.entries(resource.inputFields)) {
        if (field.meta["passing"] === true || kindOf(field) === "behaviour") continue;
        if (writeOnly.flatMap(waysToGive).includes(name) || inputs[name] === undefined) continue;
        expect(canonical(field, found?.inputs?.[name]), name).toEqual(canonical(field, inputs[name]));
      }
    }

    importTest("an import by id alone finds the same inputs", async () => expectImported(await bound.read(id, {})));

    importTest(
      "an import has the inputs that a program would have: no defaults, behaviour inputs or transient values",
      async () => {
        const found = await bound.read(id, {});
        const redundant = Object.entries(visible(found?.inputs ?? {})).filter(([name, value]) => {
          const field = resource.inputFields[name];
          if (!field || kindOf(field) === "behaviour" || field.meta["passing"] === true) return true;
          return field.default !== undefined && same(field, value, field.default);
        });
        expect(redundant).toEqual([]);
      },
    );

    importTest("what an import wrote down passes its check and differs in nothing", async () => {
      const found = await bound.read(id, {});
      // If required, the user adds inputs that no read returns: the next preview shows exactly these (R7).
      const added = writeOnly
        .filter((name) => isRequired(name))
        .flatMap((name) => waysToGive(name).filter((way) => program[way] !== undefined))
        .map((name) => [name, program[name]]);
      const written = { ...visible(found?.inputs ?? {}), ...Object.fromEntries(added) };
      for (const olds of [{}, found?.inputs ?? {}]) {
        await bound.nextRun();
        const { inputs: next, failures } = await bound.check(olds, written);
        expect(failures).toEqual([]);
        expect(await bound.diff(id, found?.state ?? {}, next)).toBe(added.length > 0 ? "update" : "same");
      }
    });

    test("after a delete it is gone, and a second delete succeeds", async () => {
      await bound.nextRun();
      const [before, there] = [effects(service), lines()];
      await bound.delete(id, state);
      const left = new Set(onService(service.service));
      expect(there.filter((line) => left.has(line))).toEqual([]);
      expect(effects(service) > before, "requests with an effect").toBe(survives !== "untouched");
      if (!survives) {
        expect(await bound.read(id, state)).toBeUndefined();
        if (!isParent(resource)) expect(await isListed(id)).not.toBe(true);
      }
      await bound.delete(id, state);
    });

    test("F01: a lost answer to its creation results in exactly one", async () => {
      if (creation === undefined) return; // it changes nothing on the service
      await bound.nextRun();
      ({ inputs } = await checked({}, program));
      const since = service.service.audit.last;
      service.fail({ operation: creation, when: "after", status: "reset" });
      const creating = bound.create(inputs);
      await (ambiguous === undefined ? creating : expect(creating).rejects.toThrow(ambiguous));
      const repeated = service.service.audit.after(since).filter(({ operation }) => operation === creation);
      // A repeatable request results in one object, however often it is sent.
      if (operationsById.get(creation)?.repeat === "once") expect(repeated).toHaveLength(creates);
      if (ambiguous !== undefined) return;
      ({ id, state } = await creating);
      expect((await bound.read(id, state))?.state).toEqual(state);
      await bound.delete(id, state);
    });

    if (binding === "plugin")
      test("switching from the dynamic binding changes nothing, and all operations continue to work", async () => {
        await bound.nextRun();
        const dynamic = bind(type, service);
        // The changes are those of the first program.
        const from: Values = {
          ...first,
          ...("deletionProtection" in resource.inputFields ? { deletionProtection: false } : {}),
          [CONTEXT]: { ...contextOf(first), timeouts: { create: "5m" } },
        };
        // The dynamic binding's host adds this key to inputs and state.
        const host = { __provider: 'exports.handler=()=>require("pulumi-machines/dynamic").provider("x");' };
        const olds = { ...(await dynamic.check({}, from)).inputs, ...host };
        const made = await dynamic.create(olds);
        ({ inputs } = await checked(olds, from));
        state = { ...made.state, ...host };
        expect(await bound.diff(made.id, state, inputs)).toBe("same");
        const found = await bound.read(made.id, state);
        expect(await bound.diff(made.id, found?.state ?? {}, inputs)).toBe("same");
        const change = (await changes(service)).find((one) => one.expect === "update" && one.diffOnly !== true);
        if (change) {
          const changed = withoutUndefined({ ...from, ...change.set });
          const { inputs: next } = await checked(olds, changed);
          expect(await bound.diff(made.id, state, next)).toBe("update");
          state = await bound.update(made.id, state, next);
          expect(state).not.toHaveProperty("__provider");
          expect(await bound.diff(made.id, state, next)).toBe("same");
          // And back: the owner in the state may change, and nothing is sent.
          const back = { ...(await dynamic.check(olds, changed)).inputs, ...host };
          const before = effects(service);
          expect(await dynamic.diff(made.id, state, back)).toMatch(/^(same|update)$/);
          state = await dynamic.update(made.id, state, back);
          expect(effects(service)).toBe(before);
        }
        await bound.nextRun();
        await bound.delete(made.id, state);
        if (!survives) expect(await bound.read(made.id, state)).toBeUndefined();
      });
  });
}
