import { describe, expect, test } from "vitest";
import { volumeSnapshots } from "../../../policy/policies/volumeSnapshots.ts";
import type { VolumeInputs } from "../../../policy/resources.ts";
import { check, repair, secret, unknownText } from "../../support/policies.ts";

const run = (inputs: Partial<VolumeInputs>, config?: object) =>
  check(volumeSnapshots, "Volume", { app: "shop", ...inputs }, { config });
const remediated = (inputs: Partial<VolumeInputs>, config?: object) =>
  repair(volumeSnapshots, "Volume", { app: "shop", ...inputs }, { config });
const off = "autoBackupEnabled is false. Leave it out, or set it to true.";
const short = (days: number, wanted = 7) =>
  `snapshotRetention is ${days} days; at least ${wanted} are wanted: snapshotRetention: ${wanted}.`;

describe("volume-snapshots", () => {
  test.each([{ snapshotRetention: 7 }, { snapshotRetention: 60, autoBackupEnabled: true }])(
    "the policy accepts %j, and remediates nothing",
    async (inputs) => {
      expect(await run(inputs)).toEqual({ violations: [] });
      expect(await remediated(inputs)).toBeUndefined();
    },
  );

  test.each<[Partial<VolumeInputs>, string[]]>([
    // By default they are kept for 5 days.
    [{}, [short(5)]],
    [{ snapshotRetention: 1 }, [short(1)]],
    [{ snapshotRetention: 7, autoBackupEnabled: false }, [off]],
    [{ snapshotRetention: 6, autoBackupEnabled: false }, [off, short(6)]],
  ])("the policy refuses %j", async (inputs, violations) => {
    expect(await run(inputs)).toEqual({ violations });
  });

  test("the policy accepts another number of days", async () => {
    expect(await run({}, { minDays: 5 })).toEqual({ violations: [] });
    expect(await remediated({}, { minDays: 5 })).toBeUndefined();
    expect(await run({ snapshotRetention: 7 }, { minDays: 14 })).toEqual({ violations: [short(7, 14)] });
    expect(await remediated({ snapshotRetention: 7 }, { minDays: 14 })).toEqual({ app: "shop", snapshotRetention: 14 });
  });

  test("remediates the retention, and keeps everything else", async () => {
    expect(await remediated({ sizeGb: 10 })).toEqual({ app: "shop", sizeGb: 10, snapshotRetention: 7 });
    expect(await remediated({ snapshotRetention: 30, autoBackupEnabled: false, name: secret("hidden") })).toEqual({
      app: "shop",
      name: { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", value: "hidden" },
      snapshotRetention: 30,
      autoBackupEnabled: true,
    });
    // A secret number stays secret.
    expect(await remediated({ snapshotRetention: secret(3) })).toEqual({
      app: "shop",
      snapshotRetention: { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", value: 7 },
    });
  });

  test("the policy continues after unknown values, and remediates the rest", async () => {
    const unknown = unknownText as never;
    expect(await run({ snapshotRetention: unknown, autoBackupEnabled: false })).toEqual({
      violations: [off],
      unknown: expect.stringMatching(/^snapshotRetention is known only at the update/),
    });
    expect(await remediated({ snapshotRetention: unknown, autoBackupEnabled: false })).toEqual({
      app: "shop",
      snapshotRetention: unknownText,
      autoBackupEnabled: true,
    });
    expect(await remediated({ snapshotRetention: 1, autoBackupEnabled: unknown })).toEqual({
      app: "shop",
      snapshotRetention: 7,
      autoBackupEnabled: unknownText,
    });
    await expect(remediated({ snapshotRetention: unknown })).rejects.toThrow(
      "snapshotRetention is known only at the update",
    );
  });

  test("the policy refuses short retention of a fleet's new volumes, and remediates it", async () => {
    const machines = { app: "shop", config: { image: "shop" }, regions: { ams: 2 } };
    const fleet = (volume?: object) => ({ ...machines, ...(volume && { volume: { path: "/data", ...volume } }) });
    for (const binding of ["pulumi-machines", "pulumi-machines-plugin"] as const) {
      const how = { binding };
      for (const inputs of [fleet(), fleet({ snapshotRetention: 7 })]) {
        expect(await check(volumeSnapshots, "Fleet", inputs, how)).toEqual({ violations: [] });
        expect(await repair(volumeSnapshots, "Fleet", inputs, how)).toBeUndefined();
      }
      expect(await check(volumeSnapshots, "Fleet", fleet({}), how)).toEqual({ violations: [`volume.${short(5)}`] });
      for (const given of [{}, { snapshotRetention: 1 }])
        expect(await repair(volumeSnapshots, "Fleet", fleet(given), how)).toEqual(fleet({ snapshotRetention: 7 }));
    }
    const unknown = fleet({ snapshotRetention: unknownText });
    expect(await check(volumeSnapshots, "Fleet", unknown as never)).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^volume\.snapshotRetention is known only at the update/),
    });
  });

  test("the policy applies to volumes of both bindings", async () => {
    const how = { binding: "pulumi-machines-plugin" } as const;
    expect(await check(volumeSnapshots, "Volume", { app: "shop" }, how)).toEqual({ violations: [short(5)] });
    expect(await repair(volumeSnapshots, "Volume", { app: "shop" }, how)).toEqual({
      app: "shop",
      snapshotRetention: 7,
    });
    expect(await check(volumeSnapshots, "App", {}, how)).toMatchObject({ notApplicable: "it is about each Volume" });
  });

  test("the policy refuses unknown settings", async () => {
    await expect(run({}, { minDay: 1 })).rejects.toThrow('did you mean "minDays"?');
    await expect(remediated({}, { minDay: 1 })).rejects.toThrow('did you mean "minDays"?');
  });
});
