// Makes a program of the objects that were found.
import { isObject, type Field } from "../../api/schema.ts";
import { bareId } from "../../api/names.ts";
import { kindOf, type Values } from "../../provider/core/resource.ts";
import { fieldAt } from "../../provider/core/values.ts";
import { resources } from "../../provider/registry.ts";
import { ignorable } from "./limits.ts";
import { secretIn } from "../../policy/core/secretText.ts";
import type { Import } from "../orphans/importFile.ts";
import { isSealed } from "../stackState.ts";
import type { Discovery, Found } from "./discovery.ts";
import { grouped } from "./grouped.ts";
import { blocksOf } from "./loops.ts";
import { camelCase, resourceNames, type Named } from "./names.ts";
import {
  idsIn,
  literal,
  type Declaration,
  type Entry,
  type Expression,
  type Program,
  type Section,
  type Setting,
} from "./program.ts";
import { rankOf, typeNamed, unreadableOf } from "./types.ts";

/** Whether an input says what the provider or the service would decide anyway. */
const isDecided = (property: string, value: unknown): boolean =>
  property === "organization" || (property === "network" && value === "default");

/** The program that declares the objects. */
export function programOf({ found, remarks }: Discovery): Program {
  const names = namesOf(found);
  const settings = new Settings();
  const keys = new Set(found.map(({ key }) => key));
  const declared = found.map((one) => declarationOf(one, names.get(one.key) ?? one.id, { keys, settings }));
  const usersOf = new Map<string, string[]>();
  for (const { key, inputs } of declared)
    for (const id of inputs.flatMap(([, value]) => idsIn(value))) usersOf.set(id, [...(usersOf.get(id) ?? []), key]);
  const places = grouped(declared, ({ id }) => placeIn(id));
  const titles = [...places].map(([place, members]) => {
    const holder = members.find(({ id }) => id === place);
    const isCluster = members.some(({ type }) => type.startsWith("Postgres"));
    const name = found.find(({ id }) => id === place)?.name ?? place;
    return { isCluster, title: `${isCluster ? "Postgres cluster" : "App"} ${name}`, members, holder };
  });
  const sections = titles
    .sort((a, b) => Number(a.isCluster) - Number(b.isCluster) || (a.title < b.title ? -1 : 1))
    .map(({ title, members }): Section => ({ title, blocks: blocksOf(members.sort(byType), usersOf) }));
  return { settings: settings.all, sections, remarks };
}

const placeIn = (id: string): string => id.split("/")[0] ?? "";

const byType = (a: Declaration, b: Declaration): number => rankOf(a.type) - rankOf(b.type) || (a.key < b.key ? -1 : 1);

/** The imports of objects under their names, in an order in which a resource comes after its App or cluster. */
export const importsOf = (found: readonly Found[], names: ReadonlyMap<string, string>): readonly Import[] =>
  found
    .toSorted((a, b) => rankOf(a.type) - rankOf(b.type) || (a.key < b.key ? -1 : 1))
    .map(({ key, type, id, held }) => ({
      type: `machines:index:${type}`,
      name: names.get(key) ?? id,
      id: held?.id ?? id,
      parent: undefined,
      provider: undefined,
    }));

/**
 * Names of all resources. Apps and clusters choose first, so that their names stay what people know. With several Apps, the
 * names of resources in an App begin with the name of that App.
 */
export function namesOf(found: readonly Found[]): ReadonlyMap<string, string> {
  const users = new Map<string, string[]>();
  for (const { key, type, id, inputs } of found)
    if (type === "Machine")
      for (const volume of mountsOf(inputs)) {
        const of = `Volume ${placeIn(id)}/${bareId(volume)}`;
        users.set(of, [...(users.get(of) ?? []), key]);
      }
  const nameOf = new Map(found.map(({ key, name }) => [key, name]));
  const places = ["App", "PostgresCluster"].map((kind) => found.filter(({ type }) => type === kind));
  const [isOneApp, isOneCluster] = places.map(({ length }) => length <= 1);
  const named = found.map(({ key, type, id, name, held, terraformName }): Named => {
    if (terraformName !== undefined) return { key, type, held: held?.name, own: terraformName, place: undefined };
    const [place, ...rest] = id.split("/") as [string, ...string[]];
    const isInCluster = type.startsWith("Postgres");
    const mounting = users.get(key) ?? [];
    // Hostnames are unique everywhere.
    const hasPlain = rest.length === 0 || type.endsWith("Certificate") || (isInCluster ? isOneCluster : isOneApp);
    return {
      ...{ key, type, held: held?.name },
      own:
        type === "PostgresAttachment" ? `${nameOf.get(`PostgresCluster ${place}`) ?? place}-${rest.join("-")}` : name,
      place:
        hasPlain || type === "PostgresAttachment"
          ? undefined
          : (nameOf.get(`${isInCluster ? "PostgresCluster" : "App"} ${place}`) ?? place),
      user: mounting.length === 1 ? mounting[0] : undefined,
    };
  });
  const rank = (type: string): number => rankOf(type === "Volume" ? "Machine" : type) + (type === "Volume" ? 0.5 : 0);
  return resourceNames(named.sort((a, b) => rank(a.type) - rank(b.type) || (a.key < b.key ? -1 : 1)));
}

function mountsOf(inputs: Values): readonly string[] {
  const { mounts } = isObject(inputs["config"]) ? inputs["config"] : {};
  return Array.isArray(mounts)
    ? mounts.flatMap((one: unknown) => (isObject(one) && typeof one["volume"] === "string" ? [one["volume"]] : []))
    : [];
}

interface Context {
  readonly keys: ReadonlySet<string>;
  readonly settings: Settings;
}

function declarationOf(found: Found, name: string, { keys, settings }: Context): Declaration {
  const { key, type, id } = found;
  const resource = resources[type];
  const place = placeIn(id);
  const ignoreChanges: string[] = [];
  const inputs: Entry[] = [];
  const writer = new ValueWriter({ keys, settings, place, ignoreChanges, name });
  for (const [property, field] of Object.entries(resource?.inputFields ?? {})) {
    if (unreadableOf(type).includes(property)) {
      const own = type === "Secret" ? `${place} ${found.name ?? ""}` : `${place} ${found.name ?? ""} ${property}`;
      inputs.push([property, settings.secret(own, `${key} ${property}`)]);
      ignoreChanges.push(property);
      continue;
    }
    const value = found.inputs[property] ?? behaviourIn(found, property, field);
    if (value === undefined || isDecided(property, value)) continue;
    inputs.push([property, writer.value(field, value, [property])]);
  }
  return { ...{ key, type, id, inputs, ignoreChanges }, name: literal(name) };
}

/** What the program said about the provider, if the state holds the object. */
function behaviourIn({ held }: Found, property: string, field: Field): unknown {
  const value = kindOf(field) === "behaviour" ? held?.inputs[property] : undefined;
  return value === undefined || isSealed(value) || value === field.default ? undefined : value;
}

interface Around extends Context {
  readonly place: string;
  readonly name: string;
  readonly ignoreChanges: string[];
}

class ValueWriter {
  readonly #around: Around;

  constructor(around: Around) {
    this.#around = around;
  }

  value(field: Field | undefined, value: unknown, path: readonly (string | number)[]): Expression {
    const { shape, meta } = field ?? {};
    if (meta?.format === "reference" && typeof value === "string") return this.#reference(value, path);
    if (Array.isArray(value))
      return {
        is: "list",
        items: value.map((item: unknown, i) => this.value(field && fieldAt(field, i), item, [...path, i])),
      };
    if (isObject(value)) {
      const entries = Object.entries(value).map(([name, inner]): Entry => [
        name,
        this.value(field && fieldAt(field, name), inner, [...path, name]),
      ]);
      return shape?.kind === "object" ? { is: "object", entries } : { is: "map", entries };
    }
    if (typeof value === "string") return this.#text(field, value, path);
    return literal(typeof value === "number" || typeof value === "boolean" ? value : null);
  }

  #reference(value: string, path: readonly (string | number)[]): Expression {
    const { keys, place } = this.#around;
    const last = [...path].reverse().find((part) => typeof part === "string");
    const inputs = [
      `${place}/${bareId(value)}`,
      value,
      `${place}/user/${bareId(value)}`,
      `${place}/database/${bareId(value)}`,
    ];
    const type = typeNamed(String(last));
    const of = inputs.map((id) => `${type} ${id}`).find((key) => keys.has(key));
    return of === undefined ? literal(value) : { is: "id", of };
  }

  #text(field: Field | undefined, value: string, path: readonly (string | number)[]): Expression {
    const { settings, place, name, ignoreChanges } = this.#around;
    const last = String(path.at(-1));
    if (path.length === 2 && path[0] === "config" && last === "image") return settings.image(place, name, value);
    const isSensitive = field?.meta.sensitive === true || field?.meta.secret === true || path.includes("env");
    if (!isSensitive || !looksSecret(last, value, field)) return literal(value);
    ignoreChanges.push(ignorable(path));
    return settings.secret(`${place} ${last}`, `${place} ${last} ${value}`);
  }
}

function looksSecret(name: string, value: string, field: Field | undefined): boolean {
  const texts = field?.meta.format === "bytes" ? [Buffer.from(value, "base64").toString()] : [value];
  return (
    field?.meta.secret === true || texts.some((text) => secretIn(name, text, { names: [], entropy: 4.2 }) !== undefined)
  );
}

/** The configuration that the program reads. */
class Settings {
  readonly #byValue = new Map<string, Setting>();
  readonly #keys = new Set<string>();

  get all(): readonly Setting[] {
    return [...this.#byValue.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** A secret. Equal values in an App share one. */
  secret(name: string, value: string): Expression {
    return this.#setting(name, `secret ${value}`, (key) => ({ key, isSecret: true }));
  }

  /** The image that Machines of an App run. */
  image(place: string, name: string, image: string): Expression {
    return this.#setting([`${place} image`, `${name} image`], `image ${place} ${image}`, (key) => ({
      key,
      isSecret: false,
      default: image,
    }));
  }

  #setting(names: string | readonly string[], value: string, make: (key: string) => Setting): Expression {
    let setting = this.#byValue.get(value);
    if (!setting) {
      const wanted = [names].flat().map(camelCase);
      let key = wanted.find((one) => !this.#keys.has(one));
      for (let number = 2; key === undefined; number++)
        if (!this.#keys.has(`${wanted.at(-1) ?? ""}${number}`)) key = `${wanted.at(-1) ?? ""}${number}`;
      this.#keys.add(key);
      setting = make(key);
      this.#byValue.set(value, setting);
    }
    return { is: "setting", key: setting.key };
  }
}
