// The program in TypeScript.
import { laidOut, labelled, spaced, type Bracketed, type Layout } from "../layout.ts";
import { camelCase } from "../names.ts";
import { adviceOf, commented, remarksOf, titled } from "../comments.ts";
import type { Declaration, Expression, Loop, Program, TextSetting } from "../program.ts";
import { Variables } from "../variables.ts";
import { inTypeScript } from "./literals.ts";

const page = { width: 80, indent: "  ", longText: /^(\S+:) (["'].*)$/ };

const reserved =
  "arguments await break case catch class config const continue debugger default delete do else enum eval export extends false finally for function if implements import in instanceof interface let machines name new null package private process protected public pulumi return static super switch this throw true try typeof undefined value var void while with yield require module exports".split(
    " ",
  );

/** The package that programs of a binding import. */
export const npmPackage = { plugin: "pulumi-machines-plugin", dynamic: "pulumi-machines" } as const;

/** The text of `index.ts`. */
export function typescript(program: Program, binding: keyof typeof npmPackage): string {
  const variables = new Variables(program, { spell: camelCase, reserved });
  const writer = new Writer(variables);
  const body = program.sections.map(({ title, blocks }) => {
    const all = blocks.map((block) => (block.is === "loop" ? writer.loop(block) : writer.resource(block.resource)));
    return `${titled(title, "//")}\n${spaced(all)}`;
  });
  const hasSettings = program.settings.length > 0;
  const settings = program.settings.flatMap((setting) =>
    setting.isSecret ? [] : [settingOf(variables.ofSetting(setting.key) ?? "", setting)],
  );
  const imports = [
    ...(hasSettings ? [`import * as pulumi from "@pulumi/pulumi";`] : []),
    `import * as machines from ${text(npmPackage[binding])};`,
  ];
  const head = hasSettings ? ["const config = new pulumi.Config();", ...settings].join("\n") : undefined;
  const [advice, remarks] = [adviceOf(program), remarksOf(program)].map((lines) => commented(lines, "//"));
  return `${[imports.join("\n"), advice, head, ...body, remarks].filter((part) => part !== undefined).join("\n\n")}\n`;
}

/** A value of the configuration, on as many lines as it needs. */
function settingOf(variable: string, { key, default: standard }: TextSetting): string {
  if (standard === undefined) return `const ${variable} = config.require(${text(key)});`;
  const [start, middle, end] = [`const ${variable} =`, `config.get(${text(key)}) ??`, `${text(standard)};`];
  if (`${start} ${middle} ${end}`.length <= page.width) return `${start} ${middle} ${end}`;
  if (`${page.indent}${middle} ${end}`.length <= page.width) return `${start}\n${page.indent}${middle} ${end}`;
  return `${start}\n${page.indent}${middle}\n${page.indent}${end}`;
}

/** A literal, in the quotes that need fewer escapes. */
function text(value: string): string {
  const count = (quote: string): number => value.split(quote).length;
  return inTypeScript(value, count('"') > count("'") ? "'" : '"');
}

/** A name as a property: in quotes if it has to be. */
const property = (name: string): string =>
  /^[A-Za-z_$][\w$]*$/.test(name) ? (name === "__proto__" ? `["__proto__"]` : name) : text(name);

class Writer {
  readonly #variables: Variables;

  constructor(variables: Variables) {
    this.#variables = variables;
  }

  resource(resource: Declaration, depth = 0): string {
    const variable = this.#variables.of(resource.key);
    const assigned = variable === undefined ? "" : `const ${variable} = `;
    const { ignoreChanges, dependsOn = [] } = resource;
    const after = dependsOn.map((key) => this.#variables.of(key) ?? "");
    const chosen: readonly (readonly [string, Layout])[] = [
      ...(ignoreChanges.length === 0 ? [] : [["ignoreChanges", list(ignoreChanges.map(text))] as const]),
      ...(after.length === 0 ? [] : [["dependsOn", list(after)] as const]),
    ];
    const options: Layout | undefined = chosen.length === 0 ? undefined : object(chosen);
    const inputs = object(resource.inputs.map(([name, value]) => [name, this.value(value)]));
    const items = [this.value(resource.name), inputs, ...(options === undefined ? [] : [options])];
    const call: Layout = {
      open: `${assigned}new machines.${resource.type}(`,
      close: ")",
      items,
      hugsLast: options === undefined,
    };
    return `${page.indent.repeat(depth)}${laidOut(call, page, depth, 1)};`;
  }

  loop({ rows, body }: Loop): string {
    const columns = rows[0]?.map(([name]) => name) ?? [];
    const [only] = columns;
    const items = rows.map((row) =>
      columns.length === 1
        ? this.value(row[0]?.[1] ?? { is: "list", items: [] })
        : object(row.map(([name, value]) => [name, this.value(value)])),
    );
    const pattern = columns.length === 1 ? (only ?? "") : `{ ${columns.join(", ")} }`;
    const head = laidOut({ ...list(items), open: `for (const ${pattern} of [` }, page, 0, 3);
    const inside = body.map((one) => this.resource(one, 1));
    return `${head}) {\n${inside.join("\n")}\n}`;
  }

  value(expression: Expression): Layout {
    switch (expression.is) {
      case "literal":
        return typeof expression.value === "string" ? text(expression.value) : String(expression.value);
      case "list":
        return list(expression.items.map((one) => this.value(one)));
      case "object":
      case "map":
        return object(expression.entries.map(([name, value]) => [name, this.value(value)]));
      case "id":
        return `${this.#variables.of(expression.of) ?? ""}.id`;
      case "setting":
        return (
          this.#variables.ofSetting(expression.key) ?? {
            ...{ open: "config.requireSecret(", close: ")", items: [text(expression.key)] },
          }
        );
      case "column":
        return expression.before + expression.after === ""
          ? expression.name
          : `\`${inTemplate(expression.before)}\${${expression.name}}${inTemplate(expression.after)}\``;
    }
  }
}

const inTemplate = (part: string): string => inTypeScript(part, "`").slice(1, -1);

/** Several objects with several properties are never on one line. */
const list = (items: readonly Layout[]): Bracketed => ({
  ...{ open: "[", close: "]", items },
  isBroken:
    items.length > 1 && items.every((item) => typeof item !== "string" && item.open === "{" && item.items.length > 1),
});

const object = (entries: readonly (readonly [string, Layout])[]): Layout => ({
  open: "{",
  close: "}",
  isPadded: true,
  items: entries.map(([name, value]) => (value === name ? property(name) : labelled(`${property(name)}: `, value))),
});
