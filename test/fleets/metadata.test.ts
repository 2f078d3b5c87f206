// The metadata of a fleet's Machines after rollouts that failed or were interrupted: keys that the program no longer has are removed.
import { expect, test } from "vitest";
import { withSimulation } from "../support/simulation.ts";
import { Shop } from "./shop.ts";

const checks = { alive: { type: "tcp", port: 8080, interval: "1s", timeout: "1s" } } as const;
const failing = { env: { MACHINES_SIMULATE: "checks:critical" } };

/** The metadata of each Machine, without tags of the provider. */
async function metadataOf(shop: Shop): Promise<readonly object[]> {
  const machines = await shop.send<{ config: { metadata: object } }[]>("GET", "/v1/apps/shop/machines");
  return machines.map(({ config: { metadata } }) =>
    Object.fromEntries(Object.entries(metadata).filter(([key]) => !key.startsWith("pulumi-"))),
  );
}

test("a key that an update removes is removed from all Machines, also if the update fails at first", async () => {
  await withSimulation("failed", async (simulation) => {
    const shop = new Shop(simulation);
    await shop.succeed(shop.fleet("1", { config: { checks, metadata: { role: "primary" } } }));
    const { errors } = await shop.up(shop.fleet("2", { config: { checks, ...failing } }));
    expect(errors).toEqual([expect.stringMatching(/1 of 3 Machines has the new configuration/)]);
    await shop.succeed(shop.fleet("3", { config: { checks } }));
    expect(await metadataOf(shop)).toEqual([{}, {}, {}]);
  });
});

test("a rollback removes also the keys of an earlier update that failed", async () => {
  await withSimulation("back", async (simulation) => {
    const shop = new Shop(simulation);
    const good = { checks, metadata: { role: "primary" } };
    await shop.succeed(shop.fleet("1", { config: good }));
    await shop.up(shop.fleet("2", { config: { checks, ...failing, metadata: { second: "2" } } }));
    // It fails before it reaches the Machine that has the keys of the second one.
    const ways = { onFailure: "rollback", releaseCommand: ["false"] };
    const { errors } = await shop.up(shop.fleet("3", { config: { checks, metadata: { third: "3" } }, ...ways }));
    expect(errors.join()).toMatch(/rolled back/i);
    expect(await metadataOf(shop)).toEqual([good.metadata, good.metadata, good.metadata]);
  });
});
