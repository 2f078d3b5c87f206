// Where the version of a release is written, and what a changelog says about it.
import fs from "node:fs";
import toml from "smol-toml";
import { inRoot } from "../lib/paths.mjs";
import { Stop } from "../lib/process.mjs";

const text = (file) => fs.readFileSync(inRoot(file), "utf8");
const json = (file) => JSON.parse(text(file));

/** Every place that has the version, and the version there. The first one is written by hand; the others follow from it. */
function placesOfVersion() {
  const schema = json("provider/schema.json");
  const java = "sdk/java/src/main/resources/io/github/pulumimachines/machines";
  const { packages } = json("package-lock.json");
  const manifests = ["sdk/nodejs", "", "sdk/nodejs-plugin", "service", "policy"];
  return [
    ...manifests.map((dir) => [`${dir}${dir && "/"}package.json`, json(`${dir || "."}/package.json`).version]),
    ...manifests.map((dir) => [`package-lock.json, ${dir || "its root"}`, packages[dir].version]),
    ["sdk/nodejs-plugin/package.json, pulumi.version", json("sdk/nodejs-plugin/package.json").pulumi.version],
    ["provider/schema.json", schema.version],
    ["sdk/python/pyproject.toml", toml.parse(text("sdk/python/pyproject.toml")).project.version],
    ...[
      "sdk/python/pulumi_machines/pulumi-plugin.json",
      "sdk/go/machines/pulumi-plugin.json",
      "sdk/dotnet/pulumi-plugin.json",
      `${java}/plugin.json`,
    ].map((file) => [file, json(file).version]),
    ["sdk/java/pom.xml", /<version>(.*?)<\/version>/.exec(text("sdk/java/pom.xml"))?.[1]],
    [
      "sdk/dotnet/PulumiMachines.Machines.csproj",
      /<Version>(.*?)<\/Version>/.exec(text("sdk/dotnet/PulumiMachines.Machines.csproj"))?.[1],
    ],
    ["sdk/dotnet/version.txt", text("sdk/dotnet/version.txt").trim()],
    [`${java}/version.txt`, text(`${java}/version.txt`).trim()],
  ].map(([place, version]) => ({ place, version }));
}

/** The version, if it is the same everywhere. */
export function versionEverywhere(places = placesOfVersion()) {
  const [{ version }] = places;
  const others = places.filter((other) => other.version !== version);
  if (others.length === 0) return version;
  const list = others.map(({ place, version: other }) => `  ${place} has ${other ?? "none"}`).join("\n");
  throw new Stop(
    `${places[0].place} has version ${version}, but not every place does:\n${list}\nRun \`npm run generate\` and \`npm install\`; a package.json that neither writes is edited by hand.`,
  );
}

/** The notes of a version: the text of its section in a changelog; undefined if it has none, or an empty one. */
export function notesOf(changelog, version) {
  const lines = changelog.split("\n");
  const isHeading = (line) => line.startsWith("## [");
  const start = lines.findIndex((line) => line === `## [${version}]` || line.startsWith(`## [${version}] - `));
  if (start < 0) return undefined;
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => isHeading(line) || /^\[[^\]]+\]: /.test(line));
  const notes = rest
    .slice(0, end < 0 ? undefined : end)
    .join("\n")
    .trim();
  return notes === "" ? undefined : notes;
}

/** Notes as a page outside of the repository shows them: links to files of it lead to the tag. */
export const withWholeLinks = (notes, homepage, ref) =>
  notes.replaceAll(/\]\((?!https?:|#)([^)\s]+)\)/g, `](${homepage}/blob/${ref}/$1)`);
