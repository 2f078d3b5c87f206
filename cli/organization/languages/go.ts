// The program in Go.
import { adviceOf, commented, remarksOf, titled } from "../comments.ts";
import { spaced } from "../layout.ts";
import { camelCase } from "../names.ts";
import type { Declaration, Entry, Expression, Loop, Program } from "../program.ts";
import { Variables } from "../variables.ts";
import { indented } from "./goIndent.ts";
import { enums, properties } from "./goTypes.ts";
import { inGo as text } from "./literals.ts";

const reserved =
  "any append bool break byte cap case cfg chan clear close complex config const continue copy ctx default defer delete else err error fallthrough false float32 float64 for func go goto if imag import int interface iota len machines main make map max min new nil package panic print println pulumi range real recover return rune row select string struct switch true type uint var".split(
    " ",
  );

/** The text of `main.go`, indented; Go's own formatter (gofmt.ts) also aligns it. */
export function go(program: Program): string {
  const variables = new Variables(program, { spell: camelCase, reserved });
  const writer = new Writer(variables);
  const hasSettings = program.settings.length > 0;
  const settings = program.settings.flatMap((setting) => {
    const name = variables.ofSetting(setting.key) ?? "";
    if (setting.isSecret) return [];
    if (setting.default === undefined) return [`${name} := cfg.Require(${text(setting.key)})`];
    return [`${name} := cfg.Get(${text(setting.key)})\nif ${name} == "" {\n${name} = ${text(setting.default)}\n}`];
  });
  const sections = program.sections.map(({ title, blocks }) => {
    const all = blocks.map((block) => (block.is === "loop" ? writer.loop(block) : writer.resource(block.resource)));
    return `${titled(title, "//")}\n${spaced(all)}`;
  });
  const [advice, remarks] = [adviceOf(program), remarksOf(program)].map((lines) => commented(lines, "//"));
  const head = hasSettings ? ['cfg := config.New(ctx, "")', ...settings].join("\n") : undefined;
  const imports = [
    '"github.com/pulumi-machines/pulumi-machines/sdk/go/machines"',
    '"github.com/pulumi/pulumi/sdk/v3/go/pulumi"',
    ...(hasSettings ? ['"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"'] : []),
  ];
  const body = [advice, head, ...sections, remarks, "return nil"].filter((part) => part !== undefined).join("\n\n");
  return indented(
    `package main\n\nimport (\n${imports.join("\n")}\n)\n\nfunc main() {\npulumi.Run(func(ctx *pulumi.Context) error {\n${body}\n})\n}\n`,
  );
}

/** `minSecretsVersion` as the name of a field. */
const field = (property: string): string => property.slice(0, 1).toUpperCase() + property.slice(1);

class Writer {
  readonly #variables: Variables;

  constructor(variables: Variables) {
    this.#variables = variables;
  }

  resource({ key, type, name, inputs, ignoreChanges, dependsOn = [] }: Declaration): string {
    const types = properties[type] ?? {};
    const fields = inputs.map(([property, value]) => `${field(property)}: ${this.#value(value, types[property])},\n`);
    const after = dependsOn.map((one) => this.#variables.of(one) ?? "").join(", ");
    const options =
      (ignoreChanges.length === 0
        ? ""
        : `, pulumi.IgnoreChanges([]string{${ignoreChanges.map((path) => text(path)).join(", ")}})`) +
      (after === "" ? "" : `, pulumi.DependsOn([]pulumi.Resource{${after}})`);
    const call = `machines.New${type}(ctx, ${this.#text(name)}, &machines.${type}Args{\n${fields.join("")}}${options})`;
    const variable = this.#variables.of(key);
    return variable === undefined
      ? `if _, err := ${call}; err != nil {\nreturn err\n}`
      : `${variable}, err := ${call}\nif err != nil {\nreturn err\n}`;
  }

  loop({ rows, body }: Loop): string {
    const [first = []] = rows;
    const isText = ([, value]: Entry): boolean => value.is === "literal";
    const types = first.map((entry) => `${camelCase(entry[0])} ${isText(entry) ? "string" : "pulumi.StringInput"}`);
    const lines = rows.map((row) => `{${row.map(([, value]) => this.#cell(value)).join(", ")}},\n`);
    return `for _, row := range []struct {\n${types.join("\n")}\n}{\n${lines.join("")}} {\n${spaced(body.map((one) => this.resource(one)))}\n}`;
  }

  #cell(value: Expression): string {
    return value.is === "literal" ? this.#text(value) : this.#value(value);
  }

  /** A value as a `string` of Go. */
  #text(value: Expression): string {
    if (value.is === "literal") return text(String(value.value));
    if (value.is !== "column") return "";
    const parts = [value.before, value.after].map((part) => (part === "" ? [] : [text(part)]));
    return [...(parts[0] ?? []), `row.${camelCase(value.name)}`, ...(parts[1] ?? [])].join(" + ");
  }

  /** @param type as `goTypes.ts` writes it; undefined if the value shows it */
  #value(value: Expression, type = ""): string {
    switch (value.is) {
      case "id":
        return `${this.#variables.of(value.of) ?? ""}.ID()`;
      case "setting": {
        const variable = this.#variables.ofSetting(value.key);
        return variable === undefined ? `cfg.RequireSecret(${text(value.key)})` : `pulumi.String(${variable})`;
      }
      case "column":
        // A secret is an input already.
        return value.name === "value" ? `row.${camelCase(value.name)}` : `pulumi.String(${this.#text(value)})`;
      case "literal":
        return literalOf(value.value, type);
      case "list": {
        const inner = type.slice(1, -1);
        const items = value.items.map((one) => `${this.#value(one, inner)},\n`);
        return `${collectionOf(inner)}Array{\n${items.join("")}}`;
      }
      case "object":
      case "map":
        return this.#object(value.entries, type);
    }
  }

  #object(entries: readonly Entry[], type: string): string {
    const types = properties[type];
    if (types) {
      const fields = entries.map(([name, value]) => `${field(name)}: ${this.#value(value, types[name])},\n`);
      return `machines.${type}Args{\n${fields.join("")}}`;
    }
    const inner = type.slice(1, -1);
    const fields = entries.map(([name, value]) => `${text(name)}: ${this.#value(value, inner)},\n`);
    return `${collectionOf(inner)}Map{\n${fields.join("")}}`;
  }
}

function literalOf(value: string | number | boolean | null, type: string): string {
  if (value === null) return "nil";
  if (typeof value === "boolean") return `pulumi.Bool(${value})`;
  if (typeof value === "number") return `pulumi.${type === "number" ? "Float64" : "Int"}(${value})`;
  const names = enums[type];
  if (!names) return `pulumi.String(${text(value)})`;
  const name = names[value];
  return name === undefined ? `machines.${type}(${text(value)})` : `machines.${type}${name}`;
}

const plain: Readonly<Record<string, string>> = {
  integer: "Int",
  number: "Float64",
  boolean: "Bool",
  string: "String",
};

/** What the type of a list or a map of something begins with. */
const collectionOf = (inner: string): string =>
  properties[inner] || enums[inner] ? `machines.${inner}` : `pulumi.${plain[inner] ?? ""}`;
