import { describe, expect, test } from "vitest";
import { allowedMachineSizes } from "../../../policy/policies/allowedMachineSizes.ts";
import type { MachineGuest } from "../../../policy/resources.ts";
import { check, unknownText } from "../../support/policies.ts";

const machine = (guest?: MachineGuest, size?: string) => ({ app: "shop", config: { image: "shop", guest, size } });

describe("allowed-machine-sizes", () => {
  test.each([
    [undefined, undefined],
    [{ cpuKind: "performance", cpus: 16, memoryMb: 131072 }, undefined],
    [undefined, "performance-16x"],
  ] as const)("the policy accepts any size until it is configured: %j %s", async (guest, size) => {
    expect(await check(allowedMachineSizes, "Machine", machine(guest, size))).toEqual({ violations: [] });
  });

  test.each([
    [undefined, undefined],
    [{}, undefined],
    [{ cpus: 2 }, undefined],
    [undefined, "shared-cpu-2x"],
    [{ cpuKind: "performance", cpus: 1 }, undefined],
  ] as const)("the policy accepts allowed sizes: %j %s", async (guest, size) => {
    const config = { sizes: ["shared-cpu-1x", "shared-cpu-2x", "performance-1x"] };
    expect(
      await check(allowedMachineSizes, "Machine", machine(guest, size), { config, binding: "pulumi-machines-plugin" }),
    ).toEqual({ violations: [] });
  });

  test.each([
    [{ cpus: 4 }, undefined, "config.guest is the size shared-cpu-4x"],
    [{ cpuKind: "performance" }, undefined, "config.guest is the size performance-1x"],
    [{ cpuKind: "shared", cpus: 6 }, "performance-2x", "config.guest is the size shared-cpu-6x"],
    [undefined, "performance-2x", "config.size is the size performance-2x"],
  ] as const)("the policy refuses other sizes, and lists the allowed ones: %j %s", async (guest, size, said) => {
    const config = { sizes: ["shared-cpu-1x", "shared-cpu-2x"] };
    expect(await check(allowedMachineSizes, "Machine", machine(guest, size), { config })).toEqual({
      violations: [`${said}, which is not allowed. Allowed are shared-cpu-1x, shared-cpu-2x.`],
    });
  });

  test("the policy refuses a Machine's default size if it is not allowed", async () => {
    expect(await check(allowedMachineSizes, "Machine", machine(), { config: { sizes: ["performance-1x"] } })).toEqual({
      violations: ["config.guest is the size shared-cpu-1x, which is not allowed. Allowed is performance-1x."],
    });
  });

  test("the policy limits memory, also if it follows from the size", async () => {
    const config = { maxMemoryMb: 1024 };
    expect(await check(allowedMachineSizes, "Machine", machine({ memoryMb: 1024 }), { config })).toEqual({
      violations: [],
    });
    expect(await check(allowedMachineSizes, "Machine", machine({ memoryMb: 2048 }), { config })).toEqual({
      violations: ["config.guest.memoryMb is 2048; 1024 MiB are allowed."],
    });
    expect(await check(allowedMachineSizes, "Machine", machine(undefined, "performance-1x"), { config })).toEqual({
      violations: ["config.size has 2048 MiB of memory; 1024 MiB are allowed."],
    });
  });

  test.each([{ gpus: 1 }, { gpuKind: "a10" }])("the policy refuses GPUs unless they are allowed: %j", async (guest) => {
    expect(await check(allowedMachineSizes, "Machine", machine(guest))).toEqual({
      violations: ["config.guest requests GPUs, which are not allowed. Leave out gpus and gpuKind."],
    });
    expect(await check(allowedMachineSizes, "Machine", machine(guest), { config: { gpus: true } })).toEqual({
      violations: [],
    });
    expect(await check(allowedMachineSizes, "Machine", machine({ gpus: 0 }))).toEqual({ violations: [] });
  });

  test("the policy continues after an unknown size", async () => {
    expect(await check(allowedMachineSizes, "Machine", machine({ cpus: unknownText as never, gpus: 1 }))).toEqual({
      violations: [expect.stringContaining("GPUs")],
      unknown:
        "config.guest.cpus is known only at the update, and is checked then, before the Machine is created or changed",
    });
  });

  test("the policy refuses unknown settings", async () => {
    await expect(check(allowedMachineSizes, "Machine", machine(), { config: { maxMemory: 1 } })).rejects.toThrow(
      'has "maxMemory", which it does not know; did you mean "maxMemoryMb"?',
    );
  });
});
