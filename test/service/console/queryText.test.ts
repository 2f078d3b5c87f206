// What the audit keeps of a query: its text without the values in it.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { withoutValues } from "../../../service/console/queryText.ts";

describe("the text of a query without its values", () => {
  test.each([
    ["SELECT * FROM t WHERE a = 'hush' AND b = 12.5e-3", "SELECT * FROM t WHERE a = $1 AND b = $2"],
    ["SELECT 'it''s hush', E'it\\'s hush', N'hush', X'FF', U&'hush'", "SELECT $1, $2, $3, $4, $5"],
    ["SELECT $$hush$$, $tag$hush $$ hush$tag$, $1", "SELECT $1, $2, $3"],
    ["DO $do$ BEGIN PERFORM 'hush'; END $do$", "DO $1"],
    [
      'SELECT "a column", t1.x2 -- hush\nFROM t1 /* hush /* hush */ hush */ LIMIT 5',
      'SELECT "a column", t1.x2 FROM t1 LIMIT $1',
    ],
    ["SELECT '--', 1 FROM größe", "SELECT $1, $2 FROM größe"],
    ["SELECT 0x1F, .5, 1_000, 1.e5, a.b", "SELECT $1, $2, $3, $4, a.b"],
    ["ALTER ROLE app PASSWORD 'hush'", "ALTER ROLE app PASSWORD $1"],
    ["ALTER ROLE app PASSWORD hush VALID UNTIL 'x'", "ALTER ROLE app PASSWORD $1 VALID UNTIL $2"],
    ['ALTER ROLE app PASSWORD "hush"', "ALTER ROLE app PASSWORD $1"],
    ["SET app.key = hush", "SET app.key = …"],
    ["SET app.key TO hush, hush", "SET app.key TO …"],
    ["ALTER ROLE app SET app.key TO hush", "ALTER ROLE app SET app.key TO …"],
    ["UPDATE t SET a = b WHERE c = 'hush'", "UPDATE t SET a = b WHERE c = $1"],
    ["SELECT ‘hush’", "SELECT …"],
    ["SELECT 'hush", "SELECT $1"],
    ["SELECT E'hush\\", "SELECT $1"],
    ["SELECT $$hush", "SELECT $1"],
    ["/* hush", ""],
    ["", ""],
  ])("%s", (sql, kept) => {
    expect(withoutValues(sql)).toBe(kept);
  });

  test("a value is never kept, whatever stands in it and beside it", () => {
    const noise = fc.string({ unit: fc.constantFrom(..."aE'\"$-/*\\ \n;é") });
    const quote = (text: string) => [
      `'${text.replaceAll("'", "''")}'`,
      `E'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`,
      `$q$${text.replaceAll("$", "")}$q$`,
    ];
    fc.assert(
      fc.property(noise, noise, fc.nat(2), (before, after, kind) => {
        const value = quote(`${before}hush${after}`)[kind] ?? "";
        const kept = withoutValues(`SELECT a, ${value} FROM b WHERE c <> ${value} ORDER BY d`);
        expect(kept).toBe("SELECT a, $1 FROM b WHERE c <> $2 ORDER BY d");
      }),
    );
  });

  test("any text has an end, also one that is no SQL", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => void withoutValues(text)));
    // With a text this long, a pattern that looks at each character more than a few times does not end within the test's limit.
    for (const part of ["'", "$$ $", "/*", '"', "$a", "1e", "-", "e'\\"]) {
      expect(withoutValues(part.repeat(1_000_000 / part.length)).length).toBeLessThan(1_000_001);
    }
  });
});
