// Checks that imports only go down: a file imports from its own layer and from lower layers.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { inRoot } from "./paths.mjs";

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
    ["registry"],
    ["dynamic", "plugin"],
    ["main"],
  ],
  service: [
    ["refusal", "ids", "ownCommand", "requestAddress", "requireNode", "version"],
    ["states", "crypto"],
    ["store"],
    ["time"],
    ["runtime"],
    ["context"],
    ["lifecycle"],
    ["rules", "proxy"],
    ["faults", "validation"],
    ["openapi"],
    ["http"],
    ["console"],
    ["service"],
    ["local"],
    ["commands"],
    ["index", "main"],
  ],
};

/** The layer of a path below a folder. */
const layerOf = (file) => file.split("/")[0].replace(/\.ts$/, "");

/** The path below a folder; undefined if it is elsewhere. */
const below = (folder, file) =>
  folder === "" ? file : file.startsWith(`${folder}/`) ? file.slice(folder.length + 1) : undefined;

/** The upward imports of one file, as sentences that begin with its path from the root of the repository. */
export function upwardImports(file, text) {
  const targets = [...text.matchAll(/^(?:import|export|\}).*?(?: from )?"(\.[^"]+)";$/gm)].map(([, target]) =>
    path.posix.join(path.posix.dirname(file), target),
  );
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

/** The check: every source file of the product. */
export async function checkLayers() {
  const listed = execFileSync(
    "git",
    ["ls-files", "-z", "--cached", "--others", "--exclude-standard", ...layers[""].flat()],
    { cwd: inRoot("."), encoding: "utf8" },
  );
  const files = listed.split("\0").filter((file) => file.endsWith(".ts") && fs.existsSync(inRoot(file)));
  const wrong = files.flatMap((file) => upwardImports(file, fs.readFileSync(inRoot(file), "utf8")));
  return { code: wrong.length > 0 ? 1 : 0, output: wrong.join("\n") };
}
