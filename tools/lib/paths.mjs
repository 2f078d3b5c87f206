// The paths of this clone, and what is at a path.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
export const inRoot = (...parts) => path.join(root, ...parts);
export const bin = inRoot("node_modules/.bin");
/** The native compiler. The package `typescript` is the last version with the API that Pulumi and the generator use. */
export const tsc = inRoot("node_modules/typescript-7/bin/tsc");
export const cache = inRoot("node_modules/.cache/pulumi-machines");
export const state = inRoot(".machines");
export const serviceMain = inRoot("service/dist/service/main.js");

export function isExecutable(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}
