// Removing the secrets of a request from messages about it.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { withoutSecrets } from "../../provider/plugin/redaction.ts";
import { Output, secret, toStruct, type Properties } from "../support/properties.ts";

fc.configureGlobal({ seed: 1 });

describe("messages", () => {
  const cleaned = (properties: Properties, text: string): string => withoutSecrets([toStruct(properties)], text);

  test("contain no secret of a request, however it is quoted", () => {
    const hidden = 'p"a\\ss\nword';
    const properties = { a: { b: [secret({ c: hidden })] } };
    for (const text of [`got ${hidden}`, `got ${JSON.stringify(hidden)}`, `got ${JSON.stringify({ x: hidden })}`])
      expect(cleaned(properties, text)).not.toMatch(/ss|word/);
    fc.assert(
      fc.property(fc.string({ minLength: 3, unit: "binary" }), fc.string(), fc.string(), (value, before, after) => {
        fc.pre(!before.includes(value) && !"[secret]".includes(value));
        expect(cleaned({ a: secret(value) }, before + value + after)).not.toContain(value);
      }),
    );
  });

  test("replace overlapping secrets once, by the longest", () => {
    expect(cleaned({ a: secret("abc"), b: secret("abcdef") }, "got abcdef and abc")).toBe("got [secret] and [secret]");
  });

  test("contain no secret number, but keep longer numbers that contain it", () => {
    expect(cleaned({ a: secret(42) }, "got 42, not 420, 1.42 or 4.2; 42.")).toBe(
      "got [secret], not 420, 1.42 or 4.2; [secret].",
    );
    expect(cleaned({ a: secret(1.5) }, "got 1.5, not 1x5")).toBe("got [secret], not 1x5");
  });

  test("keep their letters when a secret has only one or two, but do not quote it", () => {
    expect(cleaned({ a: secret("a") }, 'a map was "a"')).toBe("a map was [secret]");
    expect(cleaned({ a: secret(""), b: secret(true) }, "true, really")).toBe("true, really");
  });

  test("are unchanged without secrets", () => {
    expect(cleaned({ a: "visible", b: new Output("visible", { dependencies: ["u"] }) }, "visible")).toBe("visible");
  });
});
