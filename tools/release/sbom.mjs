// What a release contains of others, in CycloneDX. `npm sbom` does not fit: for a workspace it leaves out most of its direct
// dependencies, and it does not know what is in the bundles.
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { inRoot } from "../lib/paths.mjs";
import { byCodeUnit } from "../lib/archive.mjs";

/**
 * @typedef {{ ref: string, component: object, needs: readonly string[] }} Part One package of others, and the refs of those it needs.
 * @typedef {{ name: string, version: string, purl: string, type?: string, parts: Map<string, Part>, direct: readonly string[] }} Content
 */

/**
 * Writes the SBOM of a file. Its time is the commit's, and its serial number follows from its content, so that it is the same every time.
 * @param {string} file
 * @param {Content} content
 * @param {{ seconds: number, license?: string }} of
 */
export function writeSbom(file, { name, version, purl, type = "library", parts, direct }, { seconds }) {
  const sorted = [...parts.values()].toSorted((a, b) => byCodeUnit(a.ref, b.ref));
  const bom = {
    metadata: {
      timestamp: new Date(seconds * 1_000).toISOString(),
      component: { "bom-ref": purl, type, name, version, purl, licenses: [{ license: { id: "Apache-2.0" } }] },
    },
    components: sorted.map(({ ref, component }) => ({ "bom-ref": ref, type: "library", ...component })),
    dependencies: [
      { ref: purl, dependsOn: direct.toSorted(byCodeUnit) },
      ...sorted.map(({ ref, needs }) => ({ ref, dependsOn: needs.toSorted(byCodeUnit) })),
    ],
  };
  const head = {
    $schema: "http://cyclonedx.org/schema/bom-1.5.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.5",
  };
  const numbered = { ...head, serialNumber: `urn:uuid:${uuidOf(JSON.stringify(bom))}`, version: 1, ...bom };
  fs.writeFileSync(file, `${JSON.stringify(numbered, null, 2)}\n`);
}

/** A UUID (version 8) that follows from a text. */
function uuidOf(text) {
  const hex = createHash("sha256").update(text).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/**
 * What an npm package contains: its dependencies in the versions of package-lock.json, and the packages in its bundles.
 * @param {string} name
 * @param {string} version
 * @param {{ dir?: string, bundled: readonly string[] }} of its workspace, if it has dependencies; and the folders of bundled packages
 * @returns {Content}
 */
export function npmContent(name, version, { dir, bundled }) {
  const { packages } = JSON.parse(fs.readFileSync(inRoot("package-lock.json"), "utf8"));
  const parts = new Map();
  const add = (at) => {
    const { ref, component } = npmPart(at, packages[at]);
    if (parts.has(ref)) return ref;
    parts.set(ref, { ref, component, needs: [] });
    parts.set(ref, { ref, component, needs: neededBy(at, packages).map(add) });
    return ref;
  };
  const direct = dir === undefined ? [] : neededBy(dir, packages).map(add);
  // Only their own code is in the bundle: what they need is bundled as well, or is not needed.
  for (const folder of bundled) {
    const at = path.relative(inRoot("."), folder);
    const { ref, component } = npmPart(at, packages[at]);
    if (!parts.has(ref)) parts.set(ref, { ref, component, needs: [] });
    direct.push(ref);
  }
  return { name, version, purl: `pkg:npm/${name}@${version}`, parts, direct: [...new Set(direct)] };
}

/** The places of the packages that one at a place needs at run time. Optional ones count if the lock file has them. */
function neededBy(at, packages) {
  const {
    dependencies = {},
    optionalDependencies = {},
    peerDependencies = {},
    peerDependenciesMeta = {},
  } = packages[at];
  const peers = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true);
  const names = new Set([...Object.keys(dependencies), ...Object.keys(optionalDependencies), ...peers]);
  return [...names].flatMap((name) => placeOf(name, at, packages) ?? []);
}

/** Where Node.js finds a package from a place; undefined if it is not installed. */
function placeOf(name, from, packages) {
  for (let dir = from; ; dir = dir.replace(/(^|\/)[^/]*$/, "")) {
    const at = path.posix.join(dir, "node_modules", name);
    if (!dir.endsWith("node_modules") && packages[at] !== undefined) return at;
    if (dir === "") return undefined;
  }
}

/** A package of npm, as the lock file describes it. */
function npmPart(at, { version, integrity, license }) {
  const name = at.slice(at.lastIndexOf("node_modules/") + "node_modules/".length);
  const ref = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const [algorithm, digest] = (integrity ?? "").split("-");
  const hashes = { sha512: "SHA-512", sha256: "SHA-256", sha1: "SHA-1" };
  const component = {
    ...{ name, version, purl: ref },
    ...(digest ? { hashes: [{ alg: hashes[algorithm], content: Buffer.from(digest, "base64").toString("hex") }] } : {}),
    ...(license ? { licenses: [licenseOf(license)] } : {}),
  };
  return { ref, component };
}

/** A license is an id, or an expression of several. */
const licenseOf = (text) => (/[\s(]/.test(text) ? { expression: text } : { license: { name: text } });

/** Parts that only have a name and a version, which may be unknown until they are installed. */
export function plainContent(of, parts) {
  const known = parts.map(({ name, version, purl }) => [
    purl,
    { ref: purl, component: { name, ...(version ? { version } : {}), purl }, needs: [] },
  ]);
  return { ...of, parts: new Map(known), direct: known.map(([ref]) => ref) };
}
