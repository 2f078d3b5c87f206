import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isLike } from "../../../policy/core/wildcard.ts";

fc.configureGlobal({ seed: 1 });

const text = fc.string({ unit: "binary" });
const plain = text.map((text) => text.replaceAll("*", ""));

describe("isLike", () => {
  test.each([
    ["shop", "shop"],
    ["shop-web", "shop-*"],
    ["shop-", "shop-*"],
    ["a.b", "*.b"],
    ["a\nb", "a*b"],
    ["abcabc", "a*b*c"],
    ["", "*"],
    ["", ""],
    ["*", "**"],
  ])("%j matches %j", (text, pattern) => {
    expect(isLike(text, ["other", pattern])).toBe(true);
  });

  test.each([
    ["shop", "sho"],
    ["shop", "hop"],
    ["Shop", "shop"],
    ["axb", "a.b"],
    ["shop\n", "shop"],
    ["ab", "a*b*c"],
    ["aba", "ab*ba"],
    ["a", ""],
    ["a", "(a|b)"],
  ])("%j does not match %j", (text, pattern) => {
    expect(isLike(text, [pattern])).toBe(false);
  });

  test("an empty list of patterns matches nothing", () => {
    expect(isLike("", [])).toBe(false);
  });

  test("a text without a star matches only itself", () => {
    fc.assert(
      fc.property(plain, text, (pattern, text) => {
        expect(isLike(pattern, [pattern])).toBe(true);
        expect(isLike(text, [pattern])).toBe(text === pattern);
      }),
    );
  });

  test("a star matches any text, in any place", () => {
    fc.assert(
      fc.property(fc.array(plain, { minLength: 1, maxLength: 5 }), fc.array(text, { minLength: 5 }), (parts, fill) => {
        const filled = parts.map((part, i) => (i === 0 ? part : `${fill[i]}${part}`)).join("");
        expect(isLike(filled, [parts.join("*")])).toBe(true);
      }),
    );
  });

  test("a text with another beginning or end does not match", () => {
    fc.assert(
      fc.property(plain, plain, text, (begin, end, text) => {
        const isAlike = text.length >= begin.length + end.length && text.startsWith(begin) && text.endsWith(end);
        expect(isLike(text, [`${begin}*${end}`])).toBe(isAlike);
      }),
    );
  });

  test("one of several patterns is sufficient", () => {
    fc.assert(
      fc.property(text, fc.array(text), (text, patterns) => {
        expect(isLike(text, patterns)).toBe(patterns.some((pattern) => isLike(text, [pattern])));
      }),
    );
  });
});
