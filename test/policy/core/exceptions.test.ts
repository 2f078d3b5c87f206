import type { ResourceValidationPolicy, StackValidationPolicy } from "@pulumi/policy";
import { describe, expect, test } from "vitest";
import { withExceptions, type Exception } from "../../../policy/core/exceptions.ts";
import { databaseBackups } from "../../../policy/policies/databaseBackups.ts";
import { restartPolicy } from "../../../policy/policies/restartPolicy.ts";
import { check, checkStack, repair, typeOf, type CheckOptions } from "../../support/policies.ts";

/** A policy of another pack, which knows nothing of exceptions. */
const foreign: ResourceValidationPolicy = {
  name: "foreign",
  description: "Nothing is right.",
  configSchema: { properties: { much: { type: "number", default: 1 } } },
  validateResource: [
    (args, report) => {
      if (args.type.endsWith("App")) args.notApplicable("not about Apps");
      report(`wrong: ${JSON.stringify(args.getConfig<{ much: number }>().much)}`);
    },
  ],
};
/** A policy about a whole stack, with a violation that is about no single resource. */
const foreignStack: StackValidationPolicy = {
  name: "foreign-stack",
  description: "No stack is right.",
  validateStack: ({ resources }, report) => {
    for (const { urn } of resources) report("wrong", urn);
    report("wrong as a whole");
  },
};

/** The policies with exceptions, by name, and the report of the policy `exceptions`. */
function pack(now = "2026-06-15T12:00:00Z", ...more: (ResourceValidationPolicy | StackValidationPolicy)[]) {
  const all = withExceptions([restartPolicy, databaseBackups, foreign, foreignStack, ...more], () => new Date(now));
  const find = (name: string) => {
    const found = all.find((policy) => policy.name === name);
    if (!found) throw new Error(`there is no policy ${name}`);
    return found;
  };
  return {
    all,
    resource: (name: string) => find(name) as ResourceValidationPolicy,
    stack: (name: string) => find(name) as StackValidationPolicy,
    used: async () => (await checkStack(find("exceptions") as StackValidationPolicy, [])).violations,
  };
}

const exception = (resource: string, until = "2026-06-30", reason = "TICKET-1"): Exception => ({
  resource,
  reason,
  until,
});
const config = (...exceptions: Exception[]) => ({ exceptions });
const urnOf = (type: string, name: string) => `urn:pulumi:dev::test::${typeOf(type)}::${name}`;
const machine = () => ({
  app: "shop",
  config: {
    image: "shop",
    restart: { policy: "no" as const },
    services: [{ protocol: "tcp" as const, internalPort: 1 }],
  },
});

describe("an exception", () => {
  const run = ({ resource }: ReturnType<typeof pack>, how: CheckOptions) =>
    check(resource("restart-policy"), "Machine", machine(), how);

  test.each([
    ["the name", "web"],
    ["a pattern of names", "w*"],
    ["the URN", urnOf("Machine", "web")],
    ["a pattern of URNs", "urn:*::web"],
    ["a pattern of URNs by type", "*:Machine::*"],
  ])("an exception applies to a resource by %s, and is reported", async (_, resource) => {
    const policies = pack();
    expect(await run(policies, { name: "web", config: config(exception("other"), exception(resource)) })).toEqual({
      violations: [],
    });
    expect(await policies.used()).toEqual(["web: restart-policy does not apply to it until 2026-06-30: TICKET-1"]);
  });

  test.each(["we", "eb", "Web", "web2", urnOf("Volume", "web"), "Machine::web"])(
    "an exception does not apply to others: %s",
    async (resource) => {
      const policies = pack();
      expect(await run(policies, { name: "web", config: config(exception(resource)) })).toEqual({
        violations: [expect.stringMatching(/^web: config\.restart\.policy is "no".*"always"\.$/)],
      });
      expect(await policies.used()).toEqual([]);
    },
  );

  test("an exception applies to a name with colons in it", async () => {
    expect(await run(pack(), { name: "a::web", config: config(exception("a::web")) })).toEqual({ violations: [] });
    expect(await run(pack(), { name: "a::web", config: config(exception("web")) })).toMatchObject({
      violations: [expect.any(String)],
    });
  });

  test("an exception applies through its last day (UTC), and is reported once it has ended", async () => {
    const how = { config: config(exception("it", "2026-06-15")) };
    for (const now of ["2026-06-15T00:00:00Z", "2026-06-15T23:59:59.999Z", "2026-06-14T23:00:00-02:00"])
      expect(await run(pack(now), how)).toEqual({ violations: [] });
    for (const now of ["2026-06-16T00:00:00Z", "2026-06-15T23:00:00-02:00", "2027-01-01T00:00:00Z"]) {
      const policies = pack(now);
      expect(await run(policies, how)).toEqual({
        violations: [
          expect.stringMatching(
            /^it: config\.restart\.policy is "no".*\nIts exception \(TICKET-1\) has ended on 2026-06-15\.$/s,
          ),
        ],
      });
      expect(await policies.used()).toEqual([]);
    }
  });

  test("an exception is the longest of several that apply, or the last one that ended", async () => {
    const several = config(
      exception("it", "2026-06-20", "b"),
      exception("i*", "2026-06-25", "c"),
      exception("*", "2026-06-10", "a"),
    );
    const policies = pack();
    expect(await run(policies, { config: several })).toEqual({ violations: [] });
    expect(await policies.used()).toEqual([expect.stringContaining("until 2026-06-25: c")]);
    expect((await run(pack("2026-07-01T00:00:00Z"), { config: several })).violations).toEqual([
      expect.stringContaining("(c) has ended on 2026-06-25"),
    ]);
  });

  describe("by a name that resources of several types have", () => {
    const both = async (policies: ReturnType<typeof pack>, ...types: ("Machine" | "Volume")[]) => {
      const said: Record<string, readonly string[]> = {};
      for (const type of types) {
        const how = { name: "web", config: config(...exceptions) };
        const inputs = type === "Machine" ? machine() : { app: "shop" };
        said[type] = (await check(policies.resource("foreign"), type, inputs as never, how)).violations;
      }
      return said;
    };
    let exceptions: Exception[];

    test.each([
      ["Machine", "Volume"],
      ["Volume", "Machine"],
    ] as const)(
      "an exception by a name that several types have applies to one type if it names that: %s first",
      async (...order) => {
        exceptions = [{ ...exception("web"), type: "Volume" }];
        const policies = pack();
        expect(await both(policies, ...order)).toEqual({
          Volume: [],
          Machine: ["web: wrong: 1\nAn exception has its name, but is for the type Volume; this is a Machine."],
        });
        expect(await policies.used()).toEqual(["web: foreign does not apply to it until 2026-06-30: TICKET-1"]);
      },
    );

    test.each([
      ["Machine", "Volume"],
      ["Volume", "Machine"],
    ] as const)(
      "an exception by a name that several types have applies to all without a type, and each report says so: %s first",
      async (...order) => {
        exceptions = [exception("web")];
        const policies = pack();
        expect(await both(policies, ...order)).toEqual({ Machine: [], Volume: [] });
        expect((await policies.used()).toSorted()).toEqual([
          'web: foreign does not apply to it until 2026-06-30: TICKET-1\nThe exception has no type, so it also applies to the Machine of this name. If it is for one of them, give it "type": "Volume" or "Machine".',
          'web: foreign does not apply to it until 2026-06-30: TICKET-1\nThe exception has no type, so it also applies to the Volume of this name. If it is for one of them, give it "type": "Machine" or "Volume".',
        ]);
      },
    );

    test("an exception by a name that several types have may be a pattern, which is meant for several", async () => {
      exceptions = [exception("w*")];
      const policies = pack();
      await both(policies, "Machine", "Volume");
      expect((await policies.used()).join("\n")).not.toContain("type");
    });

    test("an exception by a name that several types have may have the token of a type, of another provider for instance", async () => {
      exceptions = [{ ...exception("web"), type: typeOf("Volume") }];
      expect(await both(pack(), "Volume")).toEqual({ Volume: [] });
    });
  });

  test("an exception is reported only if it is needed", async () => {
    const policies = pack();
    const fine = { app: "shop", config: { image: "shop" } };
    expect(
      await check(policies.resource("restart-policy"), "Machine", fine, { config: config(exception("*")) }),
    ).toEqual({ violations: [] });
    expect(await policies.used()).toEqual([]);
  });

  test("an exception is reported once, though a preview and an update both need it, and once by policy and resource", async () => {
    const policies = pack();
    const how = { config: config(exception("*")) };
    for (let i = 0; i < 2; i++) {
      await run(policies, { ...how, name: "a" });
      await run(policies, { ...how, name: "b" });
      await check(policies.resource("foreign"), "Machine", machine(), { ...how, name: "a" });
    }
    expect(await policies.used()).toEqual([
      expect.stringContaining("a: restart-policy does not apply"),
      expect.stringContaining("b: restart-policy does not apply"),
      expect.stringContaining("a: foreign does not apply"),
    ]);
  });

  test("an exception prevents remediation of a resource until it ends", async () => {
    const how = { config: config(exception("it", "2026-06-15")) };
    await expect(repair(pack().resource("restart-policy"), "Machine", machine(), how)).rejects.toThrow(
      "there is an exception",
    );
    const repaired = { config: { restart: { policy: "on-failure" } } };
    const after = pack("2026-06-16T00:00:00Z").resource("restart-policy");
    expect(await repair(after, "Machine", machine(), how)).toMatchObject(repaired);
    expect(await repair(pack().resource("restart-policy"), "Machine", machine(), { ...how, name: "b" })).toMatchObject(
      repaired,
    );
  });
});

describe("a policy of another pack", () => {
  test("a policy of another pack accepts exceptions in addition to its own configuration", async () => {
    const policies = pack();
    const policy = policies.resource("foreign");
    expect(await check(policy, "Volume", { app: "a" }, { config: { much: 2 } })).toEqual({
      violations: ["it: wrong: 2"],
    });
    expect(await check(policy, "Volume", { app: "a" }, { config: config(exception("it")) })).toEqual({
      violations: [],
    });
    expect(await policies.used()).toEqual(["it: foreign does not apply to it until 2026-06-30: TICKET-1"]);
  });

  test("a policy of another pack remains not applicable", async () => {
    const said = await check(pack().resource("foreign"), "App", {}, { config: config(exception("*")) });
    expect(said).toEqual({ violations: [], notApplicable: "not about Apps" });
  });

  test("a policy of another pack is unchanged if it only remediates, or has a single check", async () => {
    const repairs: ResourceValidationPolicy = { name: "r", description: "R.", remediateResource: ({ props }) => props };
    const one: ResourceValidationPolicy = {
      name: "one",
      description: "One.",
      validateResource: (_, report) => report("wrong", "urn:pulumi:dev::test::a:b:C::named"),
    };
    const policies = pack(undefined, repairs, one);
    expect(policies.resource("r").validateResource).toBeUndefined();
    expect(await repair(policies.resource("r"), "App", { name: "a" })).toEqual({ name: "a" });
    expect(policies.resource("one").remediateResource).toBeUndefined();
    // It applies to the resource that the violation names.
    expect(await check(policies.resource("one"), "App", {}, { config: config(exception("it")) })).toEqual({
      violations: ["named: wrong"],
    });
    expect(await check(policies.resource("one"), "App", {}, { config: config(exception("named")) })).toEqual({
      violations: [],
    });
  });
});

describe("a stack policy", () => {
  const clusters = [
    { type: "PostgresCluster", name: "a", props: { name: "a" } },
    { type: "PostgresCluster", name: "b", props: { name: "b" } },
  ] as const;

  test("a stack policy accepts exceptions for the resource of a violation", async () => {
    const policies = pack();
    const policy = policies.stack("database-backups");
    expect(await checkStack(policy, clusters, { config: config(exception("a")) })).toEqual({
      violations: [expect.stringMatching(/^b: There is no backup/)],
    });
    expect(await policies.used()).toEqual(["a: database-backups does not apply to it until 2026-06-30: TICKET-1"]);
    expect(await checkStack(policy, clusters, { config: config(exception("a", "2026-06-01")) })).toEqual({
      violations: [
        expect.stringMatching(/^a: There is no backup.*\nIts exception \(TICKET-1\) has ended on 2026-06-01\.$/s),
        expect.stringMatching(/^b: There is no backup/),
      ],
    });
  });

  test("a stack policy accepts none for a violation without a resource", async () => {
    const policies = pack();
    const said = await checkStack(policies.stack("foreign-stack"), clusters, { config: config(exception("*")) });
    expect(said).toEqual({ violations: ["wrong as a whole"] });
    expect(await policies.used()).toHaveLength(2);
  });
});

describe("the pack", () => {
  test("the pack has the policies in order, and one that reports exceptions at the end", () => {
    expect(pack().all.map(({ name }) => name)).toEqual([
      "restart-policy",
      "database-backups",
      "foreign",
      "foreign-stack",
      "exceptions",
    ]);
  });

  test("the pack accepts exceptions in every policy's configuration, beside its settings", () => {
    for (const { name, configSchema } of pack().all.slice(0, -1))
      expect(configSchema?.properties, name).toHaveProperty("exceptions");
    expect(pack().resource("foreign").configSchema?.properties).toMatchObject({ much: { type: "number" } });
    expect(foreign.configSchema?.properties).not.toHaveProperty("exceptions");
  });

  test("the pack compares the last day with the default clock if none is given", async () => {
    const [policy] = withExceptions([foreign]) as [ResourceValidationPolicy];
    const volume = { app: "a" };
    expect(await check(policy, "Volume", volume, { config: config(exception("it", "9999-12-31")) })).toEqual({
      violations: [],
    });
    expect(
      (await check(policy, "Volume", volume, { config: config(exception("it", "2020-01-01")) })).violations,
    ).toEqual([expect.stringContaining("has ended on 2020-01-01")]);
  });
});
