// Machines that exist and become members of a fleet: wrong ids, and runs that are killed meanwhile.
import { describe, expect, test } from "vitest";
import { importResource } from "../support/modelEngine.ts";
import { emptyStack } from "../support/modelStack.ts";
import { withSimulation, type Simulation } from "../support/simulation.ts";
import { Shop } from "./shop.ts";

const image = "registry.example.com/shop:1";

/** A Machine that is no member yet. */
async function makeMachine(shop: Shop, name: string): Promise<string> {
  const body = { name, region: "ams", config: { image } };
  return (await shop.send<{ id: string }>("POST", "/v1/apps/shop/machines", body)).id;
}
const tagsOf = (shop: Shop, id: string): Promise<Record<string, string>> =>
  shop.send("GET", `/v1/apps/shop/machines/${id}/metadata`);

/** An App with two Machines, and the program of a fleet of three that adopts some. */
async function twoMachines(simulation: Simulation) {
  const shop = new Shop(simulation);
  await shop.succeed(undefined);
  const ids = [await makeMachine(shop, "first"), await makeMachine(shop, "second")];
  await simulation.wait(20_000);
  return { shop, ids, adopting: (adopt: readonly string[]) => shop.fleet("1", { adopt }) };
}

test("a wrong id among those that a new fleet adopts leaves no tags, and the corrected program succeeds", async () => {
  await withSimulation("wrong", async (simulation) => {
    const { shop, ids, adopting } = await twoMachines(simulation);
    const [first = "", second = ""] = ids;
    const { errors } = await shop.up(adopting([first, "1234567890abcd"]));
    expect(errors).toEqual([expect.stringMatching(/^machines\.get answered 404: .*1234567890abcd/)]);
    expect(await tagsOf(shop, first)).toEqual({});
    await shop.succeed(adopting([`shop/${first}`, second]));
    expect(shop.machines().map(({ name }) => name)).toEqual(["first", "second", "web-ams-1"]);
  });
});

describe("F18: a create that was killed while it adopted Machines", () => {
  test.each([
    [1, "before"],
    [1, "after"],
    [2, "before"],
    [2, "after"],
  ] as const)("it is continued by the next run, of any computer (request %i, %s)", async (request, when) => {
    for (const isElsewhere of [false, true])
      await withSimulation(`${request} ${when} ${isElsewhere}`, async (simulation) => {
        const { shop, ids, adopting } = await twoMachines(simulation);
        const death = { request, when, of: (operation: string) => operation === "machines.patchMetadata" };
        expect(await shop.killed(adopting(ids), death)).toBe("died");
        if (isElsewhere) simulation.moveAway();
        const { warnings } = await shop.succeed(adopting(ids));
        expect(warnings).toEqual([]);
        const live = shop.machines();
        expect(live.map(({ name }) => name)).toEqual(["first", "second", "web-ams-1"]);
        expect(live.slice(0, 2).map(({ id }) => id)).toEqual(ids);
        expect((shop.state["machines"] as unknown[]).length).toBe(3);
      });
  });
});

test("Machines that belong to a fleet of another stack are not adopted by one of the same name", async () => {
  await withSimulation("others", async (simulation) => {
    const { shop, ids, adopting } = await twoMachines(simulation);
    await shop.succeed(adopting(ids));
    const before = shop.machines();
    // A stack whose fleet is another resource.
    shop.stack = emptyStack();
    await importResource(shop.stack, { type: "App", name: "shop", id: "shop", needs: [] }, simulation.start());
    const { errors } = await shop.up({ ...adopting(before.map(({ id }) => id)), name: "other" });
    expect(errors).toEqual([expect.stringMatching(/^name: the App shop has a fleet "web" already/)]);
    expect(shop.machines()).toEqual(before);
  });
});

describe("an adopted Machine that is gone", () => {
  /** Time after which the service answers 404 for a destroyed Machine. */
  const forgotten = 3 * 24 * 3600_000;

  test("an adopted Machine that is gone because a rollout replaced it does not stop a later update", async () => {
    await withSimulation("replaced", async (simulation) => {
      const { shop, ids } = await twoMachines(simulation);
      const fleet = (tag: string) => shop.fleet(tag, { adopt: ids, strategy: { type: "bluegreen" } });
      await shop.succeed(fleet("1"));
      await shop.succeed(fleet("2"));
      await simulation.wait(forgotten);
      for (const id of ids) await expect(tagsOf(shop, id)).rejects.toThrow(/: 404 /);
      await shop.succeed(fleet("3"));
      expect(shop.tags()).toEqual({ "3": 3 });
    });
  });

  test("an adopted Machine that is gone because others destroyed it is replaced; an id that was never adopted is an error", async () => {
    await withSimulation("destroyed", async (simulation) => {
      const { shop, ids, adopting } = await twoMachines(simulation);
      await shop.succeed(adopting(ids));
      await shop.send("DELETE", `/v1/apps/shop/machines/${ids[0] ?? ""}?force=true`);
      await simulation.wait(forgotten);
      const { errors } = await shop.up(shop.fleet("2", { adopt: [...ids, "1234567890abcd"] }));
      expect(errors).toEqual([expect.stringMatching(/^machines\.get answered 404: .*1234567890abcd/)]);
      await shop.succeed(shop.fleet("2", { adopt: ids }));
      expect(shop.machines().map(({ name, tag }) => [name, tag])).toEqual([
        ["second", "2"],
        ["web-ams-1", "2"],
        ["web-ams-2", "2"],
      ]);
    });
  });
});
