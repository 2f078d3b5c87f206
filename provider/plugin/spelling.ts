// Names of properties as the program's language spells them. Core has the names of the package schema, which are those of
// TypeScript, Java and YAML.
import type { Field } from "../../api/schema.ts";
import { fieldAt, pathText } from "../core/values.ts";
import { components, functions, resources } from "../registry.ts";
import { parsePath } from "./propertyPath.ts";

/** How a language spells names and values. */
interface Language {
  readonly property: (name: string) => string;
  readonly function: (name: string) => string;
  /** A property with its value, as a program sets it. */
  readonly setting: (name: string, value: string) => string;
}

const snake = (name: string): string => name.replace(/(?<=.)[A-Z]+/g, (letters) => `_${letters}`).toLowerCase();
const pascal = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
const withColon = (name: string, value: string): string => `${name}: ${value}`;

const languages: Readonly<Record<string, Language>> = {
  python: {
    property: snake,
    function: snake,
    setting: (name, value) => `${name}=${pascal(value)}`,
  },
  go: {
    property: pascal,
    // Beside a resource `App`, the SDK has a `GetApp` that reads one.
    function: (name) =>
      Object.hasOwn(resources, name.replace(/^get/, "")) ? name.replace(/^get/, "Lookup") : pascal(name),
    setting: withColon,
  },
  dotnet: { property: pascal, function: pascal, setting: withColon },
};

/** Options of every resource that messages name. */
const options = ["customTimeouts", "deleteBeforeReplace", "dependsOn", "ignoreChanges", "replaceOnChanges"];

type Fields = Readonly<Record<string, Field>>;

/** What a request is about, as far as it says so. */
export interface Subject {
  getUrn?(): string;
  getTok?(): string;
  getType?(): string;
}

/** The properties of the resource or function that a request is about. */
export function fieldsOf(subject: Subject): Fields {
  const typeInUrn = subject.getUrn?.().split("::")[2]?.split("$").at(-1);
  const token = subject.getTok?.() ?? typeInUrn ?? subject.getType?.() ?? "";
  const name = token.slice(token.lastIndexOf(":") + 1);
  const known = [resources, functions, components].find((registry) => Object.hasOwn(registry, name));
  const found = known?.[name];
  return found ? { ...found.outputFields, ...found.inputFields } : {};
}

/** A quoted text; or a name or a path of names, with `: true` after it if there is one. */
const parts =
  /"(?:[^"\\]|\\.)*"|([A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$-]*|\[\d+\]|\["(?:[^"\\]|\\.)*"\])*)(?:: (true|false)\b)?/g;

/** A message in the spelling of a language; `fields` are the properties that it may name. Keys of maps are the user's. */
export function spelled(runtime: string | undefined, fields: Fields, text: string): string {
  const language = runtime !== undefined && Object.hasOwn(languages, runtime) ? languages[runtime] : undefined;
  if (!language) return text;
  const names = camelNames(fields);
  return text.replace(parts, (whole, path: string | undefined, value: string | undefined, at: number) => {
    if (path === undefined) return whole;
    const isName = /^\w+$/.test(path);
    // A word of the text may be the same as a name without capitals: only `name:` at the beginning is surely one.
    const leads = value === undefined && isLeading(text, at, path);
    if (isName && Object.hasOwn(functions, path)) return language.function(path);
    if (isName && !names.has(path) && !options.includes(path) && !(Object.hasOwn(fields, path) && (leads || value)))
      return whole;
    const name = isName ? language.property(path) : pathIn(language, fields, path);
    return value === undefined ? name : isName ? language.setting(name, value) : `${name}: ${value}`;
  });
}

/** Whether a message, or one of several in it, begins with this path and a colon. */
const isLeading = (text: string, at: number, path: string): boolean =>
  text.charAt(at + path.length) === ":" && /(^|; |\n|^[A-Z]\w+ |^\w+: )$/.test(text.slice(0, at));

function pathIn(language: Language, fields: Fields, path: string): string {
  const [first = "", ...rest] = parsePath(path);
  let field = Object.hasOwn(fields, first) ? fields[first] : undefined;
  if (!field) return path;
  const found: (string | number)[] = [language.property(String(first))];
  for (const part of rest) {
    const inner: Field | undefined = field && fieldAt(field, part);
    found.push(inner && field?.shape.kind === "object" ? language.property(String(part)) : part);
    field = inner;
  }
  return pathText(found);
}

const cached = new WeakMap<Field, ReadonlySet<string>>();

/** All names with a capital in properties and in the objects inside of them. */
function camelNames(fields: Fields): ReadonlySet<string> {
  return new Set(
    Object.entries(fields).flatMap(([name, field]) => [...(isCamel(name) ? [name] : []), ...within(field)]),
  );
}

const isCamel = (name: string): boolean => /^[a-z]\w*[A-Z]/.test(name);

function within(field: Field): ReadonlySet<string> {
  let names = cached.get(field);
  if (names) return names;
  const { shape } = field;
  names =
    shape.kind === "object"
      ? camelNames(shape.fields)
      : shape.kind === "record"
        ? within(shape.value)
        : shape.kind === "array"
          ? within(shape.item)
          : new Set();
  cached.set(field, names);
  return names;
}
