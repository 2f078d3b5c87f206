// A Pulumi program before it is written in a language: resources, loops and configuration.

/** A value in a program. */
export type Expression =
  | { readonly is: "literal"; readonly value: string | number | boolean | null }
  | { readonly is: "list"; readonly items: readonly Expression[] }
  /** Its names are properties, which each language spells in its own way. */
  | { readonly is: "object"; readonly entries: readonly Entry[] }
  /** Its keys are the user's. */
  | { readonly is: "map"; readonly entries: readonly Entry[] }
  /** The id of another resource, by its key. */
  | { readonly is: "id"; readonly of: string }
  /** A value of the configuration, by its key. */
  | { readonly is: "setting"; readonly key: string }
  /** A value of the row that a loop is at, with a text before and after it. */
  | { readonly is: "column"; readonly name: string; readonly before: string; readonly after: string };

/** A property and its value. */
export type Entry = readonly [name: string, value: Expression];

/** A resource. */
export interface Declaration {
  /** Its type and the id of its object; unique. */
  readonly key: string;
  readonly type: string;
  readonly id: string;
  /** Its name in Pulumi. */
  readonly name: Expression;
  readonly inputs: readonly Entry[];
  /** Paths of inputs whose values the service does not show, or that must not be written down. */
  readonly ignoreChanges: readonly string[];
  /** Keys of resources that it comes after, although it has no value of theirs. */
  readonly dependsOn?: readonly string[];
}

/** Equal resources, declared once for each row. */
export interface Loop {
  /** The keys of the resources of each row, in the order of the body. */
  readonly keys: readonly (readonly string[])[];
  readonly rows: readonly (readonly Entry[])[];
  readonly body: readonly Declaration[];
}

/** A part of a section. */
export type Block = { readonly is: "resource"; readonly resource: Declaration } | ({ readonly is: "loop" } & Loop);

/** The resources of an App or a cluster. */
export interface Section {
  readonly title: string;
  readonly blocks: readonly Block[];
}

/** A value of the configuration: a secret that must be set, or a text, which must be set if it has no default. */
export type Setting = { readonly key: string; readonly isSecret: true } | TextSetting;

/** A text of the configuration. */
export interface TextSetting {
  readonly key: string;
  readonly isSecret: false;
  readonly default?: string;
}

/** The whole program. */
export interface Program {
  readonly settings: readonly Setting[];
  readonly sections: readonly Section[];
  /** Sentences about objects that are not in it. */
  readonly remarks: readonly string[];
}

/** A literal. */
export const literal = (value: string | number | boolean | null): Expression => ({ is: "literal", value });

/** The text of a name that is no column. */
export const textOf = (name: Expression): string => (name.is === "literal" ? String(name.value) : "");

/** The expressions directly in another. */
export function partsOf(expression: Expression): readonly Expression[] {
  if (expression.is === "list") return expression.items;
  if (expression.is === "object" || expression.is === "map") return expression.entries.map(([, value]) => value);
  return [];
}

/** The same expression with others in the place of its parts, from the inside. */
export function rewritten(expression: Expression, change: (one: Expression) => Expression): Expression {
  const of = (entries: readonly Entry[]) => entries.map(([name, value]) => [name, rewritten(value, change)] as const);
  if (expression.is === "list")
    return change({ is: "list", items: expression.items.map((one) => rewritten(one, change)) });
  if (expression.is === "object") return change({ is: "object", entries: of(expression.entries) });
  if (expression.is === "map") return change({ is: "map", entries: of(expression.entries) });
  return change(expression);
}

/** All keys of resources whose ids an expression has. */
export function idsIn(expression: Expression): readonly string[] {
  return expression.is === "id" ? [expression.of] : partsOf(expression).flatMap(idsIn);
}

/** The resources of a block, those of a loop once for each row. */
export function declarationsIn(block: Block): readonly Declaration[] {
  if (block.is === "resource") return [block.resource];
  return block.rows.flatMap((row, i) => {
    const keys = block.keys[i] ?? [];
    // Within a row, ids are those of the row's resources.
    const own = new Map(block.body.map(({ key }, j) => [key, keys[j] ?? key]));
    const inRow = (one: Expression): Expression => {
      if (one.is === "id") return { is: "id", of: own.get(one.of) ?? one.of };
      if (one.is !== "column") return one;
      const value = row.find(([name]) => name === one.name)?.[1] ?? literal(null);
      return one.before + one.after === "" ? value : literal(`${one.before}${textOf(value)}${one.after}`);
    };
    return block.body.map((resource, j) => ({
      ...resource,
      key: keys[j] ?? resource.key,
      id: (keys[j] ?? resource.key).slice(resource.type.length + 1),
      name: rewritten(resource.name, inRow),
      inputs: resource.inputs.map(([name, value]) => [name, rewritten(value, inRow)] as const),
    }));
  });
}

/** All keys of resources that others refer to. */
export function referredTo(program: Program): ReadonlySet<string> {
  const all = program.sections.flatMap(({ blocks }) =>
    blocks.flatMap((block) => (block.is === "resource" ? [block.resource] : block.body)),
  );
  return new Set(
    all.flatMap(({ inputs, dependsOn = [] }) => [...inputs.flatMap(([, value]) => idsIn(value)), ...dependsOn]),
  );
}
