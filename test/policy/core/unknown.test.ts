import { describe, expect, test } from "vitest";
import { pathText } from "../../../policy/core/unknown.ts";
import { validateMachine, validateVolume } from "../../../policy/validators.ts";
import type { Check } from "../../../policy/index.ts";
import { check, unknownList, unknownText } from "../../support/policies.ts";

/** A policy with only a check. */
const policy = (of: Check<"Machine">) =>
  ({ name: "test", description: "A test.", validateResource: validateMachine(of) }) as const;
const run = (of: Check<"Machine">, config: object) =>
  check(policy(of), "Machine", { app: "shop", config: { image: "shop", ...config } });

describe("an unknown value", () => {
  test("an unknown value ends the check that reads it, and is reported", async () => {
    const said = await run(
      ({ config }, _, report) => {
        report("before");
        if (config.image === "shop") report("never");
        report("never");
      },
      { image: unknownText },
    );
    expect(said).toEqual({
      violations: ["before"],
      unknown:
        "config.image is known only at the update, and is checked then, before the Machine is created or changed",
    });
  });

  test("an unknown value ends only the part of the check that the policy separates", async () => {
    const said = await run(
      ({ config, region }, { whenKnown }, report) => {
        whenKnown(() => report(`never ${config.image}`));
        whenKnown(() => report(`never ${config.schedule}`));
        whenKnown(() => report(`region ${region}`));
        report("after");
      },
      { image: unknownText, schedule: unknownText },
    );
    expect(said).toEqual({
      violations: ["region undefined", "after"],
      unknown:
        "config.image and config.schedule are known only at the update, and are checked then, before the Machine is created or changed",
    });
  });

  test("an unknown value ends the check of one list item or one map value", async () => {
    const services = [
      { protocol: "tcp", internalPort: 1 },
      unknownText,
      { protocol: "tcp", internalPort: unknownText },
      { protocol: "tcp", internalPort: 4 },
    ];
    const said = await run(
      ({ config }, { each }, report) => {
        each(config.services, ({ internalPort }, i) => report(`${i}: ${internalPort}`));
        each(config.env, (value, name) => report(`${name}: ${value}`));
      },
      { services, env: { A: unknownText, B: "b" } },
    );
    expect(said).toEqual({
      violations: ["0: 1", "3: 4", "B: b"],
      unknown: expect.stringMatching(
        /^config\.services\[1\] and config\.services\[2\]\.internalPort and config\.env\.A are known only/,
      ),
    });
  });

  test("an unknown value is reported once, however often it is read", async () => {
    const said = await run(
      ({ config }, { whenKnown }, report) => {
        for (let i = 0; i < 3; i++) whenKnown(() => report(config.image));
      },
      { image: unknownText },
    );
    expect(said.unknown).toMatch(/^config\.image is known only/);
  });

  test("an unknown value may be a whole list", async () => {
    const said = await run(({ config }, { each }, report) => each(config.services, () => report("never")), {
      services: unknownList,
    });
    expect(said).toEqual({ violations: [], unknown: expect.stringMatching(/^config\.services is known only/) });
  });

  test("an unknown value may be read after an await", async () => {
    const said = await run(
      async ({ config }, _, report) => {
        await Promise.resolve();
        report(config.image);
      },
      { image: unknownText },
    );
    expect(said).toEqual({ violations: [], unknown: expect.stringMatching(/^config\.image is known only/) });
  });
});

describe("a check", () => {
  test("a check of a missing list or map does nothing", async () => {
    const said = await run(({ config }, { each }, report) => {
      each(config.services, () => report("never"));
      each(config.env, () => report("never"));
      each(null as { readonly [key: string]: string } | null, () => report("never"));
    }, {});
    expect(said).toEqual({ violations: [] });
  });

  test("a check fails with its own errors, which do not concern unknown values", async () => {
    const fails: Check<"Machine"> = (_, { whenKnown }) => whenKnown(() => JSON.parse("{"));
    await expect(run(fails, {})).rejects.toThrow(SyntaxError);
    await expect(
      run(({ config }, { each }) => each(config.env, () => JSON.parse("{")), { env: { A: "" } }),
    ).rejects.toThrow(SyntaxError);
  });

  test("a check applies to one type of resource, in both bindings", async () => {
    const volumes = {
      name: "t",
      description: "A test.",
      validateResource: validateVolume((_, __, report) => report("a")),
    };
    for (const binding of ["pulumi-machines", "pulumi-machines-plugin"] as const) {
      expect(await check(volumes, "Volume", { app: "shop" }, { binding })).toEqual({ violations: ["a"] });
      expect(await check(volumes, "App", {}, { binding })).toEqual({
        violations: [],
        notApplicable: "it is about each Volume",
      });
    }
  });
});

test.each([
  [["config", "services", "0", "ports"], "config.services[0].ports"],
  [["config", "services", 12], "config.services[12]"],
  [["fallbackRegions", "1"], "fallbackRegions[1]"],
  [["region"], "region"],
  [[], ""],
])("a path %j is formatted as %s", (path, text) => {
  expect(pathText(path)).toBe(text);
});
