import { describe, expect, test } from "vitest";
import { deployTokenExpiry } from "../../../policy/policies/deployTokenExpiry.ts";
import { check, unknownText } from "../../support/policies.ts";

const run = (expiry: string, config?: object) =>
  check(deployTokenExpiry, "DeployToken", { app: "shop", expiry }, { config });

describe("deploy-token-expiry", () => {
  test.each(["24h", "720h", "2160h", "90m", "2159h59m60s"])("the policy accepts %s", async (expiry) => {
    expect(await run(expiry)).toEqual({ violations: [] });
  });

  test.each([
    ["2161h", "2161"],
    ["876000h", "876000"],
    ["2160h30m", "2160.5"],
  ])("the policy refuses %s", async (expiry, hours) => {
    expect(await run(expiry)).toEqual({
      violations: [`expiry is ${hours} h; at most 2160 h are allowed: expiry: "2160h".`],
    });
  });

  test("the policy accepts another limit", async () => {
    expect(await run("200h", { maxHours: 168 })).toEqual({
      violations: ['expiry is 200 h; at most 168 h are allowed: expiry: "168h".'],
    });
    expect(await run("9000h", { maxHours: 9000 })).toEqual({ violations: [] });
  });

  test("the policy ignores an invalid duration, which the provider refuses", async () => {
    expect(await run("forever")).toEqual({ violations: [] });
  });

  test("the policy reports an unknown expiry", async () => {
    const inputs = { app: "shop", expiry: unknownText };
    expect(await check(deployTokenExpiry, "DeployToken", inputs, { binding: "pulumi-machines-plugin" })).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^expiry is known only at the update/),
    });
  });

  test("the policy refuses unknown settings", async () => {
    await expect(run("1h", { maxHour: 1 })).rejects.toThrow('did you mean "maxHours"?');
  });
});
