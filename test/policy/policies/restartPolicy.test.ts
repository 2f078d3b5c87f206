import { describe, expect, test } from "vitest";
import { restartPolicy } from "../../../policy/policies/restartPolicy.ts";
import type { MachineConfig } from "../../../policy/resources.ts";
import { check, repair, secret, unknownText } from "../../support/policies.ts";

const machine = (config: Partial<MachineConfig>, serves = true) => ({
  app: "shop",
  config: {
    image: "shop",
    ...config,
    ...(serves && { services: [{ protocol: "tcp" as const, internalPort: 80 }] }),
  },
});
const no = { policy: "no" } as const;

describe("restart-policy", () => {
  test.each<[string, ReturnType<typeof machine>]>([
    ["left out", machine({})],
    ["always", machine({ restart: { policy: "always" } })],
    ["on-failure", machine({ restart: { policy: "on-failure", maxRetries: 3 } })],
    ["no policy", machine({ restart: { maxRetries: 3 } })],
    ["no, without services", machine({ restart: no }, false)],
    ["no, of a job", machine({ restart: no, autoDestroy: true })],
    ["no, of a scheduled job", machine({ restart: no, schedule: "daily" })],
  ])("the policy accepts %s, and remediates nothing", async (_, inputs) => {
    expect(await check(restartPolicy, "Machine", inputs)).toEqual({ violations: [] });
    expect(await repair(restartPolicy, "Machine", inputs)).toBeUndefined();
  });

  test("the policy refuses a service that stays down", async () => {
    for (const binding of ["pulumi-machines", "pulumi-machines-plugin"] as const)
      expect(await check(restartPolicy, "Machine", machine({ restart: no }), { binding })).toEqual({
        violations: [
          'config.restart.policy is "no": after a crash the service stays down. Set it to "on-failure" or "always".',
        ],
      });
  });

  test("the policy checks containers as well, and treats null as omitted", async () => {
    const containers = [
      { name: "a", image: "a" },
      { name: "b", image: "b", restart: { ...no } },
    ];
    const inputs = machine({ containers, schedule: null as never, autoDestroy: null as never });
    expect(await check(restartPolicy, "Machine", inputs)).toEqual({
      violations: [expect.stringContaining('config.containers[1].restart.policy is "no"')],
    });
    expect(await repair(restartPolicy, "Machine", inputs)).toMatchObject({
      config: { containers: [{ name: "a" }, { name: "b", restart: { policy: "on-failure" } }] },
    });
  });

  test("remediates the policy, and keeps everything else", async () => {
    const inputs = machine({ restart: { policy: "no", maxRetries: 3 }, env: { A: secret("hidden"), B: "b" } });
    expect(await repair(restartPolicy, "Machine", inputs)).toEqual({
      app: "shop",
      config: {
        image: "shop",
        services: [{ protocol: "tcp", internalPort: 80 }],
        restart: { policy: "on-failure", maxRetries: 3 },
        env: { A: { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", value: "hidden" }, B: "b" },
      },
    });
  });

  test("the policy keeps secret values of the policy secret", async () => {
    expect(await repair(restartPolicy, "Machine", machine({ restart: secret({ ...no }) }))).toMatchObject({
      config: {
        restart: {
          "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
          value: { policy: "on-failure" },
        },
      },
    });
  });

  test("the policy reports an unknown policy", async () => {
    const inputs = () => machine({ restart: { policy: unknownText as never } });
    expect(await check(restartPolicy, "Machine", inputs())).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^config\.restart\.policy is known only/),
    });
    await expect(repair(restartPolicy, "Machine", inputs())).rejects.toThrow("config.restart.policy is known only");
  });

  test("the policy applies only to Machines", async () => {
    expect(await check(restartPolicy, "App", {})).toMatchObject({ notApplicable: "it is about each Machine" });
    await expect(repair(restartPolicy, "App", {})).rejects.toThrow("it is about each Machine");
  });

  test("the policy refuses settings other than exceptions", async () => {
    await expect(check(restartPolicy, "Machine", machine({}), { config: { policy: "no" } })).rejects.toThrow(
      'has "policy", which it does not know',
    );
  });
});
