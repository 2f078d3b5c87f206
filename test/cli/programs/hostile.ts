// Programs whose texts are written to break out of them: control characters, line ends of every language, interpolation, quotes,
// comments and names of functions, in values, keys, names, titles and remarks.
import fc from "fast-check";
import { ignorable } from "../../../cli/organization/limits.ts";
import {
  literal,
  type Declaration,
  type Entry,
  type Expression,
  type Program,
} from "../../../cli/organization/program.ts";

const numbered = (...codes: readonly number[]): readonly string[] => codes.map((code) => String.fromCodePoint(code));
const range = (from: number, to: number): readonly string[] =>
  numbered(...Array.from({ length: to - from + 1 }, (_, i) => from + i));

/** All that some parser takes for the end of a line, an order of the terminal, or no character. */
const controls = [
  ...range(0, 0x1f),
  ...range(0x7f, 0x9f),
  ...numbered(0x2028, 0x2029, 0xfeff, 0xfffe, 0xffff, 0xfdd0, 0x1fffe, 0x10ffff, 0xad, 0xa0, 0x200d, 0xe0001, 0x1d173),
  ...range(0x202a, 0x202e),
  ...range(0x2066, 0x2069),
] as const;

const syntax = [
  ...[
    "${",
    "$",
    "$$",
    "$${",
    "$$${",
    "}",
    "{",
    "%{",
    "${pulumi.cwd}",
    "#{x}",
    "`",
    '"',
    "'",
    '"""',
    "'''",
    "\\",
    "\\n",
    "\\u0041",
  ],
  ...[
    "\\",
    "/*",
    "*/",
    "//",
    "#",
    " #",
    ": ",
    "- ",
    "? ",
    "<<",
    "&a",
    "*a",
    "!!str",
    "---",
    "...",
    "|",
    ">",
    "%YAML",
    "@",
    "=",
  ],
  ...[
    "true",
    "no",
    "~",
    "null",
    "0x1",
    "1e3",
    "1_0",
    ".inf",
    "2026-01-01",
    "12:30",
    "",
    " ",
    "\t",
    "a: b",
    "[a]",
    "{a}",
    "é",
    "e\u0301",
  ],
  ...[
    "\n",
    "\r\n",
    "\nresources:\n  x:\n",
    '")\nimport os',
    "\u0085evil: ${fn}",
    "\u2028- x",
    "__proto__",
    "constructor",
    "# coding: latin-1",
  ],
  ...["{name}", "\\N{DASH}", "%s", "\\x", "\ud83d\ude00", "日本語"],
] as const;

const wellFormed = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...controls) },
      { weight: 4, arbitrary: fc.constantFrom(...syntax) },
      { weight: 1, arbitrary: fc.string({ unit: "grapheme", maxLength: 4 }) },
      { weight: 1, arbitrary: fc.string({ unit: "grapheme-ascii", maxLength: 6 }) },
    ),
    { maxLength: 5 },
  )
  .map((parts) => parts.join(""))
  .map((text) => text.replaceAll(/\p{Cs}/gu, "?"));

/** Texts that a language may be unable to write. */
const anyText = fc.oneof(
  { weight: 30, arbitrary: wellFormed },
  { weight: 1, arbitrary: wellFormed.map((text) => `${text}\ud800`) },
  { weight: 1, arbitrary: wellFormed.map((text) => `\udc00${text}`) },
);

/**
 * JSON.parse of Node.js 24 may take an escaped key for one that it has seen and that begins the same way: after an object with the key
 * backslash, it can read "\u001a" as that key. Readers of programs answer in JSON, so these keys are not drawn.
 */
const beginsAnEscape = (text: string): boolean => /^\\(?:u[\da-f]{0,4})?$/i.test(text);

const keys = fc.oneof(
  { weight: 30, arbitrary: anyText.map((text) => (beginsAnEscape(text) ? `${text}-` : text)) },
  { weight: 1, arbitrary: fc.constantFrom("fn::readFile", "Fn::ToJSON", "x fn::a:b", "fn::fileAsset", "fn::other") },
);

const object = (entries: readonly Entry[]): Expression => ({ is: "object", entries });
const texts = (values: readonly string[]): Expression => ({ is: "list", items: values.map(literal) });
const map = (entries: readonly (readonly [string, Expression])[]): Expression => ({
  is: "map",
  // Keys of a map are unique.
  entries: [...new Map(entries)],
});

const lists = fc.array(anyText, { minLength: 1, maxLength: 3 });
const textMap = fc
  .array(fc.tuple(keys, anyText), { minLength: 1, maxLength: 4 })
  .map((entries) => map(entries.map(([key, value]) => [key, literal(value)] as const)));

const machine = fc
  .record({
    name: wellFormed,
    env: textMap,
    metadata: textMap,
    command: lists,
    path: anyText,
    contents: anyText,
    check: keys,
    header: anyText,
    values: lists,
    ignored: wellFormed,
    setting: fc.boolean(),
  })
  .map(({ name, env, metadata, command, path, contents, check, header, values, ignored, setting }): Declaration => ({
    ...{ key: "Machine", type: "Machine", id: name, name: literal(name) },
    inputs: [
      ["app", { is: "id", of: "App" }],
      ["name", literal(name)],
      [
        "config",
        object([
          ["image", { is: "setting", key: setting ? "image" : "secret" }],
          ["env", env],
          ["metadata", metadata],
          ["init", object([["cmd", texts(command)]])],
          [
            "files",
            {
              is: "list",
              items: [
                object([
                  ["guestPath", literal(path)],
                  ["rawValue", literal(contents)],
                ]),
              ],
            },
          ],
          [
            "checks",
            map([
              [
                check,
                object([
                  ["path", literal(path)],
                  [
                    "headers",
                    {
                      is: "list",
                      items: [
                        object([
                          ["name", literal(header)],
                          ["values", texts(values)],
                        ]),
                      ],
                    },
                  ],
                ]),
              ],
            ]),
          ],
        ]),
      ],
    ],
    ignoreChanges: [ignorable(["config", "env", ignored])],
  }));

const column = (name: string, before = "", after = ""): Expression => ({ is: "column", name, before, after });

/** Equal volumes with the Machines that mount them. */
const loop = fc
  .record({
    names: fc.uniqueArray(wellFormed, { minLength: 2, maxLength: 3 }),
    before: wellFormed,
    after: wellFormed,
    env: textMap,
  })
  .map(({ names, before, after, env }) => ({
    is: "loop" as const,
    keys: names.map((name) => [`Volume of row ${name}`, `Machine of row ${name}`]),
    rows: names.map((name): readonly Entry[] => [
      ["name", literal(name)],
      ["region", literal(`${name}!`)],
    ]),
    body: [
      {
        ...{ key: "Volume row", type: "Volume", id: "row", name: column("name", before, after), ignoreChanges: [] },
        inputs: [
          ["app", { is: "id", of: "App" }],
          ["region", column("region")],
        ] as const,
      },
      {
        ...{ key: "Machine row", type: "Machine", id: "row", name: column("name"), ignoreChanges: [] },
        inputs: [
          ["name", column("name")],
          [
            "config",
            object([
              ["env", env],
              ["mounts", { is: "list", items: [object([["volume", { is: "id", of: "Volume row" }]])] }],
            ]),
          ],
        ] as const,
      },
    ],
  }));

/** Programs in which every text may be hostile. */
export const hostilePrograms: fc.Arbitrary<Program> = fc
  .record({
    title: anyText,
    app: wellFormed,
    image: anyText,
    machines: fc.array(machine, { minLength: 1, maxLength: 3 }),
    rows: loop,
    remarks: fc.array(anyText, { maxLength: 3 }),
  })
  .map(({ title, app, image, machines, rows, remarks }) => ({
    settings: [
      { key: "image", isSecret: false, default: image },
      { key: "secret", isSecret: true },
    ],
    sections: [
      {
        title,
        blocks: [
          {
            is: "resource",
            resource: {
              ...{ key: "App", type: "App", id: app, name: literal(app), ignoreChanges: [] },
              inputs: [["name", literal(app)]],
            },
          },
          ...machines.map((resource, i) => ({
            is: "resource" as const,
            resource: { ...resource, key: `Machine ${i}` },
          })),
          rows,
        ],
      },
    ],
    remarks,
  }));

/** Every text that a language must be able to write. */
export const hostileTexts = wellFormed;
