import { describe, expect, test } from "vitest";
import { noDataLossSwitches } from "../../../policy/policies/noDataLossSwitches.ts";
import { check, unknownText } from "../../support/policies.ts";

const key = { app: "shop", name: "key", type: "hs256", value: "hidden" } as const;
const loss = "allowDataLoss is true: a change that replaces it destroys its data.";

describe("no-data-loss-switches", () => {
  test("the policy accepts resources that keep their data", async () => {
    for (const allowDataLoss of [undefined, false]) {
      expect(await check(noDataLossSwitches, "Volume", { app: "shop", allowDataLoss })).toEqual({ violations: [] });
      expect(await check(noDataLossSwitches, "SecretKey", { ...key, allowDataLoss })).toEqual({ violations: [] });
      expect(await check(noDataLossSwitches, "PostgresDatabase", { cluster: "c", name: "d", allowDataLoss })).toEqual({
        violations: [],
      });
      expect(await check(noDataLossSwitches, "App", { forceDestroy: allowDataLoss })).toEqual({ violations: [] });
    }
  });

  test("the policy refuses the switches that allow a change to destroy data", async () => {
    for (const binding of ["pulumi-machines", "pulumi-machines-plugin"] as const) {
      const how = { binding };
      const allowDataLoss = true;
      expect(await check(noDataLossSwitches, "Volume", { app: "shop", allowDataLoss }, how)).toEqual({
        violations: [loss],
      });
      expect(await check(noDataLossSwitches, "SecretKey", { ...key, allowDataLoss }, how)).toEqual({
        violations: [loss],
      });
      expect(
        await check(noDataLossSwitches, "PostgresDatabase", { cluster: "c", name: "d", allowDataLoss }, how),
      ).toEqual({ violations: [loss] });
      expect(await check(noDataLossSwitches, "App", { forceDestroy: true }, how)).toEqual({
        violations: ["forceDestroy is true: deleting the App deletes Machines and volumes with it."],
      });
    }
  });

  test("the policy refuses a fleet that deletes its volumes", async () => {
    const fleet = { app: "shop", config: { image: "shop" }, regions: { ams: 2 } };
    const volume = { path: "/data" };
    for (const binding of ["pulumi-machines", "pulumi-machines-plugin"] as const) {
      for (const inputs of [fleet, { ...fleet, volume }, { ...fleet, deleteVolumes: true }])
        expect(await check(noDataLossSwitches, "Fleet", inputs, { binding })).toEqual({ violations: [] });
      expect(await check(noDataLossSwitches, "Fleet", { ...fleet, volume, deleteVolumes: true }, { binding })).toEqual({
        violations: ["deleteVolumes is true: a Machine that leaves the fleet takes its volume with it."],
      });
    }
  });

  test("the policy accepts a killable Machine, which has no data", async () => {
    const machine = { app: "shop", config: { image: "shop" }, forceDestroy: true };
    expect(await check(noDataLossSwitches, "Machine", machine)).toMatchObject({
      violations: [],
      notApplicable: expect.any(String),
    });
  });

  test("the policy reports an unknown switch", async () => {
    const unknown = unknownText as never;
    expect(await check(noDataLossSwitches, "App", { forceDestroy: unknown })).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^forceDestroy is known only at the update/),
    });
    expect(await check(noDataLossSwitches, "Volume", { app: "shop", allowDataLoss: unknown })).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^allowDataLoss is known only at the update/),
    });
  });

  test("the policy refuses settings other than exceptions", async () => {
    await expect(check(noDataLossSwitches, "App", {}, { config: { allow: true } })).rejects.toThrow('has "allow"');
  });
});
