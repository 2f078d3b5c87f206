// Ids as `pulumi import` takes them (R5): the parts of an object's address, joined with "/".
import { MachinesError } from "./errors.ts";

/** How the id of a resource is made and read. */
export interface IdFormat<Parts extends string = string> {
  readonly parts: readonly Parts[];
  /** What an id looks like, for messages: `<app>/<volumeId>`. */
  readonly form: string;
  render(values: Readonly<Record<string, unknown>>): string;
  parse(id: string): Record<Parts, string>;
}

/** An id of the named parts: `pathId("app", "volumeId")` reads and writes `my-app/vol_1`. */
export function pathId<const Parts extends string>(...parts: readonly Parts[]): IdFormat<Parts> {
  const form = parts.map((part) => `<${part}>`).join("/");
  return {
    parts,
    form,
    render: (values) => parts.map((part) => String(values[part])).join("/"),
    parse(id) {
      const found = id.split("/");
      const wrong =
        found.length !== parts.length ||
        found.some(
          (part) =>
            part === "" ||
            part === "." ||
            part === ".." ||
            /[\u0000-\u001f\u007f%\\?#]/.test(part) ||
            part.length > 255,
        );
      if (wrong) {
        const shown = JSON.stringify(id.length > 80 ? `${id.slice(0, 80)}…` : id);
        throw new MachinesError("invalid-input", `${shown} is no id of this resource; it has the form ${form}`);
      }
      return Object.fromEntries(parts.map((part, i) => [part, found[i]])) as Record<Parts, string>;
    },
  };
}
