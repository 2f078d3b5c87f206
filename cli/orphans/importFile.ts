// Writes the file with which `pulumi import` adopts orphans.
import type { Orphan } from "./compare.ts";
import type { StateResource, StateProvider } from "../stackState.ts";

/** An object to import, under a name that nothing else in the stack has. */
export interface Import {
  readonly type: string;
  readonly name: string;
  readonly id: string;
  /** URNs of the component around it and of its provider; undefined for the stack and the default one. */
  readonly parent: string | undefined;
  readonly provider: StateProvider | undefined;
}

/** Finds names for imports one after the other, so that no two are the same. */
export class Names {
  readonly #taken: Set<string>;

  constructor(resources: readonly StateResource[]) {
    this.#taken = new Set(resources.filter(({ isPending }) => !isPending).map(({ name }) => name));
  }

  /** How an orphan is imported: in the place in the program that its interrupted creation was for, or under its own name. */
  importOf({ kind, id, name, pending }: Orphan, provider: StateProvider | undefined): Import | undefined {
    if (!kind.isImportable) return undefined;
    const last = id.slice(id.lastIndexOf("/") + 1);
    // An identifier or an address alone is no good name, so its parent's name is added.
    const own = pending?.name ?? name ?? (/^[A-Za-z]/.test(last) ? last : uncapitalized(kind.type));
    return {
      type: `machines:index:${kind.type}`,
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

/** A text as one argument of a shell. */
export const quoted = (text: string): string =>
  /^[\w./:,=@%-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** The command that imports one. */
export function importCommand({ type, name, id, parent, provider }: Import): string {
  const around = parent === undefined ? [] : ["--parent", `parent=${parent}`];
  const through = provider === undefined ? [] : ["--provider", `provider=${provider.urn}`];
  return ["pulumi", "import", type, name, id, ...around, ...through].map(quoted).join(" ");
}

/** The text of the file that `pulumi import --file` takes. */
export function importFile(imports: readonly Import[]): string {
  const urns = [...new Set(imports.flatMap(({ parent, provider }) => [parent ?? [], provider?.urn ?? []].flat()))];
  // The names hold within the file alone.
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
