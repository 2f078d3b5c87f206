// What must not be quoted, taken out of what is said.
import { describe, expect, test } from "vitest";
import { hide, withheld } from "../../provider/core/redaction.ts";
import { resources } from "../../provider/resources/index.ts";

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
