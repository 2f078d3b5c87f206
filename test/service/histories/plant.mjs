// Changes the code (bugs.ts) of the service that starts with `--import` of this file.
import { registerHooks } from "node:module";

const changes = JSON.parse(process.env.MACHINES_CHANGED_CODE ?? "[]");

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    const own = changes.filter(({ file }) => url.endsWith(file));
    if (own.length === 0) return loaded;
    let source = Buffer.from(loaded.source).toString();
    for (const { file, find, replace } of own) {
      // A change that no longer fits the code would test nothing.
      if (!source.includes(find)) throw new Error(`${file} does not contain ${find}`);
      source = source.replaceAll(find, () => replace);
    }
    return { ...loaded, source };
  },
});
