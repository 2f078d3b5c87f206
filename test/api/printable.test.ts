// F49: text from others cannot control a terminal, and secrets in it stay hidden although it is escaped and truncated.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MachinesError } from "../../provider/client/errors.ts";
import { mostQuoted, oneLine, printable, quotable } from "../../api/printable.ts";
import { hide, shortest } from "../../provider/core/redaction.ts";

const harmful = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: fc.constantFrom("\u001b[2J", "\u202e", "\u0007", "\n", "\ud83d", "a", "é", "\u{e0041}") }),
);

describe("F49: text from others", () => {
  test("text from others keeps no control or format character, and shows which were there", () => {
    fc.assert(
      fc.property(text, (foreign) => {
        expect(oneLine(foreign)).not.toMatch(harmful);
        expect(printable(foreign).replaceAll(/[\n\t]/g, "")).not.toMatch(harmful);
        expect(printable(printable(foreign))).toBe(printable(foreign));
      }),
    );
    expect(oneLine("\u001b[31mred\u001b[0m\r\nfake: line \u202e")).toBe(
      "\\u001b[31mred\\u001b[0m\\r\\nfake: line \\u202e",
    );
    expect(printable("naïve 日本語 🙂\n\tnext")).toBe("naïve 日本語 🙂\n\tnext");
  });

  test("text from others has the same meaning as before in JSON", () => {
    fc.assert(
      fc.property(fc.dictionary(text, text, { noNullPrototype: true }), (values) => {
        expect(JSON.parse(printable(JSON.stringify(values, null, 2)))).toEqual(values);
      }),
    );
  });

  test("text from others is quoted truncated, with its length", () => {
    fc.assert(
      fc.property(text, fc.nat(5), (foreign, times) => {
        expect(quotable(foreign.repeat(10 ** times % 3000)).length).toBeLessThan(mostQuoted + 40);
      }),
    );
    expect(quotable("x".repeat(3_000_000))).toBe(`${"x".repeat(mostQuoted)}… (3,000,000 characters)`);
    expect(quotable("short")).toBe("short");
  });

  test("text from others is escaped in the message of an error", () =>
    expect(new MachinesError("api", "said \u001b]0;title\u0007").message).toBe("said \\u001b]0;title\\u0007"));
});

describe("a secret in it", () => {
  const secret = fc.string({
    minLength: 12,
    maxLength: 60,
    unit: fc.constantFrom("a", "B", "\n", "\r", '"', "\\", "7"),
  });

  test("a secret in it is found even if its control characters are escaped", () => {
    fc.assert(
      fc.property(secret, (value) => {
        for (const shown of [value, oneLine(value), printable(value)])
          expect(hide([{ value, isCertain: true }], `before <${shown}> after`)).toBe("before <[secret]> after");
      }),
    );
  });

  test("a secret in it is found even if it was truncated", () => {
    fc.assert(
      fc.property(secret, fc.integer({ min: shortest, max: 10 }), (value, kept) => {
        const foreign = `${"-".repeat(mostQuoted - kept)}${value}${"-".repeat(mostQuoted)}`;
        expect(hide([{ value, isCertain: true }], `it said: ${quotable(foreign)}.`)).toContain(`-[secret]… (`);
      }),
    );
  });
});
