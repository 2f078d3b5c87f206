// What must be true of the files of every release.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv, type ValidateFunction } from "ajv";

/** The names of the files of a folder that its SHA256SUMS does not have, or has with another checksum. */
export function wrongChecksums(folder: string): string[] {
  const lines = readFileSync(join(folder, "SHA256SUMS"), "utf8").trimEnd().split("\n");
  const sums = new Map(lines.map((line) => [line.slice(66), line.slice(0, 64)] as const));
  const names = new Set([...sums.keys(), ...readdirSync(folder)]);
  names.delete("SHA256SUMS");
  return [...names].filter((name) => {
    const sum = createHash("sha256")
      .update(readFileSync(join(folder, name)))
      .digest("hex");
    return sums.get(name) !== sum;
  });
}

/** A list of contents, as far as tests read it. */
export interface Bom {
  readonly metadata: { readonly timestamp: string; readonly component: { readonly purl: string } };
  readonly components: readonly { readonly name: string; readonly version?: string }[];
}

let validator: ValidateFunction | undefined;

/** Reads a list of contents, and throws if the schema of CycloneDX refuses it. */
export function readBom(file: string): Bom {
  const bom: unknown = JSON.parse(readFileSync(file, "utf8"));
  validator ??= compile();
  if (!validator(bom)) throw new Error(`${file}: ${JSON.stringify(validator.errors?.slice(0, 5), null, 2)}`);
  return bom as Bom;
}

/** The schema of the version that we write, with those that it refers to. */
function compile(): ValidateFunction {
  const schemas = "node_modules/@cyclonedx/cyclonedx-library/res/schema";
  const read = (name: string): object =>
    JSON.parse(readFileSync(join(schemas, `${name}.SNAPSHOT.schema.json`), "utf8")) as object;
  // Formats such as idn-email are of a part of JSON Schema that Ajv does not have.
  const ajv = new Ajv({ strict: false, validateFormats: false });
  for (const name of ["spdx", "jsf-0.82"])
    ajv.addSchema(read(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`);
  return ajv.compile(read("bom-1.5"));
}
