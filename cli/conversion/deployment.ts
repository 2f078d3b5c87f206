// A deployment file that was read and checked, and what of it the program has.
import type { z } from "zod";
import { didYouMean } from "../../api/didYouMean.ts";
import { isObject } from "../../api/schema.ts";
import { MachinesError } from "../../provider/client/errors.ts";
import { pathText } from "../../provider/core/values.ts";
import { fileSchema, type DeploymentFile } from "./schema.ts";
import { keyOf, parseToml, type Path } from "./toml.ts";

/** Something of the file that is not in the program, or not as it is there. */
export interface Remark {
  readonly line: number;
  readonly key: string;
  readonly text: string;
}

/** Top-level keys that are a table or a list of tables. */
const listed = ["vm", "mounts", "restart", "metrics", "files", "statics", "services"];

/** Other names of keys. */
const aliases: Readonly<Record<string, string>> = { mount: "mounts", service: "services", static: "statics" };

/** A part of the file, which notes what was taken from it. */
export class Table<T extends object> {
  readonly values: T;
  readonly path: Path;
  readonly #deployment: Deployment;

  constructor(deployment: Deployment, values: T, path: Path) {
    this.#deployment = deployment;
    this.values = values;
    this.path = path;
  }

  /** A value that the program has. */
  take<K extends keyof T & string>(name: K): T[K] {
    this.#deployment.taken.add(keyOf([...this.path, name]));
    return this.values[name];
  }

  /** A table in this one. */
  table<K extends keyof T & string>(name: K): Table<NonNullable<T[K]> & object> | undefined {
    const inner = this.values[name];
    return isObject(inner) ? new Table(this.#deployment, inner as never, [...this.path, name]) : undefined;
  }

  /** The tables of a list in this one. */
  tables<K extends keyof T & string>(name: K): readonly Table<ItemOf<T[K]>>[] {
    const inner: unknown = this.values[name];
    return Array.isArray(inner)
      ? inner.map((item: unknown, i) => new Table(this.#deployment, item as ItemOf<T[K]>, [...this.path, name, i]))
      : [];
  }

  /** Says why a key is not in the program, or not as it is in the file. */
  remark(name: (keyof T & string) | undefined, text: string): void {
    const path = name === undefined ? this.path : [...this.path, name];
    if (name !== undefined && this.values[name] === undefined) return;
    this.#deployment.remark(path, text);
  }
}

type ItemOf<L> = NonNullable<L> extends readonly (infer I extends object)[] ? I : never;

/** The file. */
export class Deployment {
  readonly taken = new Set<string>();
  readonly root: Table<DeploymentFile>;
  readonly #remarks = new Map<string, Remark>();
  readonly #lineOf: (path: Path) => number;
  readonly #name: string;

  /** @throws MachinesError `invalid-input` if it is not TOML, or has values that cannot be used */
  constructor(name: string, text: string) {
    const { values, lineOf } = parseToml(name, text);
    this.#name = name;
    this.#lineOf = lineOf;
    const read = fileSchema.safeParse(this.#withoutUnknown(normalized(values)));
    if (!read.success)
      throw new MachinesError(
        "invalid-input",
        read.error.issues.map(({ path, message }) => this.#problem(path as Path, message)).join("\n"),
      );
    this.root = new Table(this, read.data, []);
  }

  /** An error about a value. */
  refused(path: Path, message: string): MachinesError {
    return new MachinesError("invalid-input", this.#problem(path, message));
  }

  /** Notes that something is not in the program as it is in the file. */
  remark(path: Path, text: string): void {
    this.#remarks.set(keyOf(path), { line: this.#lineOf(path), key: pathText(path), text });
  }

  /** All remarks, by line. Every key of the file that nothing has taken is among them. */
  remarks(): readonly Remark[] {
    this.#sweep(this.root.values, []);
    return [...this.#remarks.values()].sort((a, b) => a.line - b.line);
  }

  #problem(path: Path, message: string): string {
    return `${this.#name}:${this.#lineOf(path)}: ${pathText(path)}: ${message}`;
  }

  /** Finds what is neither in the program nor explained. */
  #sweep(value: unknown, path: Path): void {
    if (value === undefined || this.taken.has(keyOf(path)) || this.#remarks.has(keyOf(path))) return;
    const inner = Array.isArray(value) ? [...value.entries()] : isObject(value) ? Object.entries(value) : [];
    if (inner.length > 0) for (const [name, one] of inner) this.#sweep(one, [...path, name]);
    else if (!isObject(value) && !Array.isArray(value))
      this.remark(path, "it has no counterpart here, and was left out");
  }

  /** The values without keys that no file has, each of which becomes a remark. */
  #withoutUnknown(values: Record<string, unknown>): Record<string, unknown> {
    for (const issue of fileSchema.safeParse(values).error?.issues ?? []) {
      if (issue.code !== "unrecognized_keys") continue;
      const around = issue.path.reduce<unknown>((at, part) => (at as Record<PropertyKey, unknown>)[part], values);
      const known = namesAt(fileSchema, issue.path as Path);
      for (const key of issue.keys) {
        const meant = didYouMean(key, known);
        const path = [...(issue.path as Path), key];
        this.remark(path, `it is not a known key${meant === undefined ? "" : `; did you mean ${meant}?`}`);
        delete (around as Record<string, unknown>)[key];
      }
    }
    return values;
  }
}

/** The values with lists in the place of single tables. */
function normalized(values: Record<string, unknown>): Record<string, unknown> {
  const named = Object.entries(values).map(([name, value]): [string, unknown] => {
    const known = aliases[name];
    return [known !== undefined && !Object.hasOwn(values, known) ? known : name, value];
  });
  return Object.fromEntries(
    named.map(([name, value]) => [name, listed.includes(name) && isObject(value) ? [value] : value]),
  );
}

/** The names that a table of the schema can have. */
function namesAt(schema: z.core.$ZodType, path: Path): readonly string[] {
  const { def } = schema._zod as { readonly def: unknown } as { def: Definition };
  if (def.innerType) return namesAt(def.innerType, path);
  const [first, ...rest] = path;
  if (first === undefined) return Object.keys(def.shape ?? {});
  const inner = def.element ?? def.valueType ?? def.shape?.[String(first)];
  return inner === undefined ? [] : namesAt(inner, rest);
}

interface Definition {
  readonly innerType?: z.core.$ZodType;
  readonly element?: z.core.$ZodType;
  readonly valueType?: z.core.$ZodType;
  readonly shape?: Readonly<Record<string, z.core.$ZodType>>;
}
