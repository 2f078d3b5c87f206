// Inputs of a resource as expressions of a program.
import { isObject, type Field } from "../../api/schema.ts";
import { fieldAt } from "../../provider/core/values.ts";
import { resources } from "../../provider/registry.ts";
import { literal, type Entry, type Expression } from "../organization/program.ts";

/** An expression among plain values. */
export class Placed {
  readonly expression: Expression;

  constructor(expression: Expression) {
    this.expression = expression;
  }
}

/** The inputs of a resource, which are plain values but for those that are {@link Placed}. */
export function entriesOf(type: string, inputs: Readonly<Record<string, unknown>>): readonly Entry[] {
  const fields = resources[type]?.inputFields ?? {};
  return Object.entries(inputs).flatMap(([name, value]): Entry[] =>
    value === undefined ? [] : [[name, expressionOf(fields[name], value)]],
  );
}

function expressionOf(field: Field | undefined, value: unknown): Expression {
  if (value instanceof Placed) return value.expression;
  if (Array.isArray(value))
    return { is: "list", items: value.map((item: unknown, i) => expressionOf(field && fieldAt(field, i), item)) };
  if (isObject(value)) {
    const entries = Object.entries(value).flatMap(([name, inner]): Entry[] =>
      inner === undefined ? [] : [[name, expressionOf(field && fieldAt(field, name), inner)]],
    );
    return { is: field?.shape.kind === "object" ? "object" : "map", entries };
  }
  return literal(typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? value : null);
}
