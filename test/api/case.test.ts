import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { camelKey, camelSchema, fromWire, toWire } from "../../api/case.ts";
import { machineConfig } from "../../api/machineConfig.ts";
import { fieldOf, formatDuration, parseDuration, tidy } from "../../api/schema.ts";
import { arbitraryOf } from "../support/arbitrary.ts";

const config = arbitraryOf(fieldOf(machineConfig));

describe("case conversion", () => {
  test("converting there and back returns every configuration unchanged", () => {
    fc.assert(
      fc.property(config, (wire) => {
        expect(toWire(machineConfig, fromWire(machineConfig, wire))).toEqual(wire);
      }),
    );
  });

  test("the camelCase schema accepts whatever the wire's schema accepts", () => {
    const camel = camelSchema(machineConfig);
    fc.assert(
      fc.property(config, (wire) => {
        expect(camel.safeParse(fromWire(machineConfig, wire)).success).toBe(true);
      }),
    );
  });

  test("keys of maps belong to the user and are not converted", () => {
    const wire = {
      image: "x",
      env: { SNAKE_CASE: "1", a_b: "2" },
      metadata: { my_key: "v" },
      checks: { my_check: { grace_period: "1s" } },
    };
    expect(fromWire(machineConfig, wire)).toEqual({
      image: "x",
      env: { SNAKE_CASE: "1", a_b: "2" },
      metadata: { my_key: "v" },
      checks: { my_check: { gracePeriod: "1s" } },
    });
  });

  test("fields that the schema does not know keep their names", () => {
    expect(fromWire(machineConfig, { image: "x", new_thing: { in_it: 1 }, guest: { odd_one: 2 } })).toEqual({
      image: "x",
      new_thing: { in_it: 1 },
      guest: { odd_one: 2 },
    });
  });

  test("a map may have a key called __proto__", () => {
    const wire = JSON.parse('{"image":"x","env":{"__proto__":"kept"}}') as unknown;
    expect(JSON.stringify(fromWire(machineConfig, wire))).toBe('{"image":"x","env":{"__proto__":"kept"}}');
  });

  test.each([
    ["size_gb", "sizeGb"],
    ["tls_options", "tlsOptions"],
    ["h2_backend", "h2Backend"],
    ["image", "image"],
  ])("%s is %s", (wire, camel) => expect(camelKey(wire)).toBe(camel));
});

describe("tidy", () => {
  test("a null that stands for an omitted field is dropped", () => {
    expect(tidy(machineConfig, { image: "x", env: null, init: { exec: null, tty: true } }, "answer").value).toEqual({
      image: "x",
      init: { tty: true },
    });
  });

  test("an empty text is dropped from a request where it stands for an omitted field, and from no answer", () => {
    const config = {
      image: "",
      size: "",
      guest: { cpu_kind: "" },
      env: { EMPTY: "" },
      init: { cmd: [""] },
      files: [{ guest_path: "/empty", raw_value: "", secret_name: "" }],
    };
    expect(tidy(machineConfig, config, "answer").value).toEqual(config);
    expect(tidy(machineConfig, config, "request").value).toEqual({
      image: "",
      guest: {},
      env: { EMPTY: "" },
      init: { cmd: [""] },
      files: [{ guest_path: "/empty", raw_value: "" }],
    });
  });

  test("a duration sent as nanoseconds is spelled out", () => {
    expect(tidy(machineConfig, { image: "x", stop_config: { timeout: 90e9 } }, "answer").value).toEqual({
      image: "x",
      stop_config: { timeout: "1m30s" },
    });
  });

  test("unknown fields are kept and listed", () => {
    const config = { image: "x", new_field: 1, services: [{ protocol: "tcp", internal_port: 1, odd: true }] };
    const { value, unknown } = tidy(machineConfig, config, "answer");
    expect(unknown).toEqual(["new_field", "services[0].odd"]);
    expect(value).toEqual(config);
  });
});

describe("durations", () => {
  test("a formatted duration parses to the same time", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10 ** 7 }), (milliseconds) => {
        expect(parseDuration(formatDuration(milliseconds * 1e6))).toBe(milliseconds * 1e6);
      }),
    );
  });

  test.each(["", "15", "1.5.5s", "s", "-1s", "1d"])("%j is not a duration", (text) =>
    expect(parseDuration(text)).toBeUndefined(),
  );
});
