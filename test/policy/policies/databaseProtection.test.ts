import { describe, expect, test } from "vitest";
import { databaseProtection } from "../../../policy/policies/databaseProtection.ts";
import { check, unknownText } from "../../support/policies.ts";

describe("database-protection", () => {
  test.each([{}, { deletionProtection: true }, { deletionProtection: undefined }])(
    "the policy accepts %j",
    async (inputs) => {
      expect(await check(databaseProtection, "PostgresCluster", inputs)).toEqual({ violations: [] });
    },
  );

  test("the policy refuses a cluster without it, even one that Pulumi protects", async () => {
    for (const protect of [false, true])
      expect(
        await check(
          databaseProtection,
          "PostgresCluster",
          { deletionProtection: false },
          { binding: "pulumi-machines-plugin", opts: { protect } },
        ),
      ).toEqual({ violations: ["deletionProtection is false. Leave it out, or set it to true."] });
  });

  test("the policy reports an unknown value", async () => {
    const inputs = { deletionProtection: unknownText as never };
    expect(await check(databaseProtection, "PostgresCluster", inputs)).toEqual({
      violations: [],
      unknown: expect.stringMatching(/^deletionProtection is known only at the update/),
    });
  });

  test("the policy refuses settings other than exceptions", async () => {
    const how = { config: { exceptons: [] } };
    await expect(check(databaseProtection, "PostgresCluster", {}, how)).rejects.toThrow('did you mean "exceptions"?');
  });
});
