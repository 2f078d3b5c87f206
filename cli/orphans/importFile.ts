// Writes the file with which `pulumi import` adopts orphans.
import type { Orphan } from "./compare.ts";
import type { StateResource, StateProvider } from "../stackState.ts";

/** An object to import, with a name that is unique in the stack. */
export interface Import {
  readonly type: string;
  readonly name: string;
  readonly id: string;
  /** URNs of its parent component and of its provider; undefined for the stack and the default one. */
  readonly parent: string | undefined;
  readonly provider: StateProvider | undefined;
}

/** Generates unique names for imports. */
export class Names {
  readonly #taken: Set<string>;
  /** The same with their types, as `Machine web`. */
  readonly #takenOfType: Set<string>;

  constructor(resources: readonly StateResource[]) {
    const held = resources.filter(({ isPending }) => !isPending);
    this.#taken = new Set(held.map(({ name }) => name));
    this.#takenOfType = new Set(held.map(({ type, name }) => `${type} ${name}`));
  }

  /**
   * How an orphan is imported: as the resource whose creation was interrupted, or that the state has lost, or under its own
   * name.
   */
  importOf(orphan: Orphan, provider: StateProvider | undefined): Import | undefined {
    const { kind, id, name, pending, former } = orphan;
    if (!kind.isImportable) return undefined;
    const type = `machines:index:${kind.type}`;
    if (former !== undefined && !this.#takenOfType.has(`${kind.type} ${former.name}`)) {
      this.#takenOfType.add(`${kind.type} ${former.name}`);
      this.#taken.add(former.name);
      return { type, name: former.name, id, parent: former.parent, provider };
    }
    const last = id.slice(id.lastIndexOf("/") + 1);
    // An identifier or an address alone is a poor name, so its parent's name is added.
    const own = pending?.name ?? name ?? (/^[A-Za-z]/.test(last) ? last : uncapitalized(kind.type));
    return {
      type,
      name: this.#free(own.replaceAll(/[^A-Za-z0-9_-]+/g, "-")),
      id,
      parent: pending?.parent,
      provider,
    };
  }

  #free(wanted: string): string {
    let name = wanted;
    for (let count = 2; this.#taken.has(name); count++) name = `${wanted}-${count}`;
    this.#taken.add(name);
    return name;
  }
}

const uncapitalized = (type: string): string => type.slice(0, 1).toLowerCase() + type.slice(1);
const nameIn = (urn: string): string => urn.slice(urn.lastIndexOf("::") + 2);

/** A text as a single shell argument. */
export const quoted = (text: string): string =>
  /^[\w./:,=@%-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** The command that imports one. */
export function importCommand({ type, name, id, parent, provider }: Import): string {
  const around = parent === undefined ? [] : ["--parent", `parent=${parent}`];
  const through = provider === undefined ? [] : ["--provider", `provider=${provider.urn}`];
  return ["pulumi", "import", type, name, id, ...around, ...through].map(quoted).join(" ");
}

/** The text of the file for `pulumi import --file`. */
export function importFile(imports: readonly Import[]): string {
  const urns = [...new Set(imports.flatMap(({ parent, provider }) => [parent ?? [], provider?.urn ?? []].flat()))];
  // The names are only valid within the file.
  const names = new Map(urns.map((urn, i) => [urn, `${nameIn(urn)}-${i + 1}`]));
  const resources = imports.map(({ type, name, id, parent, provider }) => ({
    type,
    name,
    id,
    ...(parent === undefined ? {} : { parent: names.get(parent) }),
    ...(provider === undefined ? {} : { provider: names.get(provider.urn) }),
  }));
  const nameTable = Object.fromEntries([...names].map(([urn, name]) => [name, urn]));
  return `${JSON.stringify({ nameTable, resources }, null, 2)}\n`;
}
