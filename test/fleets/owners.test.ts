// Machines and volumes of others with the names of a fleet's, and hosts that cannot be reached (F54, R18).
import { describe, expect, test } from "vitest";
import { noTag } from "../../provider/fleets/drift.ts";
import { importResource, refresh } from "../support/modelEngine.ts";
import { emptyStack } from "../support/modelStack.ts";
import { withSimulation, type Simulation } from "../support/simulation.ts";
import { named, Shop, type VolumeRow } from "./shop.ts";

/** From now on, the hosts of some Machines cannot be reached. Returns what makes them reachable again. */
function lose(simulation: Simulation, ids: readonly string[]): () => void {
  const { faults } = simulation.service.service;
  const [fault] = faults.add({ unreachableHost: { machines: [...ids] } });
  return () => void (fault && faults.remove(fault));
}

const other = { image: "registry.example.com/other:9" };
/** Creates a Machine of others. */
const makeOther = async (shop: Shop, name: string): Promise<string> =>
  (await shop.send<{ id: string }>("POST", "/v1/apps/shop/machines", { name, region: "ams", config: other })).id;

describe("F54: a Machine of others with a name of the fleet, whose host cannot be reached", () => {
  test("a Machine of others whose host cannot be reached is not touched when the fleet is removed from the program", async () => {
    await withSimulation("removed", async (simulation) => {
      const shop = new Shop(simulation);
      await shop.succeed(shop.fleet("1"));
      lose(simulation, [await makeOther(shop, "web-ams-9")]);
      await shop.succeed(undefined);
      expect(shop.machines().map(({ name }) => name)).toEqual(["web-ams-9"]);
    });
  });

  test("a Machine of others whose host cannot be reached is not counted, waited for, or a reason to destroy one of the fleet's", async () => {
    await withSimulation("counted", async (simulation) => {
      const shop = new Shop(simulation);
      await shop.succeed(shop.fleet("1"));
      const before = shop.machines();
      const id = await makeOther(shop, "web-ams-9");
      lose(simulation, [id]);
      const { warnings } = await shop.succeed(shop.fleet("2"));
      expect(warnings).toEqual([]);
      expect(shop.machines().map((one) => [one.id, one.tag])).toEqual([
        ...before.map((one) => [one.id, "2"]),
        [id, "9"],
      ]);
      expect(JSON.stringify(shop.state)).not.toContain(id);
    });
  });

  test("a Machine of others whose host cannot be reached stops a fleet without a state, which cannot know whether it is its own", async () => {
    await withSimulation("no state", async (simulation) => {
      const shop = new Shop(simulation);
      await shop.succeed(shop.fleet("1"));
      const reachable = lose(simulation, [named(shop.machines(), "web-ams-2").id]);
      const before = shop.machines();
      shop.stack.resources = shop.stack.resources.filter(({ type }) => type === "App");
      const { errors } = await shop.up(shop.fleet("1"));
      expect(errors).toEqual([expect.stringMatching(/^name: the hosts of web-ams-2 \(\w+\) cannot be reached/)]);
      const imported = await importResource(
        shop.stack,
        { type: "Fleet", name: "web", id: "shop/web", needs: ["shop"] },
        simulation.start(),
      );
      expect(String(imported[0]?.error)).toMatch(/web-ams-2 \(\w+\) cannot be reached/);
      expect(shop.machines()).toEqual(before);
      reachable();
      expect((await shop.up(shop.fleet("1"))).errors).toEqual([]);
      expect(shop.machines()).toEqual(before);
    });
  });
});

test("F54: the ids in the state keep a Machine whose host cannot be reached the fleet's, over several runs", async () => {
  await withSimulation("ids", async (simulation) => {
    const shop = new Shop(simulation);
    await shop.succeed(shop.fleet("1"));
    const { id } = named(shop.machines(), "web-ams-2");
    const reachable = lose(simulation, [id]);
    const names = () => shop.machines().map(({ name }) => name);
    // Another computer sees only the state.
    simulation.moveAway();
    await refresh(shop.stack, simulation.start());
    expect(shop.state).toMatchObject({ otherMachines: [`shop/${id}`] });
    const { warnings } = await shop.succeed(shop.fleet("2"));
    expect(warnings.join()).toContain(`the hosts of web-ams-2 (${id}) cannot be reached`);
    expect(names()).toEqual(["web-ams-1", "web-ams-2", "web-ams-3", "web-ams-4"]);
    expect(shop.tags()).toEqual({ "1": 1, "2": 3 });
    reachable();
    await refresh(shop.stack, simulation.start());
    await shop.succeed(shop.fleet("2"));
    expect(shop.tags()).toEqual({ "2": 3 });
    expect(shop.state["otherMachines"]).toBeUndefined();
    lose(simulation, [shop.machines()[0]?.id ?? ""]);
    await shop.succeed(undefined);
    expect(names()).toEqual([]);
  });
});

test("Machines that the state has, and that have no tags, get them without a restart, and count as the fleet's", async () => {
  await withSimulation("untagged", async (simulation) => {
    const shop = new Shop(simulation);
    const fleet = (tag: string) => shop.fleet(tag, { minSecretsVersion: 0 });
    await shop.succeed(fleet("1"));
    const originals = shop.machines();
    const path = (id: string): string => `/v1/apps/shop/machines/${id}/metadata`;
    for (const { id } of originals)
      for (const key of Object.keys(await shop.send<object>("GET", path(id))))
        await shop.send("DELETE", `${path(id)}/${key}`);
    // Another computer sees only the state.
    simulation.moveAway();
    await refresh(shop.stack, simulation.start());
    expect(shop.state["drift"]).toEqual(originals.map(({ name, id }) => `${name} (${id}): ${noTag}`));
    await shop.succeed(fleet("1"));
    expect(shop.machines()).toEqual(originals);
    for (const { id } of originals)
      expect(await shop.send("GET", path(id))).toMatchObject({ "pulumi-fleet": "web", "pulumi-fleet-secrets": "0" });
    await refresh(shop.stack, simulation.start());
    expect(shop.state["drift"]).toEqual([]);
    await shop.succeed(fleet("2"));
    expect(shop.machines().map(({ id, tag }) => [id, tag])).toEqual(originals.map(({ id }) => [id, "2"]));
  });
});

test("F54: a name that a Machine of others has is left to it", async () => {
  await withSimulation("names", async (simulation) => {
    const shop = new Shop(simulation);
    await shop.succeed(undefined);
    const id = await makeOther(shop, "web-ams-2");
    await shop.succeed(shop.fleet("1"));
    expect(shop.machines().map(({ name }) => name)).toEqual(["web-ams-1", "web-ams-2", "web-ams-3", "web-ams-4"]);
    await shop.succeed(undefined);
    expect(shop.machines().map((one) => one.id)).toEqual([id]);
  });
});

const volume = { path: "/data", sizeGb: 1 };
const makeVolume = async (shop: Shop, name: string): Promise<string> =>
  (await shop.send<{ id: string }>("POST", "/v1/apps/shop/volumes", { name, region: "ams", size_gb: 1 })).id;
const ids = (volumes: readonly VolumeRow[]): readonly string[] => volumes.map(({ id }) => id);

describe("F54: a volume of others with a name of the fleet", () => {
  test("a volume of others is not mounted and not deleted, and the error says how to adopt it", async () => {
    await withSimulation("volume", async (simulation) => {
      const shop = new Shop(simulation, { volume, deleteVolumes: true });
      await shop.succeed(undefined);
      const foreign = await makeVolume(shop, "web_ams_1");
      const { errors } = await shop.up(shop.fleet("1"));
      expect(errors).toEqual([
        expect.stringMatching(
          new RegExp(
            `volume: shop/${foreign} \\(web_ams_1\\) has a name for Machine web-ams-1, .* add its id to volume\\.adopt`,
          ),
        ),
      ]);
      expect(shop.volumes().find(({ id }) => id === foreign)).toMatchObject({ attached: null });
      await shop.up(undefined);
      expect(ids(shop.volumes())).toEqual([foreign]);
      // Adopted, it is the fleet's: mounted, and deleted with its Machine.
      await shop.succeed(shop.fleet("1", { volume: { ...volume, adopt: [foreign] } }));
      expect(shop.volumes().find(({ id }) => id === foreign)).toMatchObject({
        attached: named(shop.machines(), "web-ams-1").id,
      });
      // Also when the program no longer says so.
      await shop.succeed(shop.fleet("1", { volume }));
      await shop.succeed(shop.fleet("1", { volume, regions: { ams: 0 } }));
      expect(shop.volumes()).toEqual([]);
    });
  });

  test("a volume of others is kept if an adopted Machine mounts it", async () => {
    await withSimulation("adopted", async (simulation) => {
      const shop = new Shop(simulation, { volume, deleteVolumes: true, regions: { ams: 1 } });
      await shop.succeed(undefined);
      const foreign = await makeVolume(shop, "precious");
      const config = { ...other, mounts: [{ volume: foreign, path: "/data" }] };
      const body = { name: "first", region: "ams", config };
      const { id } = await shop.send<{ id: string }>("POST", "/v1/apps/shop/machines", body);
      await simulation.wait(60_000);
      await shop.succeed(shop.fleet("1", { adopt: [id] }));
      const { warnings } = await shop.succeed(shop.fleet("1", { regions: { ams: 0 } }));
      expect(warnings.join()).toContain(
        `shop/${foreign} of Machine first is kept with its data, because the fleet did not create it`,
      );
      expect(ids(shop.volumes())).toEqual([foreign]);
    });
  });

  test("a volume of another stack, or of a state that was lost, is not mounted", async () => {
    await withSimulation("stacks", async (simulation) => {
      const shop = new Shop(simulation, { volume });
      await shop.succeed(shop.fleet("1"));
      await shop.succeed(shop.fleet("1", { regions: { ams: 0 } }));
      const kept = ids(shop.volumes());
      expect(kept).toHaveLength(3);
      // The same stack mounts them again.
      await shop.succeed(shop.fleet("1"));
      expect(ids(shop.volumes())).toEqual(kept);
      await shop.up(undefined);
      expect(shop.machines()).toEqual([]);
      await shop.succeed(shop.fleet("1"));
      expect(ids(shop.volumes())).toEqual(kept);
      await shop.up(undefined);
      // A stack of the same name in another backend has another state.
      shop.stack = emptyStack();
      simulation.moveAway();
      const process = simulation.start();
      await importResource(shop.stack, { type: "App", name: "shop", id: "shop", needs: [] }, process);
      const { errors } = await shop.up(shop.fleet("1"));
      expect(errors).toEqual([expect.stringMatching(/has a name for Machine web-ams-\d, and nothing shows/)]);
      const mounted = shop.machines().map(({ id }) => id);
      expect(
        shop.volumes().filter(({ id, attached }) => kept.includes(id) && mounted.includes(attached ?? "")),
      ).toEqual([]);
    });
  });

  test("F18: a run that was killed between a volume and its Machine leaves none, and makes none twice", async () => {
    for (const isElsewhere of [false, true])
      await withSimulation(`killed ${isElsewhere}`, async (simulation) => {
        const shop = new Shop(simulation, { volume, regions: { ams: 1 } });
        await shop.succeed(undefined);
        const ofVolume = (operation: string): boolean => operation === "volumes.create";
        const killed = await shop.killed(shop.fleet("1"), { request: 1, when: "after", of: ofVolume });
        expect([killed, shop.volumes().length, shop.machines().length]).toEqual(["died", 1, 0]);
        if (isElsewhere) simulation.moveAway();
        await shop.succeed(shop.fleet("1"));
        expect(shop.volumes()).toEqual([expect.objectContaining({ attached: named(shop.machines(), "web-ams-1").id })]);
      });
  });

  test("a volume of others with a name of the fleet stays the fleet's where a state of an earlier version has no ids of volumes", async () => {
    await withSimulation("earlier", async (simulation) => {
      const shop = new Shop(simulation, { volume, regions: { ams: 1 } });
      await shop.succeed(undefined);
      const old = await makeVolume(shop, "web_ams_1");
      await shop.succeed(shop.fleet("1", { volume: { ...volume, adopt: [old] } }));
      // Earlier versions named volumes like this, and stored no ids.
      for (const one of shop.stack.resources.filter(({ type }) => type === "Fleet"))
        one.state = Object.fromEntries(Object.entries({ ...one.state, volume }).filter(([name]) => name !== "volumes"));
      await shop.succeed(shop.fleet("1", { regions: { ams: 0 } }));
      await shop.succeed(shop.fleet("1"));
      expect(ids(shop.volumes())).toEqual([old]);
    });
  });
});
