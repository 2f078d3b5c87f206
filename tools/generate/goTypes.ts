// The types that the SDK for Go has for inputs, for programs that `pulumi-machines import` writes.
import type { packageSchema } from "./schema.ts";
import { banner } from "./sdk.ts";

type Schema = ReturnType<typeof packageSchema>;

interface Spec {
  readonly type?: string;
  readonly $ref?: string;
  readonly items?: Spec;
  readonly additionalProperties?: Spec;
  readonly oneOf?: readonly Spec[];
}

interface Type {
  readonly properties?: Readonly<Record<string, Spec>>;
  readonly enum?: readonly { readonly name: string; readonly value: unknown }[];
}

const nameOf = (token: string): string => token.slice(token.lastIndexOf(":") + 1);

/** A type as `goTypes.ts` writes it. Texts, numbers and switches show by themselves what they are. */
function written({ type, $ref, items, additionalProperties, oneOf }: Spec): string {
  if ($ref?.startsWith("#/types/")) return nameOf($ref);
  if (items) return `[${written(items)}]`;
  if (additionalProperties) return `{${written(additionalProperties)}}`;
  return type ?? (oneOf ? "string" : "any");
}

/** The text of cli/organization/languages/goTypes.ts. */
export function goTypes(schema: Schema): string {
  const types = schema.types as unknown as Readonly<Record<string, Type>>;
  const resources = schema.resources as unknown as Readonly<
    Record<string, { readonly inputProperties: Readonly<Record<string, Spec>> }>
  >;
  const properties: Record<string, Record<string, string>> = {};
  const enums: Record<string, Record<string, string>> = {};
  const add = (name: string, specs: Readonly<Record<string, Spec>>): void => {
    if (properties[name]) return;
    const all = Object.entries(specs).map(([property, spec]) => [property, written(spec)] as const);
    properties[name] = Object.fromEntries(all.filter(([, type]) => !["string", "integer", "boolean"].includes(type)));
    for (const [, type] of all) {
      const inner = type.replaceAll(/[[\]{}]/g, "");
      const found = types[`machines:index:${inner}`];
      if (found?.properties) add(inner, found.properties);
      if (found?.enum) enums[inner] = Object.fromEntries(found.enum.map((one) => [String(one.value), one.name]));
    }
  };
  for (const [token, { inputProperties }] of Object.entries(resources)) add(nameOf(token), inputProperties);
  const table = (doc: string, name: string, value: Record<string, Record<string, string>>): string =>
    `/** ${doc} */\nexport const ${name}: Readonly<Record<string, Readonly<Record<string, string>>>> = ${JSON.stringify(value, null, 2)};\n`;
  return [
    banner,
    table(
      "Types of inputs and of the properties of our types: `[X]` is a list, `{X}` a map.",
      "properties",
      properties,
    ),
    table("Names of the values of enumerations.", "enums", enums),
  ].join("\n");
}
