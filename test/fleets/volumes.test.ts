// The volumes of a fleet over several runs: after failed and interrupted ones, none is left without a word, and none that no Machine has
// mounted becomes the volume of a later Machine.
import { expect, test } from "vitest";
import { failures, importResource, up } from "../support/modelEngine.ts";
import { withSimulation, type Simulation } from "../support/simulation.ts";
import { app, named, Shop } from "./shop.ts";

const volume = { path: "/data", sizeGb: 1 };
const copied = { volume: { ...volume, copy: true }, strategy: { type: "bluegreen" } };

/** The next creations of Machines are refused. */
const refuseMachines = ({ service }: Simulation, times: number | "always"): void =>
  service.fail({ operation: "machines.create", capacity: true, times });

const mounted = (shop: Shop): number => shop.volumes().filter(({ attached }) => attached !== null).length;

test("the copies for Machines that were refused are deleted", async () => {
  await withSimulation("copies", async (simulation) => {
    const shop = new Shop(simulation, { ...copied, deleteVolumes: true, regions: { ams: 2 } });
    await shop.succeed(shop.fleet("1"));
    for (let attempt = 0; attempt < 3; attempt++) {
      refuseMachines(simulation, 2);
      const { errors } = await shop.up(shop.fleet("2"));
      expect(errors.join("\n")).toContain("insufficient resources");
      expect(shop.volumes()).toHaveLength(2);
      expect(mounted(shop)).toBe(2);
    }
    await shop.succeed(shop.fleet("2"));
    expect(shop.volumes()).toHaveLength(2);
    await shop.succeed(undefined);
    expect(shop.volumes()).toEqual([]);
  });
});

test("the new volumes for Machines that were refused are deleted", async () => {
  await withSimulation("new volumes", async (simulation) => {
    const shop = new Shop(simulation, { volume, regions: { ams: 2 } });
    await shop.succeed(undefined);
    refuseMachines(simulation, "always");
    const { errors } = await shop.up(shop.fleet("1"));
    expect(errors.join("\n")).toContain("insufficient resources");
    expect(shop.volumes()).toEqual([]);
    expect((await shop.up(undefined)).warnings).toEqual([]);
  });
});

test("a volume with data is kept when its Machine is refused", async () => {
  await withSimulation("kept", async (simulation) => {
    const shop = new Shop(simulation, { volume, deleteVolumes: false });
    await shop.succeed(shop.fleet("1", { regions: { ams: 2 } }));
    await shop.succeed(shop.fleet("1", { regions: { ams: 1 } }));
    const volumes = shop.volumes().map(({ id }) => id);
    refuseMachines(simulation, "always");
    expect((await shop.up(shop.fleet("1", { regions: { ams: 2 } }))).errors).not.toEqual([]);
    expect(shop.volumes().map(({ id }) => id)).toEqual(volumes);
  });
});

/** A blue/green rollout whose process dies after it created a copy. */
async function withUnusedCopy(simulation: Simulation, more: object): Promise<Shop> {
  const shop = new Shop(simulation, { ...copied, regions: { ams: 1 }, ...more });
  await shop.succeed(shop.fleet("1"));
  const death = { request: 1, when: "before" as const, of: (operation: string) => operation === "machines.create" };
  expect(await shop.killed(shop.fleet("2"), death)).toBe("died");
  expect(shop.volumes()).toHaveLength(2);
  expect(mounted(shop)).toBe(1);
  return shop;
}

test("a copy that an interrupted run left becomes the volume of no later Machine", async () => {
  await withSimulation("stale", async (simulation) => {
    const shop = await withUnusedCopy(simulation, {});
    const [copy] = shop.volumes().filter(({ attached }) => attached === null);
    const back = { config: { env: { A: "1" } }, strategy: { type: "rolling" } };
    const { warnings } = await shop.succeed(shop.fleet("1", back));
    expect(warnings.join("\n")).toContain(
      `volume shop/${copy?.id} of Machine web-ams-2 is kept with its data; it is a copy`,
    );
    const larger = shop.fleet("1", { ...back, regions: { ams: 2 } });
    const { errors } = await shop.up(larger);
    expect(errors.join("\n")).toContain(`volume: shop/${copy?.id}`);
    expect(errors.join("\n")).toContain("nothing shows that a Machine of this fleet has mounted it");
    await shop.send("DELETE", `/v1/apps/shop/volumes/${copy?.id}`);
    await shop.succeed(larger);
    expect(mounted(shop)).toBe(2);
  });
});

test("a copy that was reported and kept is not deleted by a later deletion with deleteVolumes", async () => {
  await withSimulation("reported copy", async (simulation) => {
    const shop = await withUnusedCopy(simulation, {});
    const [copy] = shop.volumes().filter(({ attached }) => attached === null);
    const back = { config: { env: { A: "1" } }, strategy: { type: "rolling" } };
    await shop.succeed(shop.fleet("1", back));
    await shop.succeed(shop.fleet("1", { ...back, deleteVolumes: true }));
    await shop.succeed(undefined);
    expect(shop.volumes().map(({ id }) => id)).toEqual([copy?.id]);
  });
});

test("with deleteVolumes, the next update deletes the copy that an interrupted run left", async () => {
  await withSimulation("next update", async (simulation) => {
    const shop = await withUnusedCopy(simulation, { deleteVolumes: true });
    await shop.succeed(shop.fleet("2"));
    expect(shop.volumes()).toHaveLength(1);
    expect(mounted(shop)).toBe(1);
  });
});

test("a copy that a Machine has mounted is mounted again", async () => {
  await withSimulation("used copy", async (simulation) => {
    const shop = new Shop(simulation, { ...copied, deleteVolumes: true, regions: { ams: 2 } });
    await shop.succeed(shop.fleet("1"));
    await shop.succeed(shop.fleet("2"));
    // These have the first names again, which the Machine that is missing later gets too.
    await shop.succeed(shop.fleet("3"));
    const volumes = shop.volumes().map(({ id }) => id);
    await shop.succeed(shop.fleet("3", { deleteVolumes: false, regions: { ams: 1 } }));
    await shop.succeed(shop.fleet("3", { regions: { ams: 2 } }));
    expect(shop.volumes().map(({ id }) => id)).toEqual(volumes);
    expect(mounted(shop)).toBe(2);
  });
});

test.each([
  { deleteVolumes: true, left: 0 },
  { deleteVolumes: false, left: 2 },
])("a deletion that was interrupted leaves no volume without a word: %o", async ({ deleteVolumes, left }) => {
  await withSimulation("interrupted deletion", async (simulation) => {
    const shop = new Shop(simulation, { volume, deleteVolumes, regions: { ams: 2 } });
    await shop.succeed(shop.fleet("1"));
    const death = { request: 1, when: "after" as const, of: (operation: string) => operation === "machines.destroy" };
    const process = simulation.start({ death });
    expect(await process.run(() => up(shop.stack, [app], process))).toBe("died");
    const { warnings } = await shop.succeed(undefined);
    expect(shop.volumes()).toHaveLength(left);
    const reported = warnings.flatMap((text) => /volume shop\/(\w+)/.exec(text)?.[1] ?? []).sort();
    expect(reported).toEqual(
      shop
        .volumes()
        .map(({ id }) => id)
        .sort(),
    );
  });
});

test("a volume that an earlier update kept is not deleted by a later one with deleteVolumes", async () => {
  await withSimulation("kept on purpose", async (simulation) => {
    const shop = new Shop(simulation, { volume });
    await shop.succeed(shop.fleet("1", { regions: { ams: 2 } }));
    await shop.succeed(shop.fleet("1", { regions: { ams: 1 } }));
    await shop.succeed(shop.fleet("2", { regions: { ams: 1 }, deleteVolumes: true }));
    expect(shop.volumes()).toHaveLength(2);
    const { warnings } = await shop.succeed(undefined);
    const [kept, ...more] = shop.volumes();
    expect(more).toEqual([]);
    expect(warnings.join("\n")).toContain(`volume shop/${kept?.id} of Machine web-ams-2 is kept with its data`);
  });
});

test("a volume of others with a long name stops no rollout and no deletion", async () => {
  await withSimulation("long name", async (simulation) => {
    const shop = new Shop(simulation, { volume, deleteVolumes: true, regions: { ams: 1 } });
    await shop.succeed(undefined);
    await shop.send("POST", "/v1/apps/shop/volumes", { name: "a_volume_with_a_long_name_of_x", region: "ams" });
    await shop.succeed(shop.fleet("1"));
    const { warnings } = await shop.succeed(undefined);
    expect(warnings).toEqual([]);
    expect(shop.volumes().map(({ name }) => name)).toEqual(["a_volume_with_a_long_name_of_x"]);
  });
});

const withVolumes = { volume, deleteVolumes: true, regions: { ams: 2 } };

const crashing = { env: { MACHINES_SIMULATE: "exit:1" }, restart: { policy: "always" } };

/** A Machine is destroyed, and not by the fleet. Returns the id of its volume. */
async function destroyedByOthers(shop: Shop, machine: string): Promise<string> {
  const { id } = named(shop.machines(), machine);
  const { id: volumeId = "" } = shop.volumes().find(({ attached }) => attached === id) ?? {};
  await shop.send("DELETE", `/v1/apps/shop/machines/${id}?force=true`);
  return volumeId;
}

test("with deleteVolumes, an update deletes no volume of a Machine that others destroyed", async () => {
  await withSimulation("destroyed by others", async (simulation) => {
    const shop = new Shop(simulation, withVolumes);
    await shop.succeed(shop.fleet("1"));
    const volumeId = await destroyedByOthers(shop, "web-ams-2");
    const { warnings } = await shop.succeed(shop.fleet("1", { regions: { ams: 1 } }));
    expect(warnings.join("\n")).toContain(`volume shop/${volumeId} of Machine web-ams-2 is kept with its data`);
    expect(shop.volumes().map(({ id }) => id)).toContain(volumeId);
    expect(shop.state["keptVolumes"]).toEqual([`shop/${volumeId}`]);
  });
});

test("with deleteVolumes, a deletion deletes also the volume of a Machine that others destroyed", async () => {
  await withSimulation("destroyed by others, and deleted", async (simulation) => {
    const shop = new Shop(simulation, withVolumes);
    await shop.succeed(shop.fleet("1"));
    await destroyedByOthers(shop, "web-ams-2");
    await shop.succeed(undefined);
    expect(shop.volumes()).toEqual([]);
  });
});

test.each(["stop", "rollback"])(
  "with deleteVolumes, a blue/green update that fails deletes no volume of a Machine that others destroyed: %s",
  async (onFailure) => {
    await withSimulation(`failed blue/green/${onFailure}`, async (simulation) => {
      const shop = new Shop(simulation, { ...withVolumes, ...copied, onFailure });
      await shop.succeed(shop.fleet("1"));
      const volumeId = await destroyedByOthers(shop, "web-ams-2");
      const failed = await shop.up(shop.fleet("2", { config: crashing }));
      expect(failed.errors).not.toEqual([]);
      // A rollback has brought all Machines back.
      const next = onFailure === "stop" ? await shop.succeed(shop.fleet("3")) : failed;
      const { attached } = shop.volumes().find(({ id }) => id === volumeId) ?? {};
      expect(named(shop.machines(), "web-ams-2").id).toBe(attached);
      expect([...failed.warnings, ...next.warnings].join("\n")).toContain(
        `volume shop/${volumeId} of Machine web-ams-2 is kept with its data; a Machine web-ams-2 of the fleet mounts it again`,
      );
      expect(shop.volumes()).toHaveLength(2);
    });
  },
);

test("a volume that was kept stays after a blue/green update that fails, also for a later deletion with deleteVolumes", async () => {
  await withSimulation("kept, and a failed growth", async (simulation) => {
    const shop = new Shop(simulation, { ...copied, regions: { ams: 1 } });
    await shop.succeed(shop.fleet("1", { regions: { ams: 2 } }));
    await shop.succeed(shop.fleet("1"));
    const [kept] = shop.state["keptVolumes"] as string[];
    const grown = { regions: { ams: 2 }, deleteVolumes: true };
    expect((await shop.up(shop.fleet("2", { config: crashing, ...grown }))).errors).not.toEqual([]);
    await shop.succeed(shop.fleet("1", { deleteVolumes: true }));
    expect(shop.state["keptVolumes"]).toEqual([kept]);
    await shop.succeed(undefined);
    expect(shop.volumes().map(({ id }) => `shop/${id}`)).toEqual([kept]);
  });
});

test.each(["an import", "a state of an earlier version"])(
  "with deleteVolumes, an update deletes no volume that was kept before %s",
  async (what) => {
    await withSimulation(`kept before/${what}`, async (simulation) => {
      const shop = new Shop(simulation, { volume });
      await shop.succeed(shop.fleet("1", { regions: { ams: 2 } }));
      await shop.succeed(shop.fleet("1", { regions: { ams: 1 } }));
      const volumes = shop.volumes().map(({ id }) => id);
      if (what === "an import") {
        const [lost] = shop.stack.resources.splice(
          shop.stack.resources.findIndex(({ type }) => type === "Fleet"),
          1,
        );
        if (!lost) throw new Error("the state has no fleet");
        const process = simulation.start();
        const report = await process.run(() => importResource(shop.stack, lost, process));
        if (report === "died") throw new Error("the process died");
        expect(failures(report)).toEqual([]);
      } else delete shop.state["keptVolumes"];
      await shop.succeed(shop.fleet("2", { regions: { ams: 1 }, deleteVolumes: true }));
      expect(shop.volumes().map(({ id }) => id)).toEqual(volumes);
      await shop.succeed(undefined);
      expect(shop.volumes()).toHaveLength(1);
    });
  },
);

test.each(["an update", "a deletion"])(
  "volumes that an earlier fleet left stay, also when the first update of the next one fails: %s",
  async (next) => {
    await withSimulation(`earlier fleet/${next}`, async (simulation) => {
      const shop = new Shop(simulation, { volume, regions: { ams: 2 } });
      await shop.succeed(shop.fleet("1"));
      await shop.succeed(undefined);
      const kept = shop.volumes().map(({ id }) => id);
      refuseMachines(simulation, 1);
      const smaller = shop.fleet("1", { deleteVolumes: true, regions: { ams: 1 } });
      expect((await shop.up(smaller)).errors).not.toEqual([]);
      await shop.succeed(next === "an update" ? smaller : undefined);
      expect(shop.volumes().map(({ id }) => id)).toEqual(kept);
    });
  },
);

test("a copy that cannot be deleted does not keep an update from its end", async () => {
  await withSimulation("lasting refusal", async (simulation) => {
    const shop = await withUnusedCopy(simulation, { deleteVolumes: true });
    simulation.service.fail({
      ...{ operation: "volumes.delete", status: 412, times: "always" },
      body: { error: "failed_precondition: volume is in use" },
    });
    const { warnings } = await shop.succeed(
      shop.fleet("1", { config: { env: { A: "1" } }, strategy: { type: "rolling" } }),
    );
    expect(warnings.join("\n")).toContain("a copy that an interrupted rollout left was not deleted");
  });
});

test("the state lists the volumes that were kept, until someone deletes them", async () => {
  await withSimulation("deleted by others", async (simulation) => {
    const shop = new Shop(simulation, { volume });
    await shop.succeed(shop.fleet("1", { regions: { ams: 2 } }));
    await shop.succeed(shop.fleet("1", { regions: { ams: 1 } }));
    const [used, kept] = shop.volumes().map(({ id }) => `shop/${id}`);
    expect(shop.state).toMatchObject({ volumes: [used, kept].sort(), keptVolumes: [kept] });
    // The volume is detached a moment after its Machine is gone.
    await simulation.wait(60_000);
    await shop.send("DELETE", `/v1/apps/shop/volumes/${kept?.slice("shop/".length)}`);
    await shop.succeed(shop.fleet("2", { regions: { ams: 1 } }));
    expect(shop.state).toMatchObject({ volumes: [used], keptVolumes: [] });
  });
});

test("the volumes of another fleet of the App are not deleted", async () => {
  await withSimulation("two fleets", async (simulation) => {
    const shop = new Shop(simulation, { volume, regions: { ams: 1 } });
    await shop.succeed(shop.fleet("1", { name: "web-ams" }));
    await shop.succeed(undefined);
    const [kept] = shop.volumes();
    await shop.succeed(shop.fleet("1", { deleteVolumes: true }));
    await shop.succeed(undefined);
    expect(shop.volumes().map(({ id }) => id)).toEqual([kept?.id]);
  });
});

test("a volume that an interrupted run left, and that no Machine has mounted, gets the program's retention", async () => {
  for (const encrypted of [true, false])
    await withSimulation(`changed ${encrypted}`, async (simulation) => {
      const first = { ...volume, encrypted, snapshotRetention: 5 };
      const shop = new Shop(simulation, { regions: { ams: 1 } });
      await shop.succeed(undefined);
      const death = { request: 1, when: "after" as const, of: (operation: string) => operation === "volumes.create" };
      expect(await shop.killed(shop.fleet("1", { volume: first }), death)).toBe("died");
      const [left] = shop.volumes();
      const report = await shop.up(shop.fleet("1", { volume: { ...volume, encrypted: true, snapshotRetention: 30 } }));
      const live = await shop.send<object[]>("GET", "/v1/apps/shop/volumes");
      // It may be a copy that others have made: it is never replaced.
      expect(live).toEqual([expect.objectContaining({ id: left?.id, encrypted, snapshot_retention: 30 })]);
      expect(JSON.stringify(report).includes("which is not encrypted")).toBe(!encrypted);
    });
});

test("a volume with data keeps what the program says of new volumes alone", async () => {
  await withSimulation("with data", async (simulation) => {
    const shop = new Shop(simulation, { regions: { ams: 1 } });
    const first = { ...volume, encrypted: false, snapshotRetention: 5 };
    await shop.succeed(shop.fleet("1", { volume: first }));
    await shop.succeed(shop.fleet("1", { volume: first, regions: { ams: 0 } }));
    await shop.succeed(shop.fleet("1", { volume: { ...volume, encrypted: true, snapshotRetention: 30 } }));
    const all = await shop.send<object[]>("GET", "/v1/apps/shop/volumes");
    expect(all).toEqual([expect.objectContaining({ encrypted: false, snapshot_retention: 5 })]);
  });
});
