// The checksums of a release.
import fs from "node:fs";
import path from "node:path";
import { byCodeUnit } from "../lib/archive.mjs";
import { digestOfFile } from "./digest.mjs";

/** The file with the checksums of all others. */
export const CHECKSUMS = "SHA256SUMS";

/** Writes the checksums of the files of a folder, as `sha256sum --check` reads them. */
export function writeChecksums(folder) {
  const names = fs.readdirSync(folder).filter((name) => name !== CHECKSUMS);
  const lines = names.toSorted(byCodeUnit).map((name) => `${digestOfFile(path.join(folder, name))}  ${name}\n`);
  fs.writeFileSync(path.join(folder, CHECKSUMS), lines.join(""));
}

/** Names of files whose checksums differ between two folders, or that only one of them has. */
export function differences(one, other) {
  const [first, second] = [one, other].map(readChecksums);
  const names = [...new Set([...first.keys(), ...second.keys()])].toSorted(byCodeUnit);
  return names.filter((name) => first.get(name) !== second.get(name));
}

function readChecksums(folder) {
  const lines = fs.readFileSync(path.join(folder, CHECKSUMS), "utf8").split("\n").filter(Boolean);
  return new Map(lines.map((line) => line.split("  ").toReversed()));
}
