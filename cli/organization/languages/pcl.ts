// The program in PCL, which Pulumi's generators translate into other languages.
import { commented, remarksOf, titled } from "../comments.ts";
import { camelCase } from "../names.ts";
import { declarationsIn, textOf, type Declaration, type Expression, type Program, type Setting } from "../program.ts";
import { Variables } from "../variables.ts";
import { inPcl } from "./literals.ts";

const reserved =
  "any config component for if in invoke null options output package pulumi resource secret true false".split(" ");

/** The text of `main.pp`. Only new resources are written in PCL, so none of them ignores changes. */
export function pcl(program: Program): string {
  // A resource has a variable here also if no other refers to it.
  const all = program.sections.flatMap(({ blocks }) => blocks.flatMap(declarationsIn));
  const everything = { key: "", type: "", id: "", name: { is: "list", items: [] }, ignoreChanges: [] } as const;
  const holder: Declaration = { ...everything, inputs: [], dependsOn: all.map(({ key }) => key) };
  const sections = program.sections.map(({ title, blocks }) => ({
    title,
    blocks: blocks.flatMap(declarationsIn).map((resource) => ({ is: "resource", resource }) as const),
  }));
  const named = {
    ...program,
    sections: [...sections, { title: "", blocks: [{ is: "resource", resource: holder } as const] }],
  };
  const variables = new Variables(
    { ...named, settings: program.settings.map(({ key }) => ({ key, isSecret: false })) },
    { spell: camelCase, reserved },
  );
  const remarks = commented(remarksOf(program), "#");
  return `${[
    ...program.settings.map((setting) => settingOf(setting, variables)),
    ...sections.map(({ title, blocks }) =>
      [titled(title, "#"), blocks.map(({ resource }) => resourceOf(resource, variables)).join("\n\n")].join("\n"),
    ),
    ...(remarks === undefined ? [] : [remarks]),
  ].join("\n\n")}\n`;
}

function settingOf(setting: Setting, variables: Variables): string {
  const name = variables.ofSetting(setting.key) ?? setting.key;
  const lines = [
    ...(name === setting.key ? [] : [`__logicalName = ${text(setting.key)}`]),
    ...(setting.isSecret ? ["secret = true"] : []),
    ...(!setting.isSecret && setting.default !== undefined ? [`default = ${text(setting.default)}`] : []),
  ];
  return `config ${text(name)} "string" ${block(lines, 0)}`;
}

function resourceOf({ key, type, name, inputs, dependsOn = [] }: Declaration, variables: Variables): string {
  const variable = variables.of(key) ?? "";
  const after = dependsOn.map((one) => variables.of(one) ?? "").join(", ");
  const lines = [
    ...(textOf(name) === variable ? [] : [`__logicalName = ${text(textOf(name))}`]),
    ...inputs.map(([property, value]) => `${property} = ${valueOf(value, variables, 1)}`),
    ...(after === "" ? [] : [`options ${block([`dependsOn = [${after}]`], 1)}`]),
  ];
  return `resource ${text(variable)} "machines:index:${type}" ${block(lines, 0)}`;
}

const indent = (depth: number): string => "  ".repeat(depth);

const block = (lines: readonly string[], depth: number): string =>
  lines.length === 0 ? "{}" : `{\n${lines.map((line) => `${indent(depth + 1)}${line}\n`).join("")}${indent(depth)}}`;

/** A text, without the templates that it could be taken for. */
const text = (value: string): string => inPcl(value).replaceAll(/[$%](?=\{)/g, "$&$&");

function valueOf(expression: Expression, variables: Variables, depth: number): string {
  switch (expression.is) {
    case "literal":
      return typeof expression.value === "string" ? text(expression.value) : String(expression.value);
    case "id":
      return `${variables.of(expression.of) ?? ""}.id`;
    case "setting":
      return variables.ofSetting(expression.key) ?? "";
    case "list": {
      const isPlain = expression.items.every((one) => one.is === "literal");
      const items = expression.items.map((one) => valueOf(one, variables, depth + 1));
      if (isPlain) return `[${items.join(", ")}]`;
      return `[\n${items.map((item) => `${indent(depth + 1)}${item},\n`).join("")}${indent(depth)}]`;
    }
    case "object":
    case "map":
      return block(
        expression.entries.map(([name, value]) => {
          const property = expression.is === "object" ? name : text(name);
          return `${property} = ${valueOf(value, variables, depth + 1)}`;
        }),
        depth,
      );
    case "column":
      throw new Error("a program in PCL has no loops");
  }
}
