// What `pulumi-machines forget-views` makes of a state.
import { expect, test } from "vitest";
import { withoutViews } from "../../cli/migration/forgetViews.ts";
import type { DeploymentEntry } from "../../cli/entries.ts";
import { startService } from "../support/startService.ts";
import { StackFiles } from "./stackFiles.ts";

const root = "urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev";
const fleet = "urn:pulumi:dev::shop::machines:index:Fleet::front";
const before = "urn:pulumi:old::shop::machines:index:Fleet::web";

const entries: readonly DeploymentEntry[] = [
  { urn: root, type: "pulumi:pulumi:Stack" },
  {
    ...{ urn: fleet, type: "machines:index:Fleet", id: "shop/web", parent: root },
    inputs: { app: "shop", __context: { viewsOf: before } },
    outputs: { app: "shop", __context: { stack: "s1", viewsOf: before } },
  },
  ...["web-ams-1", "web-ams-2"].map((name) => ({
    // As `state move` leaves it.
    ...{ urn: `${fleet.replace("::front", "$machines:index:FleetMachine::web/shop/")}${name}`, viewOf: before },
    ...{ type: "machines:index:FleetMachine", parent: fleet, outputs: { id: `shop/${name}` } },
  })),
  { urn: `${root}$others`, type: "others:index:View", parent: fleet, viewOf: fleet },
];

test("the views of a fleet and its mark leave the state, and nothing else, also after the fleet was moved", () => {
  const { entries: next, counts } = withoutViews(entries);
  expect([...counts]).toEqual([[fleet, 2]]);
  expect(next).toEqual([
    entries[0],
    { ...entries[1], inputs: { app: "shop", __context: {} }, outputs: { app: "shop", __context: { stack: "s1" } } },
    entries.at(-1),
  ]);
  expect(withoutViews(next)).toEqual({ entries: next, counts: new Map() });
});

test("the stack that PULUMI_OPTION_STACK names is changed, and not the selected one", async () => {
  const service = await startService();
  const files = new StackFiles(service, "prod");
  try {
    files.write("prod.json", JSON.stringify({ version: 3, deployment: { resources: entries } }));
    const forget = (env: Readonly<Record<string, string>>) => files.run(["forget-views", "--dry-run"], env);
    expect((await forget({})).out).toContain("There is nothing to forget");
    expect((await forget({ PULUMI_OPTION_STACK: "prod" })).out).toContain("Fleet front: 2 views");
  } finally {
    files.remove();
    await service.close();
  }
});
