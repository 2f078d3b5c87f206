import { describe, expect, test } from "vitest";
import { noPublicIpv4 } from "../../../policy/policies/noPublicIpv4.ts";
import { check, unknownText } from "../../support/policies.ts";

type Type = "v4" | "v6" | "shared_v4" | "private_v6" | "egress_v4" | "egress_v6" | "egress_pair";
const run = (type: Type, config?: object) => check(noPublicIpv4, "IpAssignment", { app: "shop", type }, { config });

describe("no-public-ipv4", () => {
  // Addresses for outgoing connections accept no incoming ones.
  test.each<Type>(["v6", "private_v6", "egress_v4", "egress_v6", "egress_pair"])(
    "the policy accepts %s",
    async (type) => {
      expect(await run(type)).toEqual({ violations: [] });
    },
  );

  test.each<Type>(["v4", "shared_v4"])("the policy refuses %s", async (type) => {
    expect(await run(type)).toEqual({
      violations: [`type is "${type}", a public IPv4 address. Allowed are "v6" and "private_v6".`],
    });
  });

  test("the policy accepts the allowed kinds", async () => {
    expect(await run("shared_v4", { allow: ["shared_v4"] })).toEqual({ violations: [] });
    expect(await run("v4", { allow: ["shared_v4", "v4"] })).toEqual({ violations: [] });
    expect(await run("v4", { allow: ["shared_v4"] })).toEqual({
      violations: ['type is "v4", a public IPv4 address. Allowed are "shared_v4", "v6" and "private_v6".'],
    });
  });

  test("the policy reports an unknown kind", async () => {
    const inputs = { app: "shop", type: unknownText as never };
    expect(await check(noPublicIpv4, "IpAssignment", inputs, { binding: "pulumi-machines-plugin" })).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^type is known only at the update/),
    });
  });

  test("the policy refuses unknown settings", async () => {
    await expect(run("v4", { allowed: ["v4"] })).rejects.toThrow('did you mean "allow"?');
  });
});
