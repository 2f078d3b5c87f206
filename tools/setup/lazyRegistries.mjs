// A registry names everything there is, and as it is written a bundle would build all of it at every start: hundreds of
// schemas, of which a run needs those of two or three types. In a bundle each entry is a getter instead, which builds what it
// names when it is first asked for. Whoever reads a registry notices nothing; its names are there without building anything.
import { inRoot } from "../lib/paths.mjs";

const registries = ["provider/registry.ts", "api/index.ts"].map((file) => inRoot(file));

/** The plugin of rolldown that rewrites the registries. */
export const lazyRegistries = {
  name: "lazy-registries",
  transform: {
    filter: { id: registries },
    handler: (code, id) => lazy(code, id),
  },
};

/** A registry with a getter for each entry. `require` is the bundler's: the module stays in the same file, and is run by it. */
function lazy(code, id) {
  const files = new Map();
  const withoutImports = code.replace(/^import \{ (\w+) \} from ("\.\/[\w/]+\.ts");$/gm, (_, name, file) => {
    files.set(name, file);
    return "";
  });
  const entries = new Set();
  const rewritten = withoutImports.replace(/^ {2}(?:(\w+): )?(\w+),$/gm, (line, key, name) => {
    if (!files.has(name)) return line;
    entries.add(name);
    return `  get ${key ?? name}() { return (made.${name} ??= require(${files.get(name)}).${name}); },`;
  });
  // An entry that was overlooked would be no mistake that a test finds, but a slow start.
  const overlooked = /^import (?!type )/m.test(rewritten) || entries.size === 0 || entries.size !== files.size;
  if (overlooked) throw new Error(`${id} is no list of imported names any more: tools/setup/lazyRegistries.mjs`);
  return `const made: Record<string, any> = {};\n${rewritten}`;
}
