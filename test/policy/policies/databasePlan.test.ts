import { describe, expect, test } from "vitest";
import { databasePlan } from "../../../policy/policies/databasePlan.ts";
import { check, unknownText } from "../../support/policies.ts";

const run = (plan: string | undefined, config?: object) => check(databasePlan, "PostgresCluster", { plan }, { config });

describe("database-plan", () => {
  // Left out it is that of the source; a name that is not known may be larger than all of them.
  test.each(["starter", "launch", "Scale", "Performance", undefined, "galactic"])("lets %s pass", async (plan) => {
    expect(await run(plan)).toEqual({ violations: [] });
  });

  test.each(["basic", "Basic", "BASIC"])("refuses %s", async (plan) => {
    expect(await run(plan)).toEqual({ violations: ['plan is "basic"; "starter" is the smallest allowed.'] });
  });

  test("takes another smallest plan", async () => {
    expect(await run("basic", { minimum: "basic" })).toEqual({ violations: [] });
    expect(await run("launch", { minimum: "launch" })).toEqual({ violations: [] });
    expect(await run("starter", { minimum: "launch" })).toEqual({
      violations: ['plan is "starter"; "launch" is the smallest allowed.'],
    });
    await expect(run("starter", { minimum: "large" })).rejects.toThrow("minimum");
  });

  test("says that it is unknown", async () => {
    expect(
      await check(databasePlan, "PostgresCluster", { plan: unknownText }, { binding: "pulumi-machines-plugin" }),
    ).toEqual({ violations: [], unknown: expect.stringMatching(/^plan is known only at the update/) });
  });

  test("knows its settings", async () => {
    await expect(run("basic", { minimun: "basic" })).rejects.toThrow('did you mean "minimum"?');
  });
});
