import { describe, expect, test } from "vitest";
import { volumesEncrypted } from "../../../policy/policies/volumesEncrypted.ts";
import type { MachineMount } from "../../../policy/resources.ts";
import { check, unknownText } from "../../support/policies.ts";

const machine = (...mounts: Partial<MachineMount>[]) => ({
  app: "shop",
  config: { image: "shop", mounts: mounts.map((mount) => ({ path: "/data", ...mount }) as MachineMount) },
});

describe("volumes-encrypted", () => {
  test.each([{}, { encrypted: true }, { encrypted: undefined }])(
    "the policy accepts a volume with %j",
    async (inputs) => {
      expect(await check(volumesEncrypted, "Volume", { app: "shop", ...inputs })).toEqual({ violations: [] });
    },
  );

  test("the policy refuses an unencrypted volume", async () => {
    for (const binding of ["pulumi-machines", "pulumi-machines-plugin"] as const)
      expect(await check(volumesEncrypted, "Volume", { app: "shop", encrypted: false }, { binding })).toEqual({
        violations: ["encrypted is false. Leave it out, or set it to true."],
      });
  });

  test("the policy refuses unencrypted volumes of a fleet", async () => {
    const fleet = (encrypted?: boolean) => ({
      ...{ app: "shop", config: { image: "shop" }, regions: { ams: 2 } },
      volume: { path: "/data", encrypted },
    });
    for (const binding of ["pulumi-machines", "pulumi-machines-plugin"] as const) {
      expect(await check(volumesEncrypted, "Fleet", fleet(), { binding })).toEqual({ violations: [] });
      expect(await check(volumesEncrypted, "Fleet", fleet(false), { binding })).toEqual({
        violations: ["volume.encrypted is false. Leave it out, or set it to true."],
      });
    }
  });

  test("the policy refuses a mount that disables encryption", async () => {
    expect(await check(volumesEncrypted, "Machine", machine())).toEqual({ violations: [] });
    expect(await check(volumesEncrypted, "Machine", machine({}, { encrypted: true }))).toEqual({ violations: [] });
    expect(await check(volumesEncrypted, "Machine", machine({ volume: "shop/vol_1" }))).toEqual({ violations: [] });
    expect(await check(volumesEncrypted, "Machine", machine({ volume: "shop/vol_1" }, { encrypted: false }))).toEqual({
      violations: ["config.mounts[1].encrypted is false. Leave it out, or set it to true."],
    });
  });

  test("the policy continues after unknown values", async () => {
    const unknown = unknownText as never;
    expect(await check(volumesEncrypted, "Volume", { app: "shop", encrypted: unknown })).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^encrypted is known only at the update/),
    });
    expect(await check(volumesEncrypted, "Machine", machine({ encrypted: unknown }, { encrypted: false }))).toEqual({
      violations: [expect.stringContaining("config.mounts[1]")],
      unknown: expect.stringMatching(/^config\.mounts\[0\]\.encrypted is known only at the update/),
    });
  });

  test("the policy refuses settings other than exceptions", async () => {
    const how = { config: { allow: true } };
    await expect(check(volumesEncrypted, "Volume", { app: "shop" }, how)).rejects.toThrow('has "allow"');
  });
});
