// Ids as `pulumi import` takes them (R5): the parts of an object's address, joined with "/".
import { z } from "zod";
import { MachinesError } from "../client/errors.ts";
import { bareId } from "../../api/names.ts";

/** An input that accepts the id of another resource, or the name at its end (R5). */
export const idOrName = (name: z.ZodString, what: string): z.ZodString =>
  z.string().refine((id) => name.safeParse(bareId(id)).success, { error: `must be the id or the name of ${what}` });

/** Formats and parses the ids of a resource. */
export interface IdFormat<Parts extends string = string> {
  readonly parts: readonly Parts[];
  /** The form of an id, for messages: `<app>/<volumeId>`. */
  readonly form: string;
  render(values: Readonly<Record<string, unknown>>): string;
  parse(id: string): Record<Parts, string>;
}

/** A part of an id that is the same for every object of its kind. */
export interface Fixed {
  readonly fixed: string;
}

/** A fixed word that states the kind of the object: `pathId("cluster", fixed("user"), "username")`. */
export const fixed = (word: string): Fixed => ({ fixed: word });

/** An id of the named parts: `pathId("app", "volumeId")` reads and writes `my-app/vol_1`. */
export function pathId<const Parts extends string>(...path: readonly (Parts | Fixed)[]): IdFormat<Parts> {
  const form = path.map((part) => (typeof part === "string" ? `<${part}>` : part.fixed)).join("/");
  return {
    parts: path.filter((part) => typeof part === "string"),
    form,
    // An input that refers to another resource may contain its whole id (R5).
    render: (values) =>
      path.map((part) => (typeof part === "string" ? bareId(String(values[part])) : part.fixed)).join("/"),
    parse(id) {
      const found = id.split("/");
      const wrong =
        found.length !== path.length ||
        found.some((part, i) => {
          const wanted = path[i];
          return typeof wanted === "string" ? !isSegment(part) : part !== wanted?.fixed;
        });
      if (wrong) {
        const shown = JSON.stringify(id.length > 80 ? `${id.slice(0, 80)}…` : id);
        throw new MachinesError("invalid-input", `${shown} is no id of this resource; it has the form ${form}`);
      }
      const named = path.flatMap((part, i) => (typeof part === "string" ? [[part, found[i]]] : []));
      return Object.fromEntries(named) as Record<Parts, string>;
    },
  };
}

/** Whether a text can be one segment of a path without encoding. */
const isSegment = (part: string): boolean =>
  part !== "" && part !== "." && part !== ".." && !/[\u0000-\u001f\u007f%\\?#]/.test(part) && part.length <= 255;
