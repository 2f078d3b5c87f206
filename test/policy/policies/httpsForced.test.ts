import { describe, expect, test } from "vitest";
import { httpsForced } from "../../../policy/policies/httpsForced.ts";
import type { MachineServicePort } from "../../../policy/resources.ts";
import { check, repair, secret, unknownList } from "../../support/policies.ts";

const machine = (...services: MachineServicePort[][]) => ({
  app: "shop",
  config: {
    image: "shop",
    services: services.map((ports) => ({ protocol: "tcp" as const, internalPort: 80, ports })),
  },
});
const open = { port: 80, handlers: ["http" as const] };
const tls = { port: 443, handlers: ["tls" as const, "http" as const] };

describe("https-forced", () => {
  test.each<[MachineServicePort]>([
    [{ port: 80, handlers: ["http"], forceHttps: true }],
    [tls],
    [{ port: 5432, handlers: ["pg_tls"] }],
    [{ port: 22 }],
    [{ port: 22, handlers: [] }],
  ])("the policy accepts %j", async (port) => {
    expect(await check(httpsForced, "Machine", machine([port]))).toEqual({ violations: [] });
    expect(await repair(httpsForced, "Machine", machine([port]))).toBeUndefined();
  });

  test("the policy accepts a Machine without services", async () => {
    const inputs = { app: "shop", config: { image: "shop" } };
    expect(await check(httpsForced, "Machine", inputs)).toEqual({ violations: [] });
    expect(await repair(httpsForced, "Machine", inputs)).toBeUndefined();
    const inner = { app: "shop", config: { image: "shop", services: [{ protocol: "tcp" as const, internalPort: 1 }] } };
    expect(await check(httpsForced, "Machine", inner)).toEqual({ violations: [] });
    expect(await repair(httpsForced, "Machine", inner)).toBeUndefined();
  });

  test("the policy refuses HTTP without a redirect, and names the port", async () => {
    const inputs = machine([tls], [tls, open], [{ port: 8080, handlers: ["proxy_proto", "http"], forceHttps: false }]);
    expect(await check(httpsForced, "Machine", inputs, { binding: "pulumi-machines-plugin" })).toEqual({
      violations: [
        "config.services[1].ports[1] serves HTTP unencrypted. Add forceHttps: true.",
        "config.services[2].ports[0] serves HTTP unencrypted. Add forceHttps: true.",
      ],
    });
  });

  test("remediates the ports that need it, and keeps everything else", async () => {
    const inputs = { ...machine([tls, { ...open }], [{ port: 22 }]), region: "ams" };
    const env = { PORT: "80", HIDDEN: secret("hidden") };
    for (const binding of ["pulumi-machines", "pulumi-machines-plugin"] as const)
      expect(await repair(httpsForced, "Machine", structuredCloneOf(inputs, env), { binding })).toEqual({
        app: "shop",
        region: "ams",
        config: {
          image: "shop",
          env: {
            PORT: "80",
            HIDDEN: { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", value: "hidden" },
          },
          services: [
            { protocol: "tcp", internalPort: 80, ports: [tls, { ...open, forceHttps: true }] },
            { protocol: "tcp", internalPort: 80, ports: [{ port: 22 }] },
          ],
        },
      });
  });

  test("the policy remediates known values beside unknown ones", async () => {
    const inputs = machine([{ port: 1, handlers: unknownList }, open], [tls]);
    const repaired = await repair(httpsForced, "Machine", structuredClone(inputs));
    expect(repaired).toMatchObject({
      config: {
        services: [
          {
            ports: [
              { port: 1, handlers: unknownList },
              { ...open, forceHttps: true },
            ],
          },
          { ports: [tls] },
        ],
      },
    });
    await expect(repair(httpsForced, "Machine", machine([{ port: 1, handlers: unknownList }, tls]))).rejects.toThrow(
      "config.services[0].ports[0].handlers is known only at the update",
    );
  });

  test("the policy remediates nothing without an HTTPS port", async () => {
    for (const ports of [[open], [open, { port: 443, handlers: ["tls" as const] }], [open, { ...tls, port: 8443 }]]) {
      expect(await repair(httpsForced, "Machine", machine(ports))).toBeUndefined();
      expect((await check(httpsForced, "Machine", machine(ports))).violations).toHaveLength(1);
    }
    const range = { startPort: 400, endPort: 500, handlers: tls.handlers };
    expect(await repair(httpsForced, "Machine", machine([{ ...open }], [range]))).toBeDefined();
  });

  test("the policy treats null as omitted, like the provider", async () => {
    const nothing = null as never;
    const inputs = machine([{ port: 80, handlers: nothing }], nothing);
    expect(await check(httpsForced, "Machine", inputs)).toEqual({ violations: [] });
    expect(await repair(httpsForced, "Machine", inputs)).toBeUndefined();
  });

  test("the policy continues after unknown values", async () => {
    const inputs = machine([{ port: 1, handlers: unknownList }, open]);
    expect(await check(httpsForced, "Machine", inputs)).toEqual({
      violations: [expect.stringContaining("config.services[0].ports[1]")],
      unknown: expect.stringMatching(/^config\.services\[0\]\.ports\[0\]\.handlers is known only/),
    });
  });

  test("the policy refuses settings other than exceptions", async () => {
    await expect(check(httpsForced, "Machine", machine(), { config: { ports: [] } })).rejects.toThrow(
      'has "ports", which it does not know',
    );
  });
});

/** A copy that a remediation may change; secrets are passed separately, because they are not plain data. */
function structuredCloneOf(inputs: ReturnType<typeof machine>, env: Record<string, string>) {
  const copy = structuredClone(inputs);
  return { ...copy, config: { ...copy.config, env } };
}
