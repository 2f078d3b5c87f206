// The plan of an update: the requests that a Machine needs.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Machine } from "../../provider/client/machine.ts";
import { planUpdate, type KnownMachine, type WantedMachine } from "../../provider/machines/plan.ts";

const image = "registry.example.com/web:1";
const states = ["created", "starting", "started", "stopping", "stopped", "suspended", "failed"] as const;

const arbitrary = fc.record({
  live: fc.constantFrom(...states),
  crashed: fc.boolean(),
  newImage: fc.boolean(),
  newMetadata: fc.boolean(),
  state: fc.constantFrom(undefined, "started", "stopped", "suspended"),
  cordoned: fc.boolean(),
  newSecrets: fc.boolean(),
  newTriggers: fc.constantFrom("none", "restart", "reload", "both"),
  unfinished: fc.boolean(),
});
type Case = typeof arbitrary extends fc.Arbitrary<infer T> ? T : never;

function planOf({ live, crashed, newImage, newMetadata, state, cordoned, newSecrets, newTriggers, unfinished }: Case) {
  const config = { image, metadata: { team: "web" } };
  const events = crashed
    ? [{ type: "exit", status: "stopped", request: { exit_event: { exit_code: 1, requested_stop: false } } }]
    : [];
  const machine = { id: "m1", state: live, instanceId: "v1", config, events, cordoned: false } as unknown as Machine;
  const has = (one: string) => newTriggers === one || newTriggers === "both";
  const old: KnownMachine = { config, minSecretsVersion: 1, unfinished };
  const wanted: WantedMachine = {
    config: { image: newImage ? `${image}2` : image, metadata: newMetadata ? { owner: "ops" } : config.metadata },
    state,
    cordoned,
    minSecretsVersion: newSecrets ? 2 : 1,
    ...(has("restart") ? { restart: { triggers: { at: "1" } } } : {}),
    ...(has("reload") ? { reload: { triggers: { at: "1" }, signal: "SIGHUP" } } : {}),
  };
  return planUpdate(machine, old, wanted);
}

const nothing: Case = {
  ...{ live: "started", crashed: false, newImage: false, newMetadata: false, state: undefined, cordoned: false },
  ...{ newSecrets: false, newTriggers: "none", unfinished: false },
};

describe("the plan of an update", () => {
  test("the plan of an update of an unchanged Machine does nothing", () => {
    expect(planOf(nothing)).toEqual({
      ...{ version: undefined, metadata: undefined, cordoned: false, power: undefined, actions: [] },
      ...{ target: "started", waits: false },
    });
  });

  test("the plan of an update has a new version only for the versioned part of the configuration, or for new secrets", () => {
    fc.assert(
      fc.property(arbitrary, (one) => {
        expect(planOf(one).version !== undefined).toBe(one.newImage || one.newSecrets);
      }),
    );
  });

  test("the plan of an update changes metadata and power separately only without a new version, which includes both", () => {
    fc.assert(
      fc.property(arbitrary, (one) => {
        const { version, metadata, power, actions } = planOf(one);
        if (version !== undefined) expect([metadata, power, actions]).toEqual([undefined, undefined, []]);
        else expect(metadata).toEqual(one.newMetadata ? { team: null, owner: "ops" } : undefined);
      }),
    );
  });

  test("the plan of an update keeps a stopped or suspended Machine's power state if the program does not set it (R10)", () => {
    fc.assert(
      fc.property(arbitrary, (one) => {
        if (one.state !== undefined || one.crashed) return;
        const { target, power, version } = planOf(one);
        if (one.live === "stopped") expect(target).toBe("stopped");
        if (one.live === "suspended") expect(target).toBe(version ? "stopped" : "suspended");
        if (one.live === "stopped" || one.live === "suspended") expect(power).toBeUndefined();
      }),
    );
  });

  test("the plan of an update starts a crashed or failed Machine", () => {
    expect(planOf({ ...nothing, live: "stopped", crashed: true })).toMatchObject({ power: "start", waits: true });
    expect(planOf({ ...nothing, live: "failed" })).toMatchObject({ power: "start", waits: true });
  });

  test("the plan of an update restarts only a Machine that runs and is otherwise unchanged", () => {
    fc.assert(
      fc.property(arbitrary, (one) => {
        const { actions, version, power, target } = planOf(one);
        if (actions.length > 0) expect([version, power, target]).toEqual([undefined, undefined, "started"]);
      }),
    );
    expect(planOf({ ...nothing, newTriggers: "restart" })).toMatchObject({ actions: ["restart"], waits: true });
    expect(planOf({ ...nothing, newTriggers: "reload" })).toMatchObject({ actions: ["reload"], waits: false });
  });

  test("the plan of an update waits after any change of the power state, and for what the last update did not reach", () => {
    fc.assert(
      fc.property(arbitrary, (one) => {
        const { version, power, actions, target, waits } = planOf(one);
        const mayChange = version !== undefined || power !== undefined || actions.includes("restart");
        if (mayChange) expect(waits).toBe(true);
        else expect(waits).toBe(one.unfinished && target === "started" && actions.length === 0);
      }),
    );
  });
});
