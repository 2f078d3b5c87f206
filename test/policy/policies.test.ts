import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { PolicyConfigJSONSchema, PolicyConfigJSONSchemaDefinition } from "@pulumi/policy/schema.js";
import { Ajv } from "ajv";
import { describe, expect, test } from "vitest";
import { withExceptions } from "../../policy/core/exceptions.ts";
import { machinesPolicies } from "../../policy/policies/index.ts";

const policies = machinesPolicies();

/** All properties of a schema, including nested ones, by their paths. */
function propertiesOf(
  properties: { readonly [name: string]: PolicyConfigJSONSchemaDefinition } | undefined,
  path = "",
): [string, PolicyConfigJSONSchema][] {
  return Object.entries(properties ?? {}).flatMap(([name, schema]): [string, PolicyConfigJSONSchema][] =>
    typeof schema === "boolean"
      ? []
      : [[`${path}${name}`, schema], ...propertiesOf(schema.properties, `${path}${name}.`)],
  );
}

describe("the pack", () => {
  test("the pack has a policy for every file, each with a unique name", async () => {
    const files = await readdir(join(__dirname, "../../policy/policies"));
    const written = files.map((file) => file.replace(/\.ts$/, "").toLowerCase()).filter((file) => file !== "index");
    expect(policies.map(({ name }) => name.replaceAll("-", "")).sort()).toEqual(written.sort());
    expect(policies).toHaveLength(26);
    expect(new Set(policies.map(({ name }) => name)).size).toBe(26);
  });

  test("the pack creates new policies for every pack: none remembers what another has seen", () => {
    const budgets = [machinesPolicies(), machinesPolicies()].map((all) => all.find(({ name }) => name === "budget"));
    expect(budgets[0]).not.toBe(budgets[1]);
  });
});

describe.each(withExceptions(policies).map((policy) => [policy.name, policy] as const))("%s", (name, policy) => {
  test("the policy has a description, a severity and a remedy for each", () => {
    expect(name).toMatch(/^[a-z0-9]+(?:-[a-z0-9]+)*$/);
    expect(policy.description).toMatch(/^[A-Z].*\.$/);
    expect(policy.severity).toMatch(/^(?:low|medium|high|critical)$/);
    expect(policy.remediationSteps).toMatch(/^[A-Z].*\.$/);
    // Printed without a level, which the configuration decides.
    expect(policy.enforcementLevel).toBeUndefined();
  });

  test("the policy describes every setting in a valid schema", () => {
    const { properties = {}, required = [] } = policy.configSchema ?? {};
    for (const [path, { description }] of propertiesOf(properties)) expect(description, path).toMatch(/^[A-Z].*\.$/s);
    const ajv = new Ajv({ strict: true, allowUnionTypes: true });
    const validate = ajv.compile({ type: "object", properties, required });
    // Nothing requires configuration, and the defaults are valid.
    expect(validate({})).toBe(true);
    const defaults = Object.entries(properties).flatMap(([setting, schema]) =>
      schema.default === undefined ? [] : [[setting, schema.default]],
    );
    expect(validate(Object.fromEntries(defaults)), JSON.stringify(validate.errors)).toBe(true);
  });

  test("the policy accepts complete exceptions", () => {
    if (name === "exceptions") return;
    const { properties = {} } = policy.configSchema ?? {};
    const validate = new Ajv().compile({ type: "object", properties });
    const one = { resource: "web", reason: "TICKET-1", until: "2026-12-31" };
    expect(validate({ exceptions: [one, { ...one, resource: "*" }] })).toBe(true);
    for (const wrong of [
      { until: undefined },
      { until: "2026-13-01" },
      { until: "2026-12-32" },
      { until: "tomorrow" },
      { until: "2026-12-31T00:00:00Z" },
      { reason: "" },
      { resource: "" },
      { more: 1 },
    ])
      expect(validate({ exceptions: [JSON.parse(JSON.stringify({ ...one, ...wrong }))] }), JSON.stringify(wrong)).toBe(
        false,
      );
  });
});
