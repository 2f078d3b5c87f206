import { describe, expect, test } from "vitest";
import { productionProtected } from "../../../policy/policies/productionProtected.ts";
import { check, unknownText } from "../../support/policies.ts";

const missing = "It is not protected: taking it out of the program deletes it. Add { protect: true } to its options.";

describe("production-protected", () => {
  test.each(["pulumi-machines", "pulumi-machines-plugin"] as const)(
    "the policy accepts protected resources: %s",
    async (binding) => {
      const how = { opts: { protect: true }, binding };
      expect(await check(productionProtected, "App", {}, how)).toEqual({ violations: [] });
      expect(await check(productionProtected, "Volume", { app: "shop" }, how)).toEqual({ violations: [] });
      expect(await check(productionProtected, "PostgresCluster", { deletionProtection: false }, how)).toEqual({
        violations: [],
      });
    },
  );

  test("the policy accepts a cluster with its own protection, which is the default", async () => {
    for (const deletionProtection of [true, undefined])
      expect(await check(productionProtected, "PostgresCluster", { deletionProtection })).toEqual({ violations: [] });
  });

  test("the policy refuses unprotected resources", async () => {
    expect(await check(productionProtected, "App", {})).toEqual({ violations: [missing] });
    expect(await check(productionProtected, "Volume", { app: "shop" })).toEqual({ violations: [missing] });
    expect(await check(productionProtected, "PostgresCluster", { deletionProtection: false })).toEqual({
      violations: [missing],
    });
  });

  test("the policy ignores unknown values, except a cluster's protection", async () => {
    expect(await check(productionProtected, "Volume", { app: unknownText })).toEqual({ violations: [missing] });
    const inputs = { deletionProtection: unknownText as never };
    expect(await check(productionProtected, "PostgresCluster", inputs)).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^deletionProtection is known only at the update/),
    });
  });

  test("the policy ignores resources that can be created again", async () => {
    expect(await check(productionProtected, "Machine", { app: "shop", config: { image: "a" } })).toMatchObject({
      notApplicable: expect.any(String),
    });
  });

  test("the policy refuses settings other than exceptions", async () => {
    await expect(check(productionProtected, "App", {}, { config: { types: [] } })).rejects.toThrow('has "types"');
  });
});
