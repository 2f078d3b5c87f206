// A registry lists every type and function, and a plain bundle would create all of their schemas at every start, although a
// run needs only two or three. In a bundle each entry is therefore a getter, which creates its value on first use. Users of
// a registry see no difference; its names are available without creating anything.
import { inRoot } from "../lib/paths.mjs";

const registries = ["provider/registry.ts", "api/index.ts"].map((file) => inRoot(file));

/** The rolldown plugin that rewrites the registries. */
export const lazyRegistries = {
  name: "lazy-registries",
  transform: {
    filter: { id: registries },
    handler: (code, id) => lazy(code, id),
  },
};

/**
 * A registry with a getter for each entry. `require` is the bundler's: the module stays in the same file, and is run by it.
 */
function lazy(code, id) {
  const files = new Map();
  const withoutImports = code.replace(/^import \{([\w,\s]+)\} from ("\.\/[\w/]+\.ts");$/gm, (_, names, file) => {
    for (const name of names.match(/\w+/g)) files.set(name, file);
    return "";
  });
  const entries = new Set();
  const rewritten = withoutImports.replace(/^ {2}(?:(\w+): )?(\w+),$/gm, (line, key, name) => {
    if (!files.has(name)) return line;
    entries.add(name);
    return `  get ${key ?? name}() { return (made.${name} ??= require(${files.get(name)}).${name}); },`;
  });
  // A missed entry would not fail any test, but slow down the start.
  const overlooked = /^import (?!type )/m.test(rewritten) || entries.size === 0 || entries.size !== files.size;
  if (overlooked) throw new Error(`${id} is no list of imported names any more: tools/setup/lazyRegistries.mjs`);
  return `const made: Record<string, any> = {};\n${rewritten}`;
}
