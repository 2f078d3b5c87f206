// Checks that imports only go down: a file imports from its own layer and from lower layers, and never itself through others.
import path from "node:path";
import { repositoryFiles, textOf } from "./files.mjs";

/** By folder, its layers from the lowest to the highest: folders, and files without their extension. */
export const layers = {
  "": [["api"], ["provider", "service"], ["policy"], ["cli"]],
  provider: [
    ["client"],
    ["core"],
    ["shared"],
    ["apps", "certificates", "machines", "secrets"],
    ["postgres", "volumes"],
    ["fleets", "releases"],
    ["cost"],
    ["registry"],
    ["dynamic", "plugin"],
    ["main"],
  ],
  service: [
    [
      "refusal",
      "ids",
      "ownCommand",
      "reasonOf",
      "requestAddress",
      "requireNode",
      "sqliteCode",
      "version",
      "withResolvers",
    ],
    ["releases"],
    ["states", "crypto"],
    ["replication"],
    ["store"],
    ["history", "watch"],
    ["time"],
    ["runtime"],
    ["context"],
    ["lifecycle"],
    ["rules", "proxy"],
    ["faults", "hosts", "identity", "usage", "validation"],
    ["openapi"],
    ["http"],
    ["console"],
    ["service"],
    ["backup"],
    ["local"],
    ["setup"],
    ["commands"],
    ["index", "main"],
  ],
};

/** The layer of a path below a folder. */
const layerOf = (file) => file.split("/")[0].replace(/\.ts$/, "");

/** The path below a folder; undefined if it is elsewhere. */
const below = (folder, file) =>
  folder === "" ? file : file.startsWith(`${folder}/`) ? file.slice(folder.length + 1) : undefined;

/** The paths that a file imports from the repository: values, types, and what it loads later. */
function importsOf(file, text) {
  return [...text.matchAll(/^(?:import|export|\}).*?(?: from )?"(\.[^"]+)";$|\bimport\("(\.[^"]+)"\)/gm)].map(
    ([, first, later]) => path.posix.join(path.posix.dirname(file), first ?? later),
  );
}

/** The upward imports of one file, as sentences that begin with its path from the root of the repository. */
export function upwardImports(file, text) {
  const targets = importsOf(file, text);
  return Object.entries(layers).flatMap(([folder, order]) => {
    const inFolder = below(folder, file);
    if (inFolder === undefined) return [];
    const rankOf = (layer) => order.findIndex((names) => names.includes(layer));
    const own = layerOf(inFolder);
    if (rankOf(own) < 0) return [`${file}: add "${own}" to the layers in tools/lib/layers.mjs`];
    return targets
      .filter((target) => {
        const layer = below(folder, target) === undefined ? own : layerOf(below(folder, target));
        return layer !== own && (rankOf(layer) < 0 || rankOf(layer) >= rankOf(own));
      })
      .map((target) => `${file} imports ${target}: "${layerOf(below(folder, target))}" is not below "${own}"`);
  });
}

/**
 * The circles of files, imports of types included, as sentences: each file of a circle is in one of them. Such a file can neither be
 * read nor changed without the others.
 */
export function circles(texts) {
  const files = Object.keys(texts);
  const imports = new Map(
    files.map((file) => [file, importsOf(file, texts[file]).filter((target) => Object.hasOwn(texts, target))]),
  );
  const named = new Set();
  return files.flatMap((file) => {
    const circle = named.has(file) ? undefined : wayBack(file, imports);
    if (circle === undefined) return [];
    for (const one of circle) named.add(one);
    return [`a circle of imports: ${[...circle, file].join(" → ")}`];
  });
}

/** The files on the shortest way from a file through its imports back to it; undefined if there is none. */
function wayBack(file, imports) {
  const seen = new Set();
  const ways = [[file]];
  // The loop also visits the ways that are added meanwhile.
  for (const way of ways)
    for (const target of imports.get(way.at(-1))) {
      if (target === file) return way;
      if (seen.has(target)) continue;
      seen.add(target);
      ways.push([...way, target]);
    }
  return undefined;
}

/** The check: the layers of every source file of the product, and the circles of all files by hand. */
export async function checkLayers() {
  const product = textsOf([".ts"], layers[""].flat());
  const wrong = Object.entries(product).flatMap(([file, text]) => upwardImports(file, text));
  const all = textsOf([".ts", ".tsx", ".mts", ".mjs"], [".", ":!sdk/nodejs-plugin"]);
  wrong.push(...circles(all));
  return { code: wrong.length > 0 ? 1 : 0, output: wrong.join("\n") };
}

/** The texts of the files with one of these extensions, by their paths from the root of the repository. */
function textsOf(extensions, paths) {
  const files = repositoryFiles(...paths).filter((file) => extensions.includes(path.extname(file)));
  return Object.fromEntries(files.map((file) => [file, textOf(file)]));
}
