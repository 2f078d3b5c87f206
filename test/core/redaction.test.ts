// Removing secrets from messages.
import { describe, expect, test } from "vitest";
import { hide, withheld } from "../../provider/core/redaction.ts";
import { spellings } from "../../provider/client/spellings.ts";
import { resources } from "../../provider/registry.ts";

const of = (type: string, inputs: Record<string, unknown>) =>
  withheld(resources[type]?.inputFields ?? {}, inputs)
    .map(String)
    .sort();

describe("what inputs withhold", () => {
  test("is what the schema declares secret or possibly secret", () => {
    expect(of("Secret", { app: "shop", name: "A", value: "hidden" })).toEqual(["hidden"]);
    expect(of("AppSecrets", { app: "shop", values: { A: "one", B: "two" } })).toEqual(["one", "two"]);
    const config = {
      image: "shop:1",
      env: { A: "hidden" },
      files: [{ guestPath: "/a", rawValue: "aGk=" }],
      checks: { up: { type: "http", path: "/", headers: [{ name: "X", values: ["private"] }] } },
    };
    expect(of("Machine", { app: "shop", region: "ams", config })).toEqual(["aGk=", "hidden", "private"]);
  });

  test("is nothing if the schema does not know the property", () =>
    expect(of("Secret", { values: "visible", __context: { owner: "o" } })).toEqual([]));
});

test("a text too short to be distinguished from words is removed only where it is quoted", () => {
  expect(hide(["web"], 'Machine web-1: "web" is not allowed', 6)).toBe("Machine web-1: [secret] is not allowed");
  expect(hide(["website"], 'Machine website-1: "website" is not allowed', 6)).toBe(
    "Machine [secret]-1: [secret] is not allowed",
  );
});

test.each(["", "a", "ab", "abc"])("a token is recognised in any encoding, after %j", (before) => {
  const token = "fm2_a token+with/more?~ÿ";
  const bytes = Buffer.from(`${before}${token} and more`);
  const clean = (text: string) => spellings(token).reduce((cleaned, one) => cleaned.replaceAll(one, "[token]"), text);
  for (const quoted of [
    `${before}${token}`,
    encodeURIComponent(`${before}${token}`),
    bytes.toString("hex"),
    bytes.toString("base64"),
    bytes.toString("base64url"),
    Buffer.from(`${before}${token}`).toString("base64"),
  ]) {
    expect(clean(`it said ${quoted}.`)).toContain("[token]");
  }
  expect(clean(Buffer.from(`${before}${token}`).toString("base64")).length).toBeLessThan(15);
});

test("an empty token and short words of a short token remove nothing", () => {
  expect(spellings("")).toEqual([]);
  expect(spellings("abc")).toEqual(["abc"]);
});
