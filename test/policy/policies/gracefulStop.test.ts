import { describe, expect, test } from "vitest";
import { gracefulStop } from "../../../policy/policies/gracefulStop.ts";
import type { MachineStopConfig } from "../../../policy/resources.ts";
import { check, unknownText } from "../../support/policies.ts";

const machine = (stopConfig?: MachineStopConfig, serves = true) => ({
  app: "shop",
  config: { image: "shop", stopConfig, services: serves ? [{ protocol: "tcp" as const, internalPort: 80 }] : [] },
});

describe("graceful-stop", () => {
  test.each([
    { timeout: "10s" },
    { timeout: "1m" },
    { timeout: "10s", signal: "SIGTERM" },
    { timeout: "10000ms" },
  ] as const)("the policy accepts %j", async (stop) => {
    expect(await check(gracefulStop, "Machine", machine(stop))).toEqual({ violations: [] });
  });

  test("the policy applies only to Machines with services", async () => {
    const killed = machine({ signal: "SIGKILL" }, false);
    expect(await check(gracefulStop, "Machine", killed)).toEqual({ violations: [] });
  });

  test("the policy refuses a short timeout, and names the required one", async () => {
    for (const stop of [undefined, {}, { signal: "SIGTERM" }] as const)
      expect(await check(gracefulStop, "Machine", machine(stop), { binding: "pulumi-machines-plugin" })).toEqual({
        violations: ['config.stopConfig.timeout is left out, which is 5 s; at least 10 s are wanted: timeout: "10s".'],
      });
    expect(await check(gracefulStop, "Machine", machine({ timeout: "1500ms" }))).toEqual({
      violations: ['config.stopConfig.timeout is 1.5 s; at least 10 s are wanted: timeout: "10s".'],
    });
  });

  test("the policy refuses a signal that ends the process immediately", async () => {
    expect(await check(gracefulStop, "Machine", machine({ signal: "SIGKILL", timeout: "30s" }))).toEqual({
      violations: [
        'config.stopConfig.signal is "SIGKILL", which ends every connection at once. Use "SIGTERM" or "SIGINT".',
      ],
    });
  });

  test("the policy checks containers with their own stop settings, and otherwise the Machine's", async () => {
    const containers = (...stops: (MachineStopConfig | undefined)[]) => {
      const { app, config } = machine();
      return { app, config: { ...config, containers: stops.map((stop, i) => ({ name: `c${i}`, image: "c", stop })) } };
    };
    expect(await check(gracefulStop, "Machine", containers({ timeout: "30s" }, { timeout: "10s" }))).toEqual({
      violations: [],
    });
    expect(await check(gracefulStop, "Machine", containers({ timeout: "30s", signal: "SIGKILL" }, undefined))).toEqual({
      violations: [
        expect.stringContaining('config.containers[0].stop.signal is "SIGKILL"'),
        expect.stringContaining("config.stopConfig.timeout is left out"),
      ],
    });
  });

  test("the policy accepts another limit", async () => {
    expect(await check(gracefulStop, "Machine", machine(), { config: { minSeconds: 5 } })).toEqual({ violations: [] });
    expect(await check(gracefulStop, "Machine", machine({ timeout: "10s" }), { config: { minSeconds: 30 } })).toEqual({
      violations: [expect.stringContaining('timeout: "30s"')],
    });
  });

  test("the policy continues after unknown values", async () => {
    const signal = unknownText as never;
    expect(await check(gracefulStop, "Machine", machine({ signal, timeout: "1s" }))).toEqual({
      violations: [expect.stringContaining("timeout")],
      unknown: expect.stringMatching(/^config\.stopConfig\.signal is known only/),
    });
    expect(await check(gracefulStop, "Machine", machine({ signal: "SIGKILL", timeout: unknownText }))).toEqual({
      violations: [expect.stringContaining("SIGKILL")],
      unknown: expect.stringMatching(/^config\.stopConfig\.timeout is known only/),
    });
  });

  test("the policy refuses unknown settings", async () => {
    await expect(check(gracefulStop, "Machine", machine(), { config: { minSecond: 1 } })).rejects.toThrow(
      'did you mean "minSeconds"?',
    );
  });
});
