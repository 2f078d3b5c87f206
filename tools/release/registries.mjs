// Whether a registry already has a file of a release. A publication that failed halfway is run again: what is there with the same bytes
// is left alone, and other bytes under the same version are an error.
import { createHash } from "node:crypto";
import path from "node:path";
import { Stop } from "../lib/process.mjs";
import { digestOfFile } from "./digest.mjs";

/** The public registries. */
export const PUBLIC = {
  npm: "https://registry.npmjs.org",
  pypi: "https://pypi.org",
  maven: "https://repo1.maven.org/maven2",
};

/** Whether npm has the package in a file. */
export async function npmHas(file, name, version, registry = PUBLIC.npm) {
  const found = await ask(`${registry}/${name}/${version}`);
  if (found === undefined) return false;
  const { dist } = await found.json();
  return same(file, `${name}@${version} of npm`, dist.integrity, `sha512-${digestOfFile(file, "sha512", "base64")}`);
}

/** Whether PyPI has a wheel or a source distribution. */
export async function pypiHas(file, name, version, index = PUBLIC.pypi) {
  const found = await ask(`${index}/pypi/${name}/${version}/json`);
  if (found === undefined) return false;
  const { urls } = await found.json();
  const there = urls.find(({ filename }) => filename === path.basename(file));
  if (there === undefined) return false;
  return same(file, `${there.filename} of PyPI`, there.digests.sha256, digestOfFile(file));
}

/** Whether Maven Central has a file of an artifact, whose folder is given. */
export async function mavenHas(file, folder, repository = PUBLIC.maven) {
  const found = await ask(`${repository}/${folder}/${path.basename(file)}`);
  if (found === undefined) return false;
  const there = createHash("sha256")
    .update(Buffer.from(await found.arrayBuffer()))
    .digest("hex");
  return same(file, `${path.basename(file)} of Maven Central`, there, digestOfFile(file));
}

/** True, because the file is there; other bytes are an error. */
function same(file, what, there, ours) {
  if (there === ours) return true;
  throw new Stop(
    `${what} is published with other bytes than ${file}: ${there} there, ${ours} here. A version is never published twice, so release the next one.`,
  );
}

/** The answer of a registry; undefined if it has no such thing. */
async function ask(url) {
  const answer = await fetch(url, { redirect: "follow" }).catch((error) => {
    throw new Stop(`${url} cannot be read (${error.cause?.code ?? error.message}): run this job again later.`);
  });
  if (answer.status === 404) return undefined;
  if (answer.ok) return answer;
  throw new Stop(`${url} answered ${answer.status}: run this job again later.`);
}
