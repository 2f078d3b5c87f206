// The npm packages in the bundles: they are published with them, and no package.json lists them.
import fs from "node:fs";
import path from "node:path";
import { cache } from "../lib/paths.mjs";

const file = path.join(cache, "bundled.json");
const found = new Map();

/** Notes that a bundle in a folder has these modules. */
export function noteBundled(dir, modules) {
  const packages = found.get(dir) ?? new Set();
  for (const module of modules) {
    const [folder] = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(module) ?? [];
    if (folder !== undefined) packages.add(folder);
  }
  found.set(dir, packages);
}

/** Writes down what was noted. */
export function writeBundled() {
  fs.mkdirSync(cache, { recursive: true });
  fs.writeFileSync(file, JSON.stringify([...found].map(([dir, packages]) => ({ dir, packages: [...packages] }))));
}

/** The folders of the packages whose code the last build has put into bundles below a folder. */
export function bundledBelow(folder) {
  const bundles = JSON.parse(fs.readFileSync(file, "utf8"));
  const below = bundles.filter(({ dir }) => dir === folder || dir.startsWith(`${folder}${path.sep}`));
  return [...new Set(below.flatMap(({ packages }) => packages))];
}
