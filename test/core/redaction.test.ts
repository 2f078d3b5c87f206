// What must not be quoted, taken out of what is said.
import { describe, expect, test } from "vitest";
import { hide, withheld } from "../../provider/core/redaction.ts";
import { spellings } from "../../provider/client/spellings.ts";
import { resources } from "../../provider/registry.ts";

const of = (type: string, inputs: Record<string, unknown>) =>
  withheld(resources[type]?.inputFields ?? {}, inputs)
    .map(String)
    .sort();

describe("what inputs withhold", () => {
  test("is what the schema calls secret, or says that it may be", () => {
    expect(of("Secret", { app: "shop", name: "A", value: "hidden" })).toEqual(["hidden"]);
    expect(of("AppSecrets", { app: "shop", values: { A: "one", B: "two" } })).toEqual(["one", "two"]);
    const config = {
      image: "shop:1",
      env: { A: "hidden" },
      files: [{ guestPath: "/a", rawValue: "aGk=" }],
      checks: { up: { type: "http", path: "/", headers: [{ name: "X", values: ["told"] }] } },
    };
    expect(of("Machine", { app: "shop", region: "ams", config })).toEqual(["aGk=", "hidden", "told"]);
  });

  test("is nothing where the schema knows no such property", () =>
    expect(of("Secret", { values: "visible", __context: { owner: "o" } })).toEqual([]));
});

test("a text too short to be told from other words goes only where it is quoted", () => {
  expect(hide(["web"], 'Machine web-1: "web" is not allowed', 6)).toBe("Machine web-1: [secret] is not allowed");
  expect(hide(["website"], 'Machine website-1: "website" is not allowed', 6)).toBe(
    "Machine [secret]-1: [secret] is not allowed",
  );
});

test.each(["", "a", "ab", "abc"])("a token is known again in whatever it is encoded with, after %j", (before) => {
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

test("nothing is made of no token, and no short word of a short one", () => {
  expect(spellings("")).toEqual([]);
  expect(spellings("abc")).toEqual(["abc"]);
});
