import { describe, expect, test } from "vitest";
import { knownPorts } from "../../../policy/policies/knownPorts.ts";
import type { MachineServicePort } from "../../../policy/resources.ts";
import { check, unknownList, unknownText } from "../../support/policies.ts";

const machine = (...services: (MachineServicePort[] | undefined)[]) => ({
  app: "shop",
  config: {
    image: "shop",
    services: services.map((ports) => ({ protocol: "tcp" as const, internalPort: 5432, ports })),
  },
});
const run = (ports: MachineServicePort[], config?: object) => check(knownPorts, "Machine", machine(ports), { config });

describe("known-ports", () => {
  test.each<[MachineServicePort[]]>([
    [[{ port: 80 }, { port: 443 }]],
    [[{ startPort: 443, endPort: 443 }]],
    [[{ startPort: 80 }]],
    [[]],
    // A service without a port is not public.
    [[{ handlers: ["tls"] }]],
  ])("the policy accepts %j", async (ports) => {
    expect(await run(ports)).toEqual({ violations: [] });
  });

  test("the policy accepts services that are not public", async () => {
    expect(await check(knownPorts, "Machine", machine(undefined))).toEqual({ violations: [] });
    expect(await check(knownPorts, "Machine", { app: "shop", config: { image: "x" } })).toEqual({ violations: [] });
  });

  test.each<[MachineServicePort, string]>([
    [{ port: 5432 }, "makes port 5432 public"],
    [{ startPort: 79, endPort: 80 }, "makes the ports 79 to 80 public"],
    [{ startPort: 443, endPort: 444 }, "makes the ports 443 to 444 public"],
    [{ startPort: 1, endPort: 65535 }, "makes the ports 1 to 65535 public"],
    [{ startPort: 81 }, "makes port 81 public"],
    [{ endPort: 81 }, "makes port 81 public"],
  ])("the policy refuses %j once, and lists the known ones", async (port, said) => {
    expect(await run([{ port: 80 }, port])).toEqual({
      violations: [`config.services[0].ports[1] ${said}. Known are 80, 443.`],
    });
  });

  test("the policy accepts other ports", async () => {
    expect(await run([{ port: 5432 }], { ports: [5432] })).toEqual({ violations: [] });
    expect(await run([{ startPort: 10, endPort: 12 }], { ports: [10, 11, 12] })).toEqual({ violations: [] });
    expect(await run([{ port: 80 }], { ports: [5432] })).toEqual({
      violations: ["config.services[0].ports[0] makes port 80 public. Known is 5432."],
    });
    expect(await run([{ port: 80 }], { ports: [] })).toEqual({
      violations: ["config.services[0].ports[0] makes port 80 public. None may be; take it out."],
    });
  });

  test("the policy continues after unknown ports", async () => {
    const inputs = machine([{ port: unknownText as never }, { port: 22 }], unknownList, [{ port: 23 }]);
    expect(await check(knownPorts, "Machine", inputs, { binding: "pulumi-machines-plugin" })).toEqual({
      violations: [expect.stringContaining("port 22"), expect.stringContaining("port 23")],
      unknown: expect.stringMatching(
        /^config\.services\[0\]\.ports\[0\]\.port and config\.services\[1\]\.ports are known only/,
      ),
    });
  });

  test("the policy refuses unknown settings", async () => {
    await expect(run([], { port: [1] })).rejects.toThrow('did you mean "ports"?');
  });
});
