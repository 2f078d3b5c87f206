// Generated programs, read back by the parsers of their languages: what others wrote stays a text, and stays the same text.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { define, isObject } from "../../../api/schema.ts";
import { oneLine, unprintable } from "../../../api/printable.ts";
import { languages, type LanguageName } from "../../../cli/organization/languages.ts";
import { go } from "../../../cli/organization/languages/go.ts";
import { inGo, inPython, inTypeScript } from "../../../cli/organization/languages/literals.ts";
import { pcl } from "../../../cli/organization/languages/pcl.ts";
import { yaml } from "../../../cli/organization/languages/yaml.ts";
import { limitsOf, withinLimits } from "../../../cli/organization/limits.ts";
import { snakeCase } from "../../../cli/organization/names.ts";
import {
  declarationsIn,
  literal,
  textOf,
  type Entry,
  type Expression,
  type Program,
} from "../../../cli/organization/program.ts";
import { isThorough } from "../../support/extent.mts";
import { thoroughTest } from "../../support/thorough.ts";
import { hostilePrograms, hostileTexts } from "./hostile.ts";
import {
  goLiterals,
  goReader,
  pythonLiterals,
  pulumiReader,
  pythonReader,
  typescriptLiterals,
  typescriptReader,
  type Declared,
  type LiteralReader,
  type Reader,
} from "./readers.ts";

/** A program has about forty texts. */
const [programs, texts] = isThorough ? [100, 2000] : [15, 300];

const all = Object.keys(languages) as LanguageName[];

/** How a language spells the names of properties. */
const spellings: Readonly<Record<LanguageName, (property: string) => string>> = {
  typescript: (property) => property,
  python: snakeCase,
  go: (property) => property.slice(0, 1).toUpperCase() + property.slice(1),
  yaml: (property) => property,
};

/** What the engine would receive from a program. */
function expectedOf(program: Program, spell: (property: string) => string): readonly Declared[] {
  const declared = program.sections.flatMap(({ blocks }) => blocks.flatMap(declarationsIn));
  const named = new Map(declared.map(({ key, type, name }) => [key, `${type} ${textOf(name)}`]));
  const objectOf = (entries: readonly Entry[], of: (name: string) => string): Record<string, unknown> => {
    const out: Record<string, unknown> = {};
    for (const [name, value] of entries) define(out, of(name), valueOf(value));
    return out;
  };
  const valueOf = (value: Expression): unknown => {
    switch (value.is) {
      case "literal":
        return value.value;
      case "list":
        return value.items.map(valueOf);
      case "object":
        return objectOf(value.entries, spell);
      case "map":
        return objectOf(value.entries, (name) => name);
      case "id":
        return { id: named.get(value.of) };
      case "setting": {
        const setting = program.settings.find(({ key }) => key === value.key);
        return (setting?.isSecret === false ? setting.default : undefined) ?? { setting: value.key };
      }
      case "column":
        throw new Error("every row is written out");
    }
  };
  return declared.map(({ type, name, inputs, ignoreChanges }) => ({
    ...{ type, name: textOf(name), ignoreChanges },
    properties: objectOf(inputs, spell),
  }));
}

/** A value as a text that does not depend on the order of keys. */
const canonical = (value: unknown): string =>
  Array.isArray(value)
    ? `[${value.map(canonical).join()}]`
    : isObject(value)
      ? `{${Object.keys(value)
          .sort()
          .map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`)
          .join()}}`
      : JSON.stringify(value);

const readerOf: Readonly<Record<LanguageName, () => Promise<Reader | undefined> | Reader | undefined>> = {
  typescript: () => typescriptReader,
  python: pythonReader,
  go: () => goReader("go"),
  yaml: () => goReader("yaml"),
};

/** A text that is required, in the form that PCL can write. */
const composed = (value: Expression): Expression =>
  value.is === "literal" && typeof value.value === "string" ? literal(value.value.normalize("NFC")) : value;

/** The program for resources that do not exist yet: they ignore no changes, and their names are refused if PCL cannot write them. */
const asNew = (program: Program): Program => ({
  ...program,
  sections: program.sections.map(({ title, blocks }) => ({
    title,
    blocks: blocks.flatMap(declarationsIn).map((resource) => ({
      is: "resource",
      resource: {
        ...resource,
        name: composed(resource.name),
        inputs: resource.inputs.map(([name, value]) => [name, composed(value)] as const),
        ignoreChanges: [],
      },
    })),
  })),
});

const writerOf = (language: LanguageName) => (program: Program) =>
  // The reader has the formatter.
  language === "go" ? go(program) : languages[language].program(program, "plugin");

/** Finds a program that is read as something else than what was written. The parser starts once for all. */
function firstChanged(
  read: Reader,
  written: readonly Program[],
  write: (program: Program) => string,
  spell: (property: string) => string,
): string | undefined {
  const sources = written.map(write);
  for (const [i, { resources, error }] of read(sources).entries()) {
    const program = written[i];
    if (program === undefined) return "an answer too many";
    if (error !== undefined) return `${error}\n${sources[i] ?? ""}`;
    const expected = expectedOf(program, spell);
    const lists = [resources ?? [], expected].map((list) => list.map(canonical).sort());
    const at = lists[1]?.findIndex((one, j) => one !== lists[0]?.[j]) ?? -1;
    if (at >= 0 || lists[0]?.length !== expected.length)
      return `read    ${lists[0]?.[at] ?? ""}\nwritten ${lists[1]?.[at] ?? ""}\n${sources[i] ?? ""}`;
  }
  return undefined;
}

describe("F57 a program with hostile texts everywhere", () => {
  test.each(all)("declares in %s exactly what was written", async (language) => {
    const read = await readerOf[language]();
    if (read === undefined) return;
    const { limits } = languages[language];
    fc.assert(
      fc.property(fc.array(hostilePrograms, { minLength: programs, maxLength: programs }), (drawn) => {
        const fitting = drawn.map((program) => withinLimits(program, limits, { exists: true }));
        expect(firstChanged(read, fitting, writerOf(language), spellings[language])).toBe(undefined);
        const sources = fitting.map(writerOf(language));
        for (const [i, { remarks }] of fitting.entries()) {
          const source = sources[i];
          // What a reader of the program does not see is not in it as it is.
          expect(source?.replaceAll(/[\n\t]/g, "")).not.toMatch(unprintable);
          for (const remark of remarks) expect(source).toContain(oneLine(remark.replaceAll(/[ \t\r\n]+/g, " ")));
        }
      }),
      { numRuns: 1, endOnFailure: true },
    );
  });

  thoroughTest("declares in YAML what was written, as the code of Pulumi's language host reads it", async () => {
    const read = await pulumiReader("yaml");
    if (read === undefined) return;
    fc.assert(
      fc.property(fc.array(hostilePrograms, { minLength: programs, maxLength: programs }), (drawn) => {
        const fitting = drawn.map((program) => withinLimits(program, limitsOf.yaml, { exists: true }));
        expect(firstChanged(read, fitting, yaml, spellings.yaml)).toBe(undefined);
      }),
      { numRuns: 1, endOnFailure: true },
    );
  });

  thoroughTest("declares in PCL what was written, as the parser of Pulumi's converters reads it", async () => {
    const read = await pulumiReader("pcl");
    if (read === undefined) return;
    fc.assert(
      fc.property(fc.array(hostilePrograms, { minLength: programs, maxLength: programs }), (drawn) => {
        const fitting = drawn.map((program) => withinLimits(asNew(program), limitsOf.pcl, { exists: false }));
        expect(firstChanged(read, fitting, pcl, spellings.yaml)).toBe(undefined);
      }),
      { numRuns: 1, endOnFailure: true },
    );
  });

  test("each hostile text is in the program or reported as left out, and its changes are then ignored", () => {
    const resourcesOf = ({ sections }: Program) =>
      sections.flatMap(({ blocks }) =>
        blocks.flatMap((block) => (block.is === "loop" ? block.body : [block.resource])),
      );
    fc.assert(
      fc.property(hostilePrograms, fc.constantFrom(...all), (program, language) => {
        const fitting = withinLimits(program, languages[language].limits, { exists: true });
        const remarks = fitting.remarks.slice(program.remarks.length);
        const ignored = new Set<string>();
        for (const [i, after] of resourcesOf(fitting).entries()) {
          const before = resourcesOf(program)[i];
          const more = after.ignoreChanges.filter((path) => !before?.ignoreChanges.includes(path));
          for (const path of more) ignored.add(path);
          const isWhole = canonical(before?.inputs) === canonical(after.inputs);
          // What is left out may already be ignored for another reason.
          if (isWhole) expect(more).toEqual([]);
          else expect(remarks.some((one) => one.includes(" is left out, because "))).toBe(true);
        }
        for (const path of ignored)
          expect(remarks.some((one) => one.endsWith(`. The program ignores changes of ${path}.`))).toBe(true);
      }),
      { numRuns: 20 * programs },
    );
  });

  test("a program with hostile texts everywhere leaves out what is around a text, if the program would mean something else without that text", () => {
    const half = literal("a\ud800");
    const machine = (config: readonly Entry[]): Program => ({
      settings: [],
      sections: [
        {
          title: "App shop",
          blocks: [
            {
              is: "resource",
              resource: {
                ...{ key: "Machine shop/1", type: "Machine", id: "shop/1", name: literal("web"), ignoreChanges: [] },
                inputs: [["config", { is: "object", entries: config }]],
              },
            },
          ],
        },
      ],
      remarks: [],
    });
    const fitted = (config: readonly Entry[]) => {
      const { sections, remarks } = withinLimits(machine(config), limitsOf.all, { exists: true });
      const [resource] = sections.flatMap(({ blocks }) => blocks.flatMap(declarationsIn));
      return [resource?.inputs, resource?.ignoreChanges, remarks];
    };
    const because = "because Pulumi cannot carry half of a surrogate pair";
    const empty = [["config", { is: "object", entries: [] }]];
    const cmd: Expression = { is: "list", items: [literal("echo"), half] };
    expect(fitted([["init", { is: "object", entries: [["cmd", cmd]] }]])).toEqual([
      [["config", { is: "object", entries: [["init", { is: "object", entries: [] }]] }]],
      ["config.init.cmd"],
      [`Machine shop/1: config.init.cmd is left out, ${because}. The program ignores changes of config.init.cmd.`],
    ]);
    const file: Expression = { is: "object", entries: [["guestPath", half]] };
    expect(fitted([["files", { is: "list", items: [file] }]])).toEqual([
      empty,
      ["config.files"],
      [`Machine shop/1: config.files is left out, ${because}. The program ignores changes of config.files.`],
    ]);
    // The path of the key itself cannot be written either.
    expect(
      fitted([
        [
          "env",
          {
            is: "map",
            entries: [
              ["a\ud800", literal("1")],
              ["B", literal("2")],
            ],
          },
        ],
      ])[1],
    ).toEqual(["config.env"]);
    expect(() => fitted([["image", half]])).toThrow("Machine shop/1: no program can have a value that it requires");
  });
});

describe("F57 a literal", () => {
  const halves = ["\ud800", "\udfffx", "a\ud83d"];
  test.each<
    [
      string,
      (text: string) => string,
      () => Promise<LiteralReader | undefined> | LiteralReader | undefined,
      readonly string[],
    ]
  >([
    ["TypeScript, between quotes", (text) => inTypeScript(text), () => typescriptLiterals, halves],
    ["TypeScript, between apostrophes", (text) => inTypeScript(text, "'"), () => typescriptLiterals, halves],
    ["TypeScript, as a template", (text) => inTypeScript(text, "`"), () => typescriptLiterals, halves],
    ["Python", (text) => inPython(text), pythonLiterals, halves],
    ["Go", (text) => inGo(text), goLiterals, []],
  ])("a literal of %s is read as the same text", async (_, write, find, more) => {
    const read = await find();
    if (read === undefined) return;
    fc.assert(
      fc.property(fc.array(hostileTexts, { minLength: texts, maxLength: texts }), (drawn) => {
        const all = [...drawn, ...more];
        expect(read(all.map(write))).toEqual(all);
      }),
      { numRuns: 1, endOnFailure: true },
    );
  });

  test("a literal of Go and YAML never stands for half of a surrogate pair", () => {
    for (const half of halves) expect(() => inGo(half)).toThrow("half of a surrogate pair");
  });
});
