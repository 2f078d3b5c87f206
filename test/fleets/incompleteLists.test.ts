// A list of Machines that lacks some of them does not show that they are gone (R8, F14).
import { describe, expect, test } from "vitest";
import { failures, refresh, up } from "../support/modelEngine.ts";
import { withSimulation, type Simulation } from "../support/simulation.ts";
import { app, named, Shop } from "./shop.ts";

/** The next answers to a list of Machines are empty, or lack one Machine. */
const incomplete = (simulation: Simulation, times: number, lacking?: string): void => {
  const rewrite = (answer: unknown) =>
    (answer as readonly { readonly id: string }[]).filter(({ id }) => lacking !== undefined && id !== lacking);
  simulation.service.fail({ operation: "machines.list", rewrite, times });
};

describe("F14: of a fleet", () => {
  /** Refreshes, and returns how many Machines were read one by one. */
  const refreshed = async (simulation: Simulation, shop: Shop): Promise<number> => {
    const process = simulation.start();
    const { result, watched } = await simulation.watch(() => process.run(() => refresh(shop.stack, process)));
    if (result === "died") throw new Error("the process died");
    expect(failures(result)).toEqual([]);
    return watched.requests.filter(({ operation }) => operation === "machines.get").length;
  };

  test("a refresh finds the Machines that a list lacks, and asks for no other", async () => {
    await withSimulation("refresh", async (simulation) => {
      const shop = new Shop(simulation);
      await shop.succeed(shop.fleet("1"));
      expect(await refreshed(simulation, shop)).toBe(0);
      for (const [lacking, asked] of [
        [undefined, 3],
        [named(shop.machines(), "web-ams-2").id, 1],
      ] as const) {
        incomplete(simulation, 1, lacking);
        expect(await refreshed(simulation, shop)).toBe(asked);
        expect(shop.state).toMatchObject({ regions: { ams: 3 }, drift: [] });
        expect(shop.state["machines"]).toHaveLength(3);
      }
    });
  });

  test("a refresh reports Machines that are gone", async () => {
    await withSimulation("gone", async (simulation) => {
      const shop = new Shop(simulation);
      await shop.succeed(shop.fleet("1"));
      const [first, ...others] = shop.machines();
      await shop.send("DELETE", `/v1/apps/shop/machines/${first?.id ?? ""}?force=true`);
      await refreshed(simulation, shop);
      expect(shop.state).toMatchObject({ regions: { ams: 2 } });
      for (const { id } of others) await shop.send("DELETE", `/v1/apps/shop/machines/${id}?force=true`);
      await refreshed(simulation, shop);
      expect(shop.stack.resources.map(({ type }) => type)).toEqual(["App"]);
    });
  });

  test("an update changes the Machines that its first list lacks, and creates none in their place", async () => {
    await withSimulation("update", async (simulation) => {
      const shop = new Shop(simulation);
      await shop.succeed(shop.fleet("1"));
      const before = shop.machines().map(({ id }) => id);
      const lacking = named(shop.machines(), "web-ams-2").id;
      const process = simulation.start();
      // The read that precedes the update, and what precedes the rollout, see all.
      let lists = 0;
      const rewrite = (answer: unknown) =>
        ++lists > 2 ? (answer as readonly { readonly id: string }[]).filter(({ id }) => id !== lacking) : answer;
      simulation.service.fail({ operation: "machines.list", rewrite, times: 6 });
      const { result, watched } = await simulation.watch(() =>
        process.run(() => up(shop.stack, [app, shop.fleet("2")], process)),
      );
      if (result === "died") throw new Error("the process died");
      expect(failures(result)).toEqual([]);
      expect(watched.requests.filter(({ operation }) => operation === "machines.create")).toEqual([]);
      expect(shop.machines().map(({ id }) => id)).toEqual(before);
      expect(shop.tags()).toEqual({ 2: 3 });
    });
  });

  test.each([
    ["no Machine", undefined],
    ["not all Machines", "web-ams-3"],
  ])("a deletion does not end while Machines run, although the lists have %s", async (what, lacking) => {
    await withSimulation(`delete/${what}`, async (simulation) => {
      const shop = new Shop(simulation);
      await shop.succeed(shop.fleet("1"));
      incomplete(simulation, 3, lacking === undefined ? undefined : named(shop.machines(), lacking).id);
      await shop.succeed(undefined);
      expect(shop.machines()).toEqual([]);
      expect(shop.stack.resources.map(({ type }) => type)).toEqual(["App"]);
    });
  });
});
