// Imports of the service only go down: a file imports from its own layer and from the layers below it.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { inRoot } from "./paths.mjs";

/** The layers from the lowest to the highest: folders, and files without their extension. */
export const layers = [
  ["refusal", "ids", "requireNode"],
  ["states", "crypto"],
  ["store"],
  ["time"],
  ["runtime"],
  ["context"],
  ["lifecycle"],
  ["rules"],
  ["faults", "validation"],
  ["openapi"],
  ["http"],
  ["service"],
  ["local"],
  ["commands"],
  ["index", "main"],
];

const rankOf = (name) => layers.findIndex((names) => names.includes(name));
const layerOf = (file) => file.split("/")[0].replace(/\.ts$/, "");

/** The imports of one file that go up, as sentences that begin with its name. Paths are those below `service/`. */
export function upwardImports(file, text) {
  const own = layerOf(file);
  if (rankOf(own) < 0) return [`service/${file}: add "${own}" to the layers in tools/lib/layers.mjs`];
  const targets = [...text.matchAll(/^(?:import|export|\}).*?(?: from )?"(\.[^"]+)";$/gm)]
    .map(([, target]) => path.posix.join(path.posix.dirname(file), target))
    .filter((target) => !target.startsWith(".."));
  return targets
    .filter((target) => layerOf(target) !== own && rankOf(layerOf(target)) >= rankOf(own))
    .map((target) => `service/${file} imports service/${target}: "${layerOf(target)}" is not below "${own}"`);
}

/** The check: every source file of the service. */
export async function checkLayers() {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "service"], {
    cwd: inRoot("."),
    encoding: "utf8",
  });
  const files = listed.split("\0").filter((file) => file.endsWith(".ts") && fs.existsSync(inRoot(file)));
  const wrong = files.flatMap((file) =>
    upwardImports(file.replace("service/", ""), fs.readFileSync(inRoot(file), "utf8")),
  );
  return { code: wrong.length > 0 ? 1 : 0, output: wrong.join("\n") };
}
