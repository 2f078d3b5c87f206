// Names of resources, variables and configuration keys, made from the names of objects.

/** An object that needs a name. */
export interface Named {
  readonly key: string;
  readonly type: string;
  /** Its own name; undefined if it has only an id. */
  readonly own: string | undefined;
  /** The name of the App or cluster that its name begins with; undefined if it needs none. */
  readonly place: string | undefined;
  /** The key of the Machine that alone uses it. It comes before this one. */
  readonly user?: string | undefined;
  /** Its name in the state, if that holds it. */
  readonly held?: string | undefined;
}

/** `PostgresCluster` as `postgres-cluster`. */
const kebab = (type: string): string => type.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "-").toLowerCase();

const tidy = (text: string): string => text.replaceAll(/[^A-Za-z0-9_-]+/g, "-").replaceAll(/^-+|-+$/g, "");

/**
 * Unique names of resources, by key. Names in the state stay; the others depend only on what exists, so that a second run
 * finds the same ones.
 */
export function resourceNames(all: readonly Named[], taken: Iterable<string> = []): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const used = new Set(taken);
  for (const { key, held } of all)
    if (held !== undefined) {
      names.set(key, held);
      used.add(held);
    }
  for (const one of all) {
    if (one.held !== undefined) continue;
    const wanted = wishesOf(one, one.user === undefined ? undefined : names.get(one.user));
    let name = wanted.find((text) => !used.has(text));
    for (let number = 2; name === undefined; number++)
      name = [`${wanted[0]}-${number}`].find((text) => !used.has(text));
    used.add(name);
    names.set(one.key, name);
  }
  return names;
}

/** Names in the order in which they are tried. */
function wishesOf({ type, own = "", place }: Named, user: string | undefined): readonly [string, string] {
  const word = kebab(type);
  const base = tidy(own) === "" ? word : tidy(own);
  const before = tidy(user ?? place ?? "");
  const name = before === "" || base === before || base.startsWith(`${before}-`) ? base : `${before}-${base}`;
  return [name, `${name}-${word}`];
}

/** The words of a name. */
const wordsOf = (name: string): readonly string[] =>
  name
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== "")
    .map((word) => (/^[A-Z0-9]+$/.test(word) ? word.toLowerCase() : word));

const capitalized = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1);

/** `shop-DATABASE_URL` as `shopDatabaseUrl`. */
export function camelCase(name: string): string {
  const [first = "", ...others] = wordsOf(name);
  const text = first.slice(0, 1).toLowerCase() + first.slice(1) + others.map(capitalized).join("");
  return afterLetter(text);
}

/** An identifier begins with a letter. */
const afterLetter = (text: string): string => (/^[a-z]/.test(text) ? text : `n${text}`);

/** `memoryMb` and `shop-data` as `memory_mb` and `shop_data`. */
export function snakeCase(name: string): string {
  const text = wordsOf(name)
    .map((word) => word.replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, "_").toLowerCase())
    .join("_");
  return afterLetter(text);
}

/** Hands out identifiers, each once, and none that the language has a meaning for. */
export class Identifiers {
  readonly #taken: Set<string>;
  readonly #spell: (name: string) => string;

  constructor(spell: (name: string) => string, reserved: readonly string[]) {
    this.#spell = spell;
    this.#taken = new Set(reserved);
  }

  /** @param alternative what is added to a name that is taken */
  take(name: string, alternative = ""): string {
    const wanted = [name, `${name}-${alternative}`].map(this.#spell);
    let found = wanted.find((text) => !this.#taken.has(text));
    for (let number = 2; found === undefined; number++)
      if (!this.#taken.has(`${wanted[1] ?? ""}${number}`)) found = `${wanted[1] ?? ""}${number}`;
    this.#taken.add(found);
    return found;
  }
}
