import { describe, expect, test } from "vitest";
import { autostop } from "../../../policy/policies/autostop.ts";
import type { MachineService } from "../../../policy/resources.ts";
import { check, unknownList, unknownText } from "../../support/policies.ts";

const machine = (...services: Partial<MachineService>[]) => ({
  app: "shop",
  config: {
    image: "shop",
    services: services.map((more) => ({ protocol: "tcp" as const, internalPort: 80, ...more })),
  },
});

describe("autostop", () => {
  test.each([
    [],
    [{ autostop: "stop" }],
    [{ autostop: "suspend", autostart: true }],
    [{ autostop: true, autostart: true }],
    [{ autostop: "stop" }, { autostop: true }],
  ])("the policy accepts services that stop and start: %j %j", async (...services) => {
    expect(
      await check(autostop, "Machine", machine(...services.filter((each) => each !== undefined)), {
        binding: "pulumi-machines-plugin",
      }),
    ).toEqual({ violations: [] });
  });

  test("the policy accepts UDP services, which are not started on demand", async () => {
    expect(await check(autostop, "Machine", machine({ protocol: "udp" }))).toEqual({ violations: [] });
  });

  test("the policy refuses a Machine that stops and is not started again", async () => {
    const { app, config } = machine({ autostop: "stop" });
    const { violations } = await check(autostop, "Machine", {
      app,
      config: { ...config, disableMachineAutostart: true },
    });
    expect(violations).toEqual([expect.stringContaining("config.disableMachineAutostart is true")]);
  });

  test("the policy accepts a Machine without services", async () => {
    expect(await check(autostop, "Machine", { app: "shop", config: { image: "shop" } })).toEqual({ violations: [] });
  });

  test.each([{}, { autostop: "off" }, { autostop: false }])(
    "the policy refuses one that never stops: %j",
    async (service) => {
      expect(await check(autostop, "Machine", machine({ autostop: "stop" }, service))).toEqual({
        violations: ['config.services[1] never stops. Set autostop: "stop" and autostart: true.'],
      });
    },
  );

  test("the policy refuses one that stops and never starts", async () => {
    expect(await check(autostop, "Machine", machine({ autostop: "stop", autostart: false }))).toEqual({
      violations: ["config.services[0].autostart is false: once stopped, no request starts it. Leave it out."],
    });
  });

  test("the policy reports unknown values, and checks the rest", async () => {
    expect(await check(autostop, "Machine", machine({ autostop: unknownText }, {}))).toEqual({
      violations: [expect.stringContaining("config.services[1]")],
      unknown: expect.stringMatching(/^config\.services\[0\]\.autostop is known only/),
    });
    expect(await check(autostop, "Machine", { app: "shop", config: { image: "x", services: unknownList } })).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^config\.services is known only/),
    });
  });

  test("the policy refuses settings other than exceptions", async () => {
    await expect(check(autostop, "Machine", machine(), { config: { exception: [] } })).rejects.toThrow(
      'did you mean "exceptions"?',
    );
  });
});
