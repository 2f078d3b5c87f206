// The program in YAML, which has no loops: every resource is written out.
import { stringify, type ScalarTag } from "yaml";
import { adviceOf, commented, remarksOf, titled } from "../comments.ts";
import { camelCase, Identifiers } from "../names.ts";
import { declarationsIn, textOf, type Declaration, type Expression, type Program } from "../program.ts";
import { inYaml } from "./literals.ts";

/** The text of `Main.yaml`. */
export function yaml(program: Program): string {
  const identifiers = new Identifiers(camelCase, ["pulumi"]);
  const names = new Map<string, string>();
  const sections = program.sections.map(({ title, blocks }) => ({ title, all: blocks.flatMap(declarationsIn) }));
  for (const { key } of program.settings) identifiers.take(key);
  for (const { all } of sections)
    for (const { key, name, type } of all) names.set(key, identifiers.take(textOf(name), type));
  const config = Object.fromEntries(
    program.settings.map((setting) => [
      setting.key,
      setting.isSecret
        ? { type: "string", secret: true }
        : { type: "string", ...(setting.default === undefined ? {} : { default: text(setting.default) }) },
    ]),
  );
  const resources = sections.map(({ title, all }) => {
    const entries = all.map((one) => [names.get(one.key) ?? "", resourceOf(one, names)]);
    return `  ${titled(title, "#")}\n${indented(written(Object.fromEntries(entries)))}`;
  });
  const [advice, remarks] = [adviceOf(program), remarksOf(program)].map((lines) => commented(lines, "#"));
  const head = program.settings.length === 0 ? undefined : written({ config });
  return `${[advice, head, `resources:\n${resources.join("\n")}`, remarks].filter((part) => part !== undefined).join("\n\n")}\n`;
}

/** Texts that every version of YAML reads as they are, and references to our own resources and settings. */
const plain = /^(?:[A-Za-z/][\w./@+-]*(?::[\w./@+-]+)*|\$\{[A-Za-z][\w.]*\})$/;
const words = /^(?:true|false|yes|no|on|off|null|y|n)$/i;

/** A text on one line, in quotes if it needs them. */
export const scalar = (value: string): string => (plain.test(value) && !words.test(value) ? value : inYaml(value));

const tag = "tag:yaml.org,2002:str";
const texts: ScalarTag = {
  tag,
  default: true,
  identify: (value) => typeof value === "string",
  resolve: (value) => value,
  stringify: ({ value }) => scalar(String(value)),
};

/** Pulumi's language host for YAML refuses aliases. */
const written = (value: unknown): string =>
  stringify(value, {
    ...{ lineWidth: 0, aliasDuplicateObjects: false },
    customTags: (tags) => [texts, ...tags.filter((one) => typeof one === "string" || one.tag !== tag)],
  }).trimEnd();

/** The language host reads dollars in every text and key: before a brace one begins a reference, and two are one. */
const text = (value: string): string => value.replaceAll(/\$(?=[${])/g, "$$$$");

/** A key of the user's. @throws Error if the language host would call a function: limits.ts leaves such keys out before */
function keyOf(name: string): string {
  if (isFunction(name)) throw new Error("Pulumi's YAML has no way to write this key");
  return text(name);
}

/** Whether the language host takes a key for the name of a function, such as the one that reads a file of the computer. */
export const isFunction = (key: string): boolean => key.toLowerCase().includes("fn::");

const indented = (text: string): string => text.replaceAll(/^(?=.)/gm, "  ");

function resourceOf(resource: Declaration, names: ReadonlyMap<string, string>): unknown {
  const { type, name, inputs, ignoreChanges, dependsOn = [] } = resource;
  const options = {
    ...(ignoreChanges.length === 0 ? {} : { ignoreChanges: ignoreChanges.map(text) }),
    ...(dependsOn.length === 0 ? {} : { dependsOn: dependsOn.map((key) => `\${${names.get(key) ?? ""}}`) }),
  };
  return {
    type: `machines:${type}`,
    name: text(textOf(name)),
    properties: Object.fromEntries(inputs.map(([property, value]) => [property, valueOf(value, names)])),
    ...(Object.keys(options).length === 0 ? {} : { options }),
  };
}

function valueOf(expression: Expression, names: ReadonlyMap<string, string>): unknown {
  switch (expression.is) {
    case "literal":
      return typeof expression.value === "string" ? text(expression.value) : expression.value;
    case "list":
      return expression.items.map((one) => valueOf(one, names));
    case "object":
      return new Map(expression.entries.map(([name, value]) => [name, valueOf(value, names)]));
    case "map":
      return new Map(expression.entries.map(([name, value]) => [keyOf(name), valueOf(value, names)]));
    case "id":
      return `\${${names.get(expression.of) ?? ""}.id}`;
    case "setting":
      return `\${${expression.key}}`;
    case "column":
      throw new Error("a program in YAML has no loops");
  }
}
