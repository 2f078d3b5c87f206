// The program in YAML, which has no loops: every resource is written out.
import { stringify } from "yaml";
import { adviceOf, commented, remarksOf } from "../comments.ts";
import { camelCase, Identifiers } from "../names.ts";
import { declarationsIn, textOf, type Declaration, type Expression, type Program } from "../program.ts";

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
        : { type: "string", ...(setting.default === undefined ? {} : { default: setting.default }) },
    ]),
  );
  const resources = sections.map(({ title, all }) => {
    const entries = all.map((one) => [names.get(one.key) ?? "", resourceOf(one, names)]);
    return `  # ${title}\n${indented(written(Object.fromEntries(entries)))}`;
  });
  const [advice, remarks] = [adviceOf(program), remarksOf(program)].map((lines) => commented(lines, "#"));
  const head = program.settings.length === 0 ? undefined : written({ config });
  return `${[advice, head, `resources:\n${resources.join("\n")}`, remarks].filter((part) => part !== undefined).join("\n\n")}\n`;
}

/** Pulumi's language host for YAML refuses aliases. */
const written = (value: unknown): string => stringify(value, { lineWidth: 0, aliasDuplicateObjects: false }).trimEnd();

const indented = (text: string): string => text.replaceAll(/^(?=.)/gm, "  ");

function resourceOf(resource: Declaration, names: ReadonlyMap<string, string>): unknown {
  const { type, name, inputs, ignoreChanges, dependsOn = [] } = resource;
  const options = {
    ...(ignoreChanges.length === 0 ? {} : { ignoreChanges }),
    ...(dependsOn.length === 0 ? {} : { dependsOn: dependsOn.map((key) => `\${${names.get(key) ?? ""}}`) }),
  };
  return {
    type: `machines:${type}`,
    name: textOf(name),
    properties: Object.fromEntries(inputs.map(([property, value]) => [property, valueOf(value, names)])),
    ...(Object.keys(options).length === 0 ? {} : { options }),
  };
}

function valueOf(expression: Expression, names: ReadonlyMap<string, string>): unknown {
  switch (expression.is) {
    case "literal":
      // A dollar before a brace would begin a reference, and two dollars are one.
      return typeof expression.value === "string"
        ? expression.value.replaceAll(/\$(?=[${])/g, "$$$$")
        : expression.value;
    case "list":
      return expression.items.map((one) => valueOf(one, names));
    case "object":
    case "map":
      return new Map(expression.entries.map(([name, value]) => [name, valueOf(value, names)]));
    case "id":
      return `\${${names.get(expression.of) ?? ""}.id}`;
    case "setting":
      return `\${${expression.key}}`;
    case "column":
      throw new Error("a program in YAML has no loops");
  }
}
