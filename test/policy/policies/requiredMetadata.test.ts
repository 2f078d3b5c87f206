import { describe, expect, test } from "vitest";
import { requiredMetadata } from "../../../policy/policies/requiredMetadata.ts";
import { check, unknownText } from "../../support/policies.ts";

const machine = (metadata?: Record<string, string>) => ({ app: "shop", config: { image: "shop", metadata } });
const config = { metadata: { team: "*", cost: "c-*" } };

describe("required-metadata", () => {
  test("the policy accepts everything until it is configured", async () => {
    expect(await check(requiredMetadata, "Machine", machine())).toEqual({ violations: [] });
  });

  test.each([
    [{ team: "shop", cost: "c-1" }],
    [{ team: "", cost: "c-" }],
    [{ team: "a", cost: "c-1\nc-2", more: "x" }],
  ])("the policy accepts %j", async (metadata) => {
    expect(
      await check(requiredMetadata, "Machine", machine(metadata), { config, binding: "pulumi-machines-plugin" }),
    ).toEqual({ violations: [] });
  });

  test("the policy names the missing keys, and their allowed values", async () => {
    const violations = [
      "config.metadata.team is missing. Any text will do.",
      'config.metadata.cost is missing. Allowed is "c-*".',
    ];
    expect(await check(requiredMetadata, "Machine", machine(), { config })).toEqual({ violations });
    expect(await check(requiredMetadata, "Machine", machine({ TEAM: "a" }), { config })).toEqual({ violations });
  });

  test("the policy does not quote a refused value", async () => {
    const said = await check(requiredMetadata, "Machine", machine({ team: "a", cost: "hunter2" }), { config });
    expect(said).toEqual({ violations: ['config.metadata.cost is not what is allowed: "c-*".'] });
  });

  test("the policy reports a missing key even if every object has that property", async () => {
    const config = { metadata: { constructor: "*" } };
    expect(await check(requiredMetadata, "Machine", machine({}), { config })).toEqual({
      violations: ["config.metadata.constructor is missing. Any text will do."],
    });
  });

  test("the policy continues after unknown values", async () => {
    expect(await check(requiredMetadata, "Machine", machine({ team: unknownText, cost: "x" }), { config })).toEqual({
      violations: [expect.stringContaining("config.metadata.cost")],
      unknown: expect.stringMatching(/^config\.metadata\.team is known only/),
    });
    expect(await check(requiredMetadata, "Machine", machine(unknownText as never), { config })).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^config\.metadata is known only at the update, and is checked then/),
    });
  });

  test("the policy refuses unknown settings", async () => {
    await expect(check(requiredMetadata, "Machine", machine(), { config: { metdata: {} } })).rejects.toThrow(
      'did you mean "metadata"?',
    );
  });
});
