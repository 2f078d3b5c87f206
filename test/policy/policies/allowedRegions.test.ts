import { describe, expect, test } from "vitest";
import { allowedRegions } from "../../../policy/policies/allowedRegions.ts";
import { check, unknownText } from "../../support/policies.ts";

const config = { regions: ["ams", "fra"] };
const machine = (region?: string, fallbackRegions?: string[]) => ({
  app: "shop",
  region,
  fallbackRegions,
  config: { image: "shop" },
});

describe("allowed-regions", () => {
  test("the policy accepts everything until it is configured", async () => {
    expect(await check(allowedRegions, "Machine", machine("syd"))).toEqual({ violations: [] });
    expect(await check(allowedRegions, "Volume", { app: "shop" })).toEqual({ violations: [] });
  });

  test("the policy accepts allowed regions", async () => {
    for (const binding of ["pulumi-machines", "pulumi-machines-plugin"] as const) {
      const how = { config, binding };
      expect(await check(allowedRegions, "Machine", machine("ams", ["fra"]), how)).toEqual({ violations: [] });
      expect(await check(allowedRegions, "Volume", { app: "shop", region: "fra" }, how)).toEqual({ violations: [] });
      expect(await check(allowedRegions, "PostgresCluster", { region: "ams" }, how)).toEqual({ violations: [] });
      expect(await check(allowedRegions, "IpAssignment", { app: "shop", type: "v6", region: "ams" }, how)).toEqual({
        violations: [],
      });
    }
  });

  test("the policy accepts a Machine in the region of its volume", async () => {
    const mounts = [{ volume: unknownText, path: "/data" }];
    const inputs = (region?: string) => ({ ...machine(region), config: { image: "shop", mounts } });
    expect(await check(allowedRegions, "Machine", inputs(), { config })).toEqual({ violations: [] });
    expect((await check(allowedRegions, "Machine", inputs("syd"), { config })).violations).toHaveLength(1);
  });

  test("the policy accepts copies in the region of their source", async () => {
    const volumes = [{ snapshotId: "shop/vol_1/vs_1" }, { sourceVolumeId: "shop/vol_1" }];
    for (const from of volumes)
      expect(await check(allowedRegions, "Volume", { app: "shop", ...from }, { config })).toEqual({ violations: [] });
    for (const from of [{ fork: { cluster: "c" } }, { restore: { cluster: "c", backupId: unknownText } }])
      expect(await check(allowedRegions, "PostgresCluster", from, { config })).toEqual({ violations: [] });
    expect(
      await check(allowedRegions, "Volume", { app: "shop", snapshotId: "shop/vol_1/vs_1", region: "syd" }, { config }),
    ).toEqual({ violations: ["region is one that is not allowed. Allowed are ams, fra."] });
  });

  test("a volume with an unknown source is a copy as well", async () => {
    expect(await check(allowedRegions, "Volume", { app: "shop", snapshotId: unknownText }, { config })).toEqual({
      violations: [],
    });
  });

  test("the policy accepts global addresses", async () => {
    for (const region of [undefined, "global"])
      expect(await check(allowedRegions, "IpAssignment", { app: "shop", type: "v6", region }, { config })).toEqual({
        violations: [],
      });
  });

  test("the policy refuses other regions, and names the property", async () => {
    const refused = "is one that is not allowed. Allowed are ams, fra.";
    expect(await check(allowedRegions, "Machine", machine("syd", ["ams", "gru"]), { config })).toEqual({
      violations: [`region ${refused}`, `fallbackRegions[1] ${refused}`],
    });
    expect(await check(allowedRegions, "Volume", { app: "shop", region: "AMS" }, { config })).toEqual({
      violations: [`region ${refused}`],
    });
    expect(await check(allowedRegions, "PostgresCluster", { region: "syd" }, { config })).toEqual({
      violations: [`region ${refused}`],
    });
    expect(await check(allowedRegions, "IpAssignment", { app: "shop", type: "v6", region: "syd" }, { config })).toEqual(
      { violations: [`region ${refused}`] },
    );
  });

  test("the policy refuses an omitted region", async () => {
    const config = { regions: ["ams"] };
    const violations = ["region is left out, and the service may pick any. Allowed is ams."];
    expect(await check(allowedRegions, "Machine", machine(), { config })).toEqual({ violations });
    expect(await check(allowedRegions, "Volume", { app: "shop" }, { config })).toEqual({ violations });
    expect(await check(allowedRegions, "PostgresCluster", {}, { config })).toEqual({ violations });
  });

  test("the policy continues after an unknown region", async () => {
    expect(await check(allowedRegions, "Machine", machine(unknownText, [unknownText, "syd"]), { config })).toEqual({
      violations: [expect.stringContaining("fallbackRegions[1]")],
      unknown: expect.stringMatching(/^region and fallbackRegions\[0\] are known only at the update/),
    });
  });

  test("the policy refuses unknown settings", async () => {
    await expect(check(allowedRegions, "Machine", machine(), { config: { region: ["ams"] } })).rejects.toThrow(
      'did you mean "regions"?',
    );
  });
});
