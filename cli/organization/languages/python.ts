// The program in Python.
import { adviceOf, commented, remarksOf, titled } from "../comments.ts";
import { laidOut, labelled, spaced, type Bracketed, type Layout } from "../layout.ts";
import { snakeCase } from "../names.ts";
import type { Declaration, Expression, Loop, Program, TextSetting } from "../program.ts";
import { Variables } from "../variables.ts";
import { inPython as text } from "./literals.ts";

const page = { width: 88, indent: "    " };

const reserved =
  "and as assert async await break class config continue def del elif else except finally for from global if import in is lambda machines nonlocal not or pass print pulumi raise return try while with yield match case type id list dict str int bool float map filter".split(
    " ",
  );

/** The text of `__main__.py`. */
export function python(program: Program): string {
  const variables = new Variables(program, { spell: snakeCase, reserved });
  const writer = new Writer(variables);
  const body = program.sections.map(({ title, blocks }) => {
    const all = blocks.map((block) => (block.is === "loop" ? writer.loop(block) : writer.resource(block.resource)));
    return `${titled(title, "#")}\n${spaced(all)}`;
  });
  const settings = program.settings.flatMap((setting) =>
    setting.isSecret ? [] : [`${variables.ofSetting(setting.key) ?? ""} = ${settingOf(setting)}`],
  );
  const hasPulumi = program.settings.length > 0;
  const imports = [...(hasPulumi ? ["import pulumi"] : []), "import pulumi_machines as machines"].join("\n");
  const head = hasPulumi ? ["config = pulumi.Config()", ...settings].join("\n") : undefined;
  const [advice, remarks] = [adviceOf(program), remarksOf(program)].map((lines) => commented(lines, "#"));
  return `${[imports, advice, head, ...body, remarks].filter((part) => part !== undefined).join("\n\n")}\n`;
}

const settingOf = ({ key, default: standard }: TextSetting): string =>
  standard === undefined ? `config.require(${text(key)})` : `config.get(${text(key)}) or ${text(standard)}`;

class Writer {
  readonly #variables: Variables;

  constructor(variables: Variables) {
    this.#variables = variables;
  }

  resource({ key, type, name, inputs, ignoreChanges, dependsOn = [] }: Declaration, depth = 0): string {
    const variable = this.#variables.of(key);
    const items: Layout[] = [
      this.value(name),
      ...inputs.map(([property, value]) => labelled(`${snakeCase(property)}=`, this.value(value))),
    ];
    const options = [
      ...(ignoreChanges.length > 0 ? [`ignore_changes=[${ignoreChanges.map((path) => text(path)).join(", ")}]`] : []),
      ...(dependsOn.length > 0
        ? [`depends_on=[${dependsOn.map((one) => this.#variables.of(one) ?? "").join(", ")}]`]
        : []),
    ];
    if (options.length > 0) items.push(`opts=pulumi.ResourceOptions(${options.join(", ")})`);
    const start = `${variable === undefined ? "" : `${variable} = `}machines.${type}(`;
    return page.indent.repeat(depth) + laidOut({ open: start, close: ")", items }, page, depth);
  }

  loop({ rows, body }: Loop): string {
    const columns = rows[0]?.map(([name]) => snakeCase(name)) ?? [];
    const items = rows.map((row): Layout => {
      const values = row.map(([, value]) => this.value(value));
      return values.length === 1 ? (values[0] ?? "") : { open: "(", close: ")", items: values };
    });
    const head = laidOut({ open: `for ${columns.join(", ")} in [`, close: "]", items }, page, 0, 1);
    return `${head}:\n${spaced(body.map((one) => this.resource(one, 1)))}`;
  }

  value(expression: Expression): Layout {
    switch (expression.is) {
      case "literal": {
        const { value } = expression;
        if (typeof value === "boolean") return value ? "True" : "False";
        return value === null ? "None" : typeof value === "string" ? text(value) : String(value);
      }
      case "list":
        return { open: "[", close: "]", items: expression.items.map((one) => this.value(one)) };
      case "object":
        return dictionary(expression.entries.map(([name, value]) => [snakeCase(name), this.value(value)]));
      case "map":
        return dictionary(expression.entries.map(([name, value]) => [name, this.value(value)]));
      case "id":
        return `${this.#variables.of(expression.of) ?? ""}.id`;
      case "setting":
        return this.#variables.ofSetting(expression.key) ?? `config.require_secret(${text(expression.key)})`;
      case "column": {
        const { before, after } = expression;
        const name = snakeCase(expression.name);
        return before + after === "" ? name : `f"${inTemplate(before)}{${name}}${inTemplate(after)}"`;
      }
    }
  }
}

const inTemplate = (part: string): string => text(part).slice(1, -1).replaceAll(/[{}]/g, "$&$&");

const dictionary = (entries: readonly (readonly [string, Layout])[]): Bracketed => ({
  open: "{",
  close: "}",
  items: entries.map(([name, value]) => labelled(`${text(name)}: `, value)),
});
