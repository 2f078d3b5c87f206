import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Ajv } from "ajv";
import { describe, expect, test } from "vitest";
import { baselines, type BaselineName } from "../../policy/baselines.ts";
import { withExceptions } from "../../policy/core/exceptions.ts";
import { machinesPolicies } from "../../policy/policies/index.ts";

const policies = withExceptions(machinesPolicies());
const names = Object.keys(baselines) as BaselineName[];
/** In increasing strictness. A remediation enforces as much as `mandatory`. */
const levels = ["disabled", "advisory", "remediate", "mandatory"];

/** Level and settings of a policy in a baseline. */
function entry(name: BaselineName, policy: string): { enforcementLevel: string; [setting: string]: unknown } {
  const given = baselines[name][policy];
  return typeof given === "object" ? { enforcementLevel: "?", ...given } : { enforcementLevel: given ?? "?" };
}
const strength = (name: BaselineName, policy: string) => levels.indexOf(entry(name, policy).enforcementLevel);

describe.each(names)("the baseline %s", (name) => {
  test("the baseline names every policy of the pack, and no other", () => {
    expect(Object.keys(baselines[name]).sort()).toEqual(policies.map(({ name }) => name).sort());
  });

  test("the baseline is exported by the file of its name", async () => {
    const file = join(__dirname, `../../policy/baselines/${name}.json`);
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual(baselines[name]);
  });

  test.each(policies.map((policy) => [policy.name, policy] as const))(
    "the baseline has a level and known settings for %s",
    (_, policy) => {
      const { enforcementLevel, ...settings } = entry(name, policy.name);
      expect(levels).toContain(enforcementLevel);
      // As the engine does it; names are checked too, which the engine does not do.
      const { properties = {}, required = [] } = policy.configSchema ?? {};
      const validate = new Ajv().compile({ type: "object", properties, required, additionalProperties: false });
      expect(validate(settings), JSON.stringify(validate.errors)).toBe(true);
    },
  );

  test("remediates only policies that can", () => {
    for (const policy of policies)
      if (entry(name, policy.name).enforcementLevel === "remediate") expect(policy).toHaveProperty("remediateResource");
  });

  test("enables policies that require configuration", () => {
    for (const policy of [
      "allowed-registries",
      "allowed-regions",
      "allowed-machine-sizes",
      "budget",
      "required-metadata",
    ])
      expect(entry(name, policy), policy).toEqual({ enforcementLevel: "mandatory" });
  });
});

test.each(policies.map(({ name }) => name))("no baseline is weaker about %s than the previous one", (policy) => {
  // Unused Machines stop only in development.
  if (policy !== "autostop")
    expect(strength("production", policy)).toBeGreaterThanOrEqual(strength("development", policy));
  expect(strength("strict", policy)).toBeGreaterThanOrEqual(strength("production", policy));
});

test("no setting of the strict baseline is weaker than in production", () => {
  const number = (name: BaselineName, policy: string, setting: string, byDefault: number) =>
    Number(entry(name, policy)[setting] ?? byDefault);
  for (const [policy, setting] of [
    ["redundancy", "machines"],
    ["redundancy", "regions"],
    ["certificates-not-expiring", "days"],
    ["volume-snapshots", "minDays"],
  ] as const) {
    const byDefault = Number(policies.find(({ name }) => name === policy)?.configSchema?.properties[setting]?.default);
    expect(byDefault, `${policy} has ${setting}`).toBeGreaterThan(0);
    expect(number("strict", policy, setting, byDefault)).toBeGreaterThanOrEqual(
      number("production", policy, setting, byDefault),
    );
  }
  expect(number("strict", "deploy-token-expiry", "maxHours", 2160)).toBeLessThanOrEqual(
    number("production", "deploy-token-expiry", "maxHours", 2160),
  );
  expect(entry("strict", "no-public-ipv4")["allow"]).toBeUndefined();
});
