// The gates of rollouts, what a rollback returns to, and rollouts that another client holds up (F55).
import { describe, expect, test } from "vitest";
import { refresh } from "../support/modelEngine.ts";
import { withSimulation } from "../support/simulation.ts";
import { named, Shop } from "./shop.ts";

const strategies = {
  canary: { type: "canary", observe: "1s", promote: "manual" },
  bluegreen: { type: "bluegreen", promote: "manual" },
} as const;
const waiting = { canary: { "1": 2, "2": 1 }, bluegreen: { "1": 3, "2": 3 } };

describe.each(["canary", "bluegreen"] as const)("F55: the gate of a %s rollout", (type) => {
  const isWaiting = type === "canary" ? "canary" : "green";

  test("the gate waits with a warning, and is passed by promoted", async () => {
    await withSimulation(`${type}/promoted`, async (simulation) => {
      const shop = new Shop(simulation, { strategy: strategies[type] });
      await shop.succeed(shop.fleet("1"));
      const { warnings } = await shop.succeed(shop.fleet("2"));
      expect(warnings).toEqual([
        expect.stringMatching(
          /wait for (its|their) promotion\. To promote it, set promoted: true and run up\. To roll back, set the old config and run up\.$/,
        ),
      ]);
      expect([shop.tags(), shop.state["rollout"]]).toEqual([waiting[type], isWaiting]);
      // Nothing promotes it meanwhile.
      await shop.succeed(shop.fleet("2", { restartOnce: true }));
      expect(shop.tags()).toEqual(waiting[type]);
      await shop.succeed(shop.fleet("2", { promoted: true }));
      expect([shop.tags(), shop.state["rollout"]]).toEqual([{ "2": 3 }, "complete"]);
    });
  });

  test("the gate is not passed by what an earlier rollout left in the program", async () => {
    await withSimulation(`${type}/left`, async (simulation) => {
      const shop = new Shop(simulation, { strategy: strategies[type] });
      await shop.succeed(shop.fleet("0"));
      await shop.succeed(shop.fleet("1"));
      await shop.succeed(shop.fleet("1", { promoted: true }));
      expect(shop.tags()).toEqual({ "1": 3 });
      const { warnings } = await shop.succeed(shop.fleet("2", { promoted: true }));
      expect(warnings.join()).toContain("promoted was true before they ran, which promotes nothing: set it to false");
      expect(shop.tags()).toEqual(waiting[type]);
      // Not by the next run either, nor by one that changes something else.
      await shop.succeed(shop.fleet("2", { promoted: true }));
      await shop.succeed(shop.fleet("2", { promoted: true, memoryLimitMb: 128 }));
      expect(shop.tags()).toEqual(waiting[type]);
      await shop.succeed(shop.fleet("2", { promoted: false, memoryLimitMb: 128 }));
      expect(shop.tags()).toEqual(waiting[type]);
      // And not for another configuration.
      await shop.succeed(shop.fleet("3", { promoted: true, memoryLimitMb: 128 }));
      expect(shop.tags()).toEqual({ "1": waiting[type]["1"], "3": waiting[type]["2"] });
    });
  });

  test("the gate prevents neither a rollback nor a repair", async () => {
    await withSimulation(`${type}/back`, async (simulation) => {
      const shop = new Shop(simulation, { strategy: strategies[type] });
      await shop.succeed(shop.fleet("1"));
      await shop.succeed(shop.fleet("2"));
      await shop.succeed(shop.fleet("1"));
      expect([shop.tags(), shop.state["rollout"]]).toEqual([{ "1": 3 }, "complete"]);
    });
  });

  test("a passed gate stays passed for its configuration when the rollout fails or is killed", async () => {
    await withSimulation(`${type}/killed`, async (simulation) => {
      const shop = new Shop(simulation, { strategy: { ...strategies[type], drain: "0s" } });
      await shop.succeed(shop.fleet("1"));
      await shop.succeed(shop.fleet("2"));
      const promoted = shop.fleet("2", { promoted: true });
      const change = (operation: string): boolean =>
        /machines\.(update|cordon|uncordon|destroy|patchMetadata)/.test(operation);
      expect(await shop.killed(promoted, { request: 1, when: "after", of: change })).toBe("died");
      // A refusal stops the next run, and the one after that continues.
      const operation = type === "canary" ? "machines.update" : "machines.uncordon";
      simulation.service.fail({ operation, when: "before", status: 403, body: { error: "not now" } });
      expect((await shop.up(promoted)).errors).toEqual([expect.stringContaining("not now")]);
      expect(shop.state).toMatchObject({ rollout: "failed", gatePassed: true });
      await shop.succeed(promoted);
      expect([shop.tags(), shop.state["rollout"]]).toEqual([{ "2": 3 }, "complete"]);
      expect(shop.state["gatePassed"]).toBeUndefined();
      await shop.succeed(shop.fleet("3", { promoted: true }));
      expect(shop.tags()["3"]).toBe(waiting[type]["2"]);
      expect(shop.tags()["2"]).toBe(waiting[type]["1"]);
    });
  });
});

describe("F55: a rollback", () => {
  const never = { config: { env: { MACHINES_SIMULATE: "crash" }, restart: { policy: "on-failure", maxRetries: 1 } } };

  test("a rollback does not return to what never ran", async () => {
    await withSimulation("never ran", async (simulation) => {
      const shop = new Shop(simulation, { onFailure: "rollback" });
      await shop.succeed(shop.fleet("1"));
      // No Machine runs the next one.
      await shop.succeed(shop.fleet("1", { regions: { ams: 0 } }));
      await shop.succeed(shop.fleet("2", { ...never, regions: { ams: 0 } }));
      const { errors } = await shop.up(shop.fleet("3", never));
      expect(errors).toEqual([expect.stringContaining("was rolled back")]);
      expect([shop.tags(), shop.state["rollout"]]).toEqual([{ "1": 3 }, "complete"]);
    });
  });

  test("a rollback changes nothing if no configuration ever ran", async () => {
    await withSimulation("nothing ran", async (simulation) => {
      const shop = new Shop(simulation, { onFailure: "rollback" });
      await shop.succeed(shop.fleet("1", { ...never, regions: { ams: 0 } }));
      const { errors } = await shop.up(shop.fleet("2", never));
      expect(errors).toEqual([expect.stringMatching(/the rollout of Fleet shop\/web stopped/)]);
      expect(Object.keys(shop.tags())).toEqual(["2"]);
    });
  });

  test("a rollback does not return to what others have set on most Machines", async () => {
    await withSimulation("by hand", async (simulation) => {
      const shop = new Shop(simulation, { onFailure: "rollback" });
      await shop.succeed(shop.fleet("1"));
      await simulation.wait(30_000);
      for (const { id } of shop.machines().slice(0, 2)) {
        const path = `/v1/apps/shop/machines/${id}`;
        const { config } = await shop.send<{ config: object }>("GET", path);
        await shop.send("POST", path, { config: { ...config, image: "registry.example.com/shop:byhand" } });
      }
      await simulation.wait(30_000);
      // The second refresh sees the change in the state already.
      for (const _ of [1, 2]) {
        const process = simulation.start();
        await process.run(() => refresh(shop.stack, process));
        expect(shop.state).toMatchObject({
          rollout: "complete",
          config: { image: "registry.example.com/shop:byhand" },
          committed: { image: "registry.example.com/shop:1" },
        });
      }
      const { errors } = await shop.up(shop.fleet("2", never));
      expect(errors).toEqual([expect.stringContaining("was rolled back")]);
      expect(shop.tags()).toEqual({ "1": 3 });
      expect(shop.state).toMatchObject({ rollout: "complete", config: { image: "registry.example.com/shop:1" } });
      await shop.succeed(shop.fleet("3"));
      expect([shop.tags(), shop.state["committed"]]).toEqual([{ "3": 3 }, undefined]);
    });
  });

  test("a rollback follows when another client's lease outlasts the time for progress", async () => {
    await withSimulation("lease", async (simulation) => {
      const shop = new Shop(simulation, { onFailure: "rollback", strategy: { type: "rolling", maxUnavailable: "1" } });
      await shop.succeed(shop.fleet("1"));
      const { id } = named(shop.machines(), "web-ams-2");
      await shop.send("POST", `/v1/apps/shop/machines/${id}/lease`, { ttl: 600, description: "another client" });
      const { errors } = await shop.up(shop.fleet("2"));
      expect(errors).toEqual([
        expect.stringMatching(
          /failed, and was rolled back\. update web-ams-2: the lease of Machine \w+ was not released .* 0 of 3 Machines have the new configuration, 3 have the old one, 3 are ready\./,
        ),
      ]);
      expect(errors[0]).not.toContain("Nothing was changed");
      expect(shop.tags()).toEqual({ "1": 3 });
      expect(shop.state).toMatchObject({ rollout: "complete" });
    });
  });

  test("a rollback that also fails says once what each Machine has", async () => {
    await withSimulation("both", async (simulation) => {
      const shop = new Shop(simulation, { onFailure: "rollback", strategy: { type: "rolling", maxUnavailable: "1" } });
      await shop.succeed(shop.fleet("1"));
      // The first update of the way back is refused.
      simulation.service.fail({
        operation: "machines.update",
        when: "before",
        nth: 2,
        status: 403,
        body: { error: "no" },
      });
      const { errors } = await shop.up(shop.fleet("2", never));
      expect(errors).toEqual([
        expect.stringMatching(
          /^the rollout of Fleet shop\/web failed\. update web-ams-1: .* The rollback to the old configuration also failed: update web-ams-1.*: .* 1 of 3 Machines has the new configuration \(web-ams-1\), 2 have the old one, 2 are ready\. Correct the cause and run up again\./,
        ),
      ]);
      expect(errors[0]?.match(/of 3 Machines/g)).toHaveLength(1);
    });
  });
});

test("F55: after a cancellation, the message and the state have what the Machines run", async () => {
  await withSimulation("cancelled", async (simulation) => {
    const shop = new Shop(simulation, { strategy: { type: "rolling", maxUnavailable: "1", minHealthySeconds: 5 } });
    await shop.succeed(shop.fleet("1"));
    const { errors } = await shop.cancelled(shop.fleet("2"), 9000);
    expect(errors).toEqual([
      expect.stringMatching(
        /[12] of 3 Machines (has|have) the new configuration \(web-ams-1.*\), [12] (has|have) the old one, [23] are ready\. Run up again to continue\./,
      ),
    ]);
    expect(shop.state["machines"]).toHaveLength(3);
  });
});
