// Whether a registry of images has the image of a version.
import { execFileSync } from "node:child_process";
import { Stop } from "../lib/process.mjs";

const REVISION = "org.opencontainers.image.revision";

/** The digest of an image, if it is of this commit; undefined if there is none. */
export function publishedImage(image, commit) {
  let found;
  try {
    found = JSON.parse(inspect(image, "{{json .}}"));
  } catch (error) {
    if (/not found/.test(`${error.stderr}`)) return undefined;
    throw new Stop(`${image} cannot be read (${`${error.stderr ?? error.message}`.trim()}): run this job again later.`);
  }
  return digestOf(found, image, commit);
}

/** The digest in what `docker buildx imagetools inspect` prints; an image of another commit is an error. */
export function digestOf({ manifest, image: images }, image, commit) {
  // Several platforms are an object by platform, one is its configuration.
  const configurations = "config" in images ? [images] : Object.values(images);
  const revisions = new Set(configurations.map(({ config }) => config?.Labels?.[REVISION]));
  if (revisions.size === 1 && revisions.has(commit)) return manifest.digest;
  throw new Stop(
    `${image} is published from ${[...revisions].join(" and ")}, not from ${commit}: release the next version.`,
  );
}

const inspect = (image, format) =>
  execFileSync("docker", ["buildx", "imagetools", "inspect", image, "--format", format], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
