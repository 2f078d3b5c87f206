// A new version of a fleet that crashes again and again, seen with the real provider and the real service in simulated time.
import { describe, expect, test } from "vitest";
import { withoutUndefined } from "../../provider/core/values.ts";
import { refresh } from "../support/modelEngine.ts";
import { withSimulation } from "../support/simulation.ts";
import { named, Shop } from "./shop.ts";

const crashing = { env: { MACHINES_SIMULATE: "exit:1" }, restart: { policy: "always" } } as const;
const checks = { alive: { type: "tcp", port: 8080, interval: "1s", timeout: "1s" } } as const;
const rolling = { type: "rolling", maxUnavailable: "1" } as const;

describe("F53: a new version that crashes again and again", () => {
  test.each([
    ["with a healthy time of the fleet", { strategy: { ...rolling, minHealthySeconds: 3 } }, {}],
    ["with the healthy time of the provider", { strategy: rolling }, { minHealthySeconds: "3" }],
  ])(
    "a new version that crashes again and again ends the rollout at its first Machine, %s",
    async (name, more, settings) => {
      await withSimulation(name, async (simulation) => {
        const shop = new Shop(simulation, more);
        await shop.succeed(shop.fleet("1"));
        const before = shop.machines();
        const begun = simulation.time.now();
        const { errors } = await shop.up(shop.fleet("2", { config: crashing }), { settings });
        expect(errors).toEqual([
          expect.stringMatching(
            /^the rollout of Fleet shop\/web stopped\. update web-ams-1: Machine shop\/\w+ .*exited \(code 1\).* 1 of 3 Machines has the new configuration \(web-ams-1\), 2 have the old one, 2 are ready\. Correct the cause and run up again to continue\./,
          ),
        ]);
        // It fails soon, and not when its time is over.
        expect(simulation.time.now() - begun).toBeLessThan(20_000);
        const after = shop.machines();
        for (const one of ["web-ams-2", "web-ams-3"]) expect(named(after, one)).toEqual(named(before, one));
      });
    },
  );

  test("a new version that crashes again and again is undone on that Machine when the fleet rolls back", async () => {
    await withSimulation("back", async (simulation) => {
      const shop = new Shop(simulation, { strategy: { ...rolling, minHealthySeconds: 3 }, onFailure: "rollback" });
      await shop.succeed(shop.fleet("1"));
      const before = shop.machines();
      const { errors, progress } = await shop.up(shop.fleet("2", { config: crashing }));
      expect(errors).toEqual([
        expect.stringMatching(
          /failed, and was rolled back\. .*exited \(code 1\).* 0 of 3 Machines have the new configuration, 3 have the old one, 3 are ready\.(?! Correct)/,
        ),
      ]);
      expect(shop.tags()).toEqual({ "1": 3 });
      expect(named(shop.machines(), "web-ams-2")).toEqual(named(before, "web-ams-2"));
      expect(progress).toContain("0/3 new · updating web-ams-1");
      expect(progress).toContain("2/3 old again · updating web-ams-1");
    });
  });

  test("after its checks have passed ends the rollout in bounded time, however often it passes again", async () => {
    await withSimulation("passing", async (simulation) => {
      const shop = new Shop(simulation, { strategy: { ...rolling, minHealthySeconds: 0 } });
      await shop.succeed(shop.fleet("1", { config: { checks } }));
      const begun = simulation.time.now();
      const { errors } = await shop.up(shop.fleet("2", { config: { ...crashing, checks } }));
      expect(errors).toEqual([expect.stringMatching(/the rollout of Fleet shop\/web stopped/)]);
      expect(simulation.time.now() - begun).toBeLessThan(120_000);
      expect(shop.tags()["1"]).toBeGreaterThanOrEqual(1);
    });
  });

  test("a new version that crashes again and again fails as a canary, also when it runs at each look", async () => {
    await withSimulation("canary", async (simulation) => {
      const shop = new Shop(simulation, { strategy: { type: "canary", observe: "20s", minHealthySeconds: 0 } });
      await shop.succeed(shop.fleet("1"));
      const { errors } = await shop.up(shop.fleet("2", { config: crashing }));
      expect(errors).toEqual([expect.stringMatching(/1 of 3 Machines has the new configuration \(web-ams-1\)/)]);
      expect(shop.tags()).toEqual({ "1": 2, "2": 1 });
    });
  });
});

test("F52: a Machine of a fleet that crashes again and again is drift, and the next up fails again", async () => {
  await withSimulation("drift", async (simulation) => {
    const shop = new Shop(simulation, { regions: { ams: 1 } });
    const program = (minHealthySeconds?: number) =>
      shop.fleet("1", { config: crashing, strategy: withoutUndefined({ ...rolling, minHealthySeconds }) });
    await shop.succeed(program(0));
    await simulation.wait(10_000);
    // It runs at some of the looks.
    for (let look = 0; look < 6; look++) {
      await simulation.wait(700);
      await refresh(shop.stack, simulation.start());
      expect(shop.state["drift"]).toEqual([
        expect.stringMatching(/^web-ams-1 \(\w+\): is \w+ and not ready, its main process exited \(code 1\)/),
      ]);
    }
    expect((await shop.up(program())).errors).toEqual([expect.stringContaining("exited (code 1)")]);
  });
});

test("F53: a healthy time is for each Machine, and is no part of the time for progress", async () => {
  await withSimulation("healthy", async (simulation) => {
    const shop = new Shop(simulation, { strategy: { ...rolling, minHealthySeconds: 60 } });
    await shop.succeed(shop.fleet("1"));
    const begun = simulation.time.now();
    await shop.succeed(shop.fleet("2"));
    expect(simulation.time.now() - begun).toBeGreaterThan(180_000);
  });
});

test("a wait names its Machine after the count, and is not repeated while nothing changes", async () => {
  await withSimulation("waits", async (simulation) => {
    const shop = new Shop(simulation, { strategy: rolling, progressDeadline: "100s" });
    await shop.succeed(shop.fleet("1", { config: { checks } }));
    const never = { config: { checks, env: { MACHINES_SIMULATE: "checks:critical" } } };
    const { progress, errors } = await shop.up(shop.fleet("2", never));
    expect(errors).toHaveLength(1);
    const waits = progress.filter((line) => line.includes("waiting for checks"));
    expect(waits.length).toBeGreaterThan(0);
    expect(waits.length).toBeLessThanOrEqual(3);
    for (const line of waits) expect(line).toMatch(/^0\/3 new · web-ams-1: waiting for checks/);
  });
});
