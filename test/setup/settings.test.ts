// The file with the settings of a server, which systemd reads.
import fc from "fast-check";
import { expect, test } from "vitest";
import { settingsHead, settingsIn, withSettings } from "../../service/setup/settings.ts";

const name = fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,20}$/);
// A value is one line.
const value = fc.string({ unit: fc.constantFrom(...` abc"'\\$%\`#=;:/,.-é日`) });

test("a value that is written is read as the same", () => {
  fc.assert(
    fc.property(fc.dictionary(name, value), (values) => {
      const wanted = new Map(Object.entries(values));
      const trimmed = new Map([...wanted].filter(([, one]) => one === one.trim()));
      const read = settingsIn(withSettings(settingsHead, trimmed));
      expect(read).toEqual(trimmed);
    }),
  );
});

test("what has the right value stays as it is, with its comments", () => {
  const text = `# mine\nA='x y'\nB="q\\"r"\n\nexport C=1\nA_LONG=1\n`;
  expect(settingsIn(text)).toEqual(
    new Map([
      ["A", "x y"],
      ["B", 'q"r'],
      ["A_LONG", "1"],
    ]),
  );
  expect(withSettings(text, settingsIn(text))).toBe(text);
  expect(withSettings(text, new Map([["B", "2"]]))).toBe(`# mine\nA='x y'\n\nexport C=1\nA_LONG=1\nB=2\n`);
});
