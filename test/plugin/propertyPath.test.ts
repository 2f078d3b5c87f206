// Property paths in the engine's format.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { pathText } from "../../provider/core/values.ts";
import { parsePath } from "../../provider/plugin/propertyPath.ts";

fc.configureGlobal({ seed: 1 });

describe("property paths", () => {
  test("a formatted path parses to the same parts", () => {
    const part = fc.oneof(
      fc.string({ minLength: 1, maxLength: 6 }).filter((name) => !name.endsWith("\\")),
      fc.nat(20),
    );
    fc.assert(
      fc.property(fc.tuple(fc.stringMatching(/^[a-z]\w*$/), fc.array(part, { maxLength: 4 })), ([first, rest]) => {
        expect(parsePath(pathText([first, ...rest]))).toEqual([first, ...rest]);
      }),
      { numRuns: 500 },
    );
  });

  test.each<[string, (string | number)[]]>([
    ["root", ["root"]],
    ["root.nested", ["root", "nested"]],
    ['root["nested"]', ["root", "nested"]],
    ['root["double"].nest', ["root", "double", "nest"]],
    ["root.array[100]", ["root", "array", 100]],
    ["root.array[0][1].nested", ["root", "array", 0, 1, "nested"]],
    ['root["key with \\"escaped\\" quotes"]', ["root", 'key with "escaped" quotes']],
    ['root["key with a ."]', ["root", "key with a ."]],
    ['["root key with \\"escaped\\" quotes"].nested', ['root key with "escaped" quotes', "nested"]],
    ['["root key with a ."][100]', ["root key with a .", 100]],
    ["root.array[*].field", ["root", "array", "*", "field"]],
    ['root.array["*"].field', ["root", "array", "*", "field"]],
    ["foo-bar", ["foo-bar"]],
    ["root.[0]", ["root", 0]],
  ])("the engine's example %s is parsed as the engine does", (text, path) => {
    expect(parsePath(text)).toEqual(path);
  });
});
