import { describe, expect, test } from "vitest";
import { healthChecks } from "../../../policy/policies/healthChecks.ts";
import type { MachineConfig, MachineService } from "../../../policy/resources.ts";
import { check, unknownList, unknownText } from "../../support/policies.ts";

const service = (more: Partial<MachineService> = {}): MachineService => ({
  protocol: "tcp",
  internalPort: 80,
  ...more,
});
const machine = (config: Partial<MachineConfig>) => ({ app: "shop", config: { image: "shop", ...config } });
const http = { type: "http", path: "/healthz" } as const;
const missing = (i: number) =>
  `config.services[${i}] has no check. Add checks: [{ type: "http", path: "/healthz", interval: "15s", timeout: "2s" }].`;

describe("health-checks", () => {
  test.each<[string, Partial<MachineConfig>]>([
    ["no services", {}],
    ["a check of the service", { services: [service({ checks: [http] })] }],
    ["a check of the Machine on its port", { services: [service()], checks: { web: { ...http, port: 80 } } }],
    ["any check, for UDP", { services: [service({ protocol: "udp" })], checks: { web: { ...http, port: 9090 } } }],
    [
      "a check of a container",
      { services: [service()], containers: [{ name: "a", image: "a", healthchecks: [{ name: "up" }] }] },
    ],
  ])("the policy accepts %s", async (_, config) => {
    expect(await check(healthChecks, "Machine", machine(config))).toEqual({ violations: [] });
  });

  test.each<[string, Partial<MachineConfig>]>([
    ["no check", { services: [service({ checks: [http] }), service()] }],
    ["no check in its list", { services: [service({ checks: [http] }), service({ checks: [] })] }],
    [
      "a check of the Machine on another port",
      { services: [service({ checks: [http] }), service()], checks: { web: { ...http, port: 9090 } } },
    ],
    [
      "only a container's check of another port",
      {
        services: [service({ checks: [http] }), service()],
        containers: [{ name: "a", image: "a", healthchecks: [{ name: "up", tcp: { port: 9090 } }] }],
      },
    ],
    [
      "a container without checks",
      { services: [service({ checks: [http] }), service()], containers: [{ name: "a", image: "a" }] },
    ],
  ])("the policy refuses a service with %s, and names it", async (_, config) => {
    expect(await check(healthChecks, "Machine", machine(config), { binding: "pulumi-machines-plugin" })).toEqual({
      violations: [missing(1)],
    });
  });

  test("the policy refuses a UDP service without any check; a check of the Machine is sufficient", async () => {
    expect(await check(healthChecks, "Machine", machine({ services: [service({ protocol: "udp" })] }))).toEqual({
      violations: [expect.stringContaining("config.services[0] has no check. Add one of the Machine: checks:")],
    });
  });

  test("the policy reports an unknown port only if it may be the missing one", async () => {
    const port = unknownText as never;
    const services = [service(), service({ checks: [http] })];
    const one = machine({ services, checks: { a: { ...http, port } } });
    expect(await check(healthChecks, "Machine", one)).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^config\.checks\.a\.port is known only/),
    });
    const two = machine({
      services,
      checks: { a: { ...http, port }, b: { ...http, port: services[0]?.internalPort } },
    });
    expect(await check(healthChecks, "Machine", two)).toEqual({ violations: [] });
  });

  test("the policy continues after unknown values", async () => {
    const services = [service({ checks: unknownList }), service()];
    expect(await check(healthChecks, "Machine", machine({ services }))).toEqual({
      violations: [missing(1)],
      unknown: expect.stringMatching(/^config\.services\[0\]\.checks is known only/),
    });
    const checks = { web: { ...http, port: unknownText as never } };
    expect(await check(healthChecks, "Machine", machine({ services: [service()], checks }))).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^config\.checks\.web\.port is known only/),
    });
  });

  test("the policy refuses settings other than exceptions", async () => {
    await expect(check(healthChecks, "Machine", machine({}), { config: { kind: "http" } })).rejects.toThrow(
      'has "kind", which it does not know; it knows exceptions, enforcementLevel',
    );
  });
});
