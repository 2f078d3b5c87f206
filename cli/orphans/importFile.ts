// Writes the file with which `pulumi import` adopts orphans.
import { MachinesError } from "../../provider/client/errors.ts";
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

/** An orphan and its import; undefined if it cannot be imported. */
export interface ReportedOrphan {
  readonly orphan: Orphan;
  readonly asImport: Import | undefined;
}

/**
 * What to import, and what is left out because the next `up` would delete it from another stack.
 * @param places the orphans of each endpoint
 * @param include ids of those to import nevertheless; that of an App includes all in it
 * @throws MachinesError `invalid-input` for an id of `include` that no orphan to import has
 */
export function chosenImports(
  places: readonly (readonly ReportedOrphan[])[],
  include: readonly string[] = [],
): {
  readonly imports: readonly Import[];
  readonly leftOut: readonly { readonly id: string; readonly text: string }[];
} {
  const isNamed = (name: string, { id }: Orphan): boolean => id === name || id.startsWith(`${name}/`);
  const all = places.flatMap((found) => found.filter(({ asImport }) => asImport !== undefined));
  for (const name of include)
    if (!all.some(({ orphan }) => isNamed(name, orphan)))
      throw new MachinesError("invalid-input", `--include ${name}: no orphan with this ID can be imported`);
  const others = places.flatMap((found) => {
    const apps = appsOfOthers(found);
    return found.flatMap(({ orphan, asImport }) => (asImport && isOfOthers(orphan, apps) ? [{ orphan, apps }] : []));
  });
  const left = others.filter(({ orphan }) => !include.some((name) => isNamed(name, orphan)));
  const leftOrphans = new Set(left.map(({ orphan }) => orphan));
  const texts = new Map(
    left.map(({ orphan: { kind, id }, apps }) =>
      apps.has(appIn(id)) ? [appIn(id), `App ${appIn(id)} and all in it`] : [id, `${kind.type} ${id}`],
    ),
  );
  return {
    imports: all.flatMap(({ orphan, asImport }) =>
      asImport === undefined || leftOrphans.has(orphan) ? [] : [asImport],
    ),
    leftOut: [...texts].map(([id, text]) => ({ id, text })),
  };
}

const appIn = (id: string): string => id.split("/")[0] ?? "";

/** Apps that are orphans and contain Machines of another stack: Apps have no tags of their own. */
function appsOfOthers(found: readonly ReportedOrphan[]): ReadonlySet<string> {
  const marked = new Set(found.flatMap(({ orphan }) => (orphan.createdBy === "pulumi" ? [appIn(orphan.id)] : [])));
  return new Set(
    found.flatMap(({ orphan: { kind, id, pending } }) =>
      kind.type === "App" && marked.has(id) && pending === undefined ? [id] : [],
    ),
  );
}

/** Whether another stack created an orphan, or probably did. */
const isOfOthers = ({ createdBy, id }: Orphan, apps: ReadonlySet<string>): boolean =>
  createdBy === "pulumi" || (apps.has(appIn(id)) && !["stack", "perhaps"].includes(createdBy));

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
