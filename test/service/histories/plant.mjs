// Changes the code (bugs.ts) of the service that starts with `--import` of this file.
import { registerHooks } from "node:module";

const { folder, changes } = JSON.parse(process.env.MACHINES_CHANGED_CODE);

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.startsWith(folder) || !loaded.source) return loaded;
    let source = Buffer.from(loaded.source).toString();
    for (const { find, replace } of changes) source = source.replaceAll(find, () => replace);
    return { ...loaded, source };
  },
});
