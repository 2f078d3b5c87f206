// What a program cannot say. It is left out with a remark, and its changes are ignored: nothing is silently changed (F57).
import { MachinesError } from "../../provider/client/errors.ts";
import { fieldAt, pathText } from "../../provider/core/values.ts";
import { resources } from "../../provider/registry.ts";
import type { Field } from "../../api/schema.ts";
import { isFunction } from "./languages/yaml.ts";
import type { Block, Declaration, Entry, Expression, Program, Setting } from "./program.ts";

/** What a language cannot write. Both return the reason, undefined for what it can. */
export interface Limits {
  readonly text: (text: string) => string | undefined;
  readonly key: (key: string) => string | undefined;
}

const illFormed = (text: string): string | undefined =>
  /\p{Cs}/u.test(text) ? "Pulumi cannot carry half of a surrogate pair" : undefined;

const notNormal = (text: string): string | undefined =>
  illFormed(text) ?? (text.normalize("NFC") === text ? undefined : "Pulumi's language PCL changes such accents");

/** The limits of languages. */
export const limitsOf = {
  all: { text: illFormed, key: illFormed },
  yaml: {
    text: illFormed,
    key: (key) =>
      illFormed(key) ?? (isFunction(key) ? "Pulumi's YAML takes this key for the name of a function" : undefined),
  },
  pcl: { text: notNormal, key: notNormal },
} satisfies Readonly<Record<string, Limits>>;

type Path = readonly (string | number)[];

/** Why a value cannot be written. */
class Unwritable {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

/**
 * The program without what its language cannot write, with a remark for each.
 * @param exists whether its resources exist, so that what is left out has to stay as it is
 * @throws MachinesError `refused` if it is a value that the resource requires
 */
export function withinLimits(program: Program, limits: Limits, { exists }: { readonly exists: boolean }): Program {
  const remarks: string[] = [];
  const fit = (one: Declaration, keys: readonly string[]): Declaration =>
    new Fitting(one, limits, exists, (text) => remarks.push(...keys.map((key) => `${key}: ${text}`))).result();
  const fitBlock = (block: Block): Block => {
    if (block.is === "resource") return { ...block, resource: fit(block.resource, [block.resource.key]) };
    for (const [i, row] of block.rows.entries())
      for (const [, cell] of row) if (cell.is === "literal") mustFit(cell, limits, block.keys[i]?.at(-1) ?? "");
    return {
      ...block,
      body: block.body.map((one, j) =>
        fit(
          one,
          block.keys.flatMap((keys) => keys[j] ?? []),
        ),
      ),
    };
  };
  const sections = program.sections.map(({ title, blocks }) => ({ title, blocks: blocks.map(fitBlock) }));
  const settings = program.settings.map((setting): Setting => {
    const reason = setting.isSecret || setting.default === undefined ? undefined : limits.text(setting.default);
    if (reason === undefined) return setting;
    remarks.push(`The setting ${setting.key} has no default, because ${reason}.`);
    return { key: setting.key, isSecret: false };
  });
  return { settings, sections, remarks: [...program.remarks, ...remarks] };
}

/** @throws MachinesError if a text that is required cannot be written */
function mustFit(value: Expression, limits: Limits, what: string): void {
  const reason = value.is === "literal" && typeof value.value === "string" ? limits.text(value.value) : undefined;
  if (reason !== undefined)
    throw new MachinesError("refused", `${what}: no program can have its name or a required value, because ${reason}`);
}

/** One resource, with the values that can be written. */
class Fitting {
  readonly #resource: Declaration;
  readonly #limits: Limits;
  readonly #exists: boolean;
  readonly #remark: (text: string) => void;
  readonly #ignored = new Set<string>();

  constructor(resource: Declaration, limits: Limits, exists: boolean, remark: (text: string) => void) {
    this.#resource = resource;
    this.#limits = limits;
    this.#exists = exists;
    this.#remark = remark;
  }

  result(): Declaration {
    const { key, type, name, inputs } = this.#resource;
    mustFit(name, this.#limits, key);
    const fields = resources[type]?.inputFields ?? {};
    const entries = this.#entries(
      inputs,
      (property) => fields[property],
      [],
      (property) => fields[property]?.optional,
    );
    if (entries instanceof Unwritable)
      throw new MachinesError(
        "refused",
        `${key}: no program can have a value that it requires, because ${entries.reason}`,
      );
    const ignoreChanges = [...this.#resource.ignoreChanges, ...this.#ignored];
    return { ...this.#resource, inputs: entries, ignoreChanges: [...new Set(ignoreChanges)] };
  }

  #value(expression: Expression, field: Field | undefined, path: Path): Expression | Unwritable {
    switch (expression.is) {
      case "literal": {
        const reason = typeof expression.value === "string" ? this.#limits.text(expression.value) : undefined;
        return reason === undefined ? expression : new Unwritable(reason);
      }
      case "list": {
        const items: Expression[] = [];
        for (const [i, item] of expression.items.entries()) {
          const found = this.#value(item, field && fieldAt(field, i), [...path, i]);
          // Without one of its items, the list would be another one.
          if (found instanceof Unwritable) return found;
          items.push(found);
        }
        return { is: "list", items };
      }
      case "object":
      case "map": {
        const isOptional = (name: string): boolean =>
          expression.is === "map" || (field && fieldAt(field, name))?.optional !== false;
        const fieldOf = (name: string) => field && fieldAt(field, name);
        const entries = this.#entries(expression.entries, fieldOf, path, isOptional);
        return entries instanceof Unwritable ? entries : { is: expression.is, entries };
      }
      case "id":
      case "setting":
      case "column":
        return expression;
    }
  }

  #entries(
    entries: readonly Entry[],
    fieldOf: (name: string) => Field | undefined,
    path: Path,
    isOptional: (name: string) => boolean | undefined,
  ): readonly Entry[] | Unwritable {
    const kept: Entry[] = [];
    for (const [name, value] of entries) {
      const at = [...path, name];
      const reason = this.#limits.key(name);
      const found = reason === undefined ? this.#value(value, fieldOf(name), at) : new Unwritable(reason);
      if (!(found instanceof Unwritable)) kept.push([name, found]);
      else if (isOptional(name) !== true) return found;
      else this.#leaveOut(at, found.reason);
    }
    return kept;
  }

  #leaveOut(path: Path, reason: string): void {
    const left = `${pathText(path)} is left out, because ${reason}`;
    if (!this.#exists) return this.#remark(`${left}.`);
    const writable = path.findIndex((part) => typeof part === "string" && this.#limits.text(part) !== undefined);
    const ignored = ignorable(writable < 0 ? path : path.slice(0, writable));
    this.#ignored.add(ignored);
    this.#remark(`${left}. The program ignores changes of ${ignored}.`);
  }
}

/** A path for the option `ignoreChanges`; the one around it, if Pulumi cannot read it: it has no escape for a backslash. */
export function ignorable(path: Path): string {
  const unreadable = path.findIndex((part) => typeof part === "string" && /\\(?:"|$)/.test(part));
  return pathText(unreadable < 0 ? path : path.slice(0, unreadable));
}
