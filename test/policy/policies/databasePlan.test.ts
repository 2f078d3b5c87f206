import { describe, expect, test } from "vitest";
import { databasePlan } from "../../../policy/policies/databasePlan.ts";
import { check, unknownText } from "../../support/policies.ts";

const run = (plan: string | undefined, config?: object) => check(databasePlan, "PostgresCluster", { plan }, { config });

describe("database-plan", () => {
  // If omitted, it is the source's plan; an unknown name may be larger than all of them.
  test.each(["starter", "launch", "Scale", "Performance", undefined, "galactic"])(
    "the policy accepts %s",
    async (plan) => {
      expect(await run(plan)).toEqual({ violations: [] });
    },
  );

  test.each(["basic", "Basic", "BASIC"])("the policy refuses %s", async (plan) => {
    expect(await run(plan)).toEqual({ violations: ['plan is "basic"; "starter" is the smallest allowed.'] });
  });

  test("the policy accepts another smallest plan", async () => {
    expect(await run("basic", { minimum: "basic" })).toEqual({ violations: [] });
    expect(await run("launch", { minimum: "launch" })).toEqual({ violations: [] });
    expect(await run("starter", { minimum: "launch" })).toEqual({
      violations: ['plan is "starter"; "launch" is the smallest allowed.'],
    });
    await expect(run("starter", { minimum: "large" })).rejects.toThrow("minimum");
  });

  test("the policy reports an unknown plan", async () => {
    expect(
      await check(databasePlan, "PostgresCluster", { plan: unknownText }, { binding: "pulumi-machines-plugin" }),
    ).toEqual({ violations: [], unknown: expect.stringMatching(/^plan is known only at the update/) });
  });

  test("the policy refuses unknown settings", async () => {
    await expect(run("basic", { minimun: "basic" })).rejects.toThrow('did you mean "minimum"?');
  });
});
