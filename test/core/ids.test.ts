import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fixed, pathId } from "../../provider/core/ids.ts";

const id = pathId("app", "volumeId");
const part = fc
  .string({ minLength: 1, maxLength: 40, unit: fc.constantFrom(..."abcdefz0189-_:.") })
  .filter((text) => text !== "." && text !== "..");

describe("ids (R5)", () => {
  test("a formatted id parses to the same parts", () => {
    fc.assert(
      fc.property(part, part, (app, volumeId) => {
        expect(id.parse(id.render({ app, volumeId }))).toEqual({ app, volumeId });
      }),
    );
  });

  test.each([
    "",
    "a",
    "a/",
    "/b",
    "a/b/c",
    "a/..",
    "./b",
    "a/%2e%2e",
    "a/b\u0000",
    "a/b?x",
    `a/${"b".repeat(1_000_000)}`,
  ])("the invalid id %# is refused", (text) => {
    expect(() => id.parse(text)).toThrow(/has the form <app>\/<volumeId>/);
  });

  test("an input that refers to another resource is compared by its bare id, in any spelling", () => {
    expect(pathId("app", "volume", "id").render({ app: "a", volume: "a/vol_1", id: "vs_1" })).toBe("a/vol_1/vs_1");
  });

  test("a kind prefix is part of an id, but not of any value", () => {
    const user = pathId("cluster", fixed("user"), "username");
    expect(user.render({ cluster: "c1", username: "anna" })).toBe("c1/user/anna");
    expect(user.parse("c1/user/anna")).toEqual({ cluster: "c1", username: "anna" });
    expect(() => user.parse("c1/database/anna")).toThrow(/has the form <cluster>\/user\/<username>/);
  });
});
