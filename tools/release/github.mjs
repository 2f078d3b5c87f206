// The release on GitHub, and the tag of the Go module.
import { execFileSync } from "node:child_process";
import path from "node:path";
import { say, Stop } from "../lib/process.mjs";
import { digestOfFile } from "./digest.mjs";

const SIGNATURE = /\.sigstore\.json$/;

/**
 * Which files a release on GitHub lacks. Another file of the same name is an error, except for a signature: each is different, and valid.
 * @param {readonly string[]} files
 * @param {readonly { name: string, digest: string }[]} assets
 */
export function missingAssets(files, assets) {
  return files.filter((file) => {
    const asset = assets.find(({ name }) => name === path.basename(file));
    if (asset === undefined) return true;
    const ours = `sha256:${digestOfFile(file)}`;
    if (asset.digest === ours || SIGNATURE.test(asset.name)) return false;
    throw new Stop(
      `The release on GitHub has another ${asset.name}: ${asset.digest} there, ${ours} here. Release the next version instead.`,
    );
  });
}

/** Publishes the release of a tag with files, or adds what an earlier attempt did not upload. */
export function publishRelease(tag, files, notes) {
  const gh = (...args) => execFileSync("gh", args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  const releases = JSON.parse(gh("release", "list", "--limit", "1000", "--json", "tagName"));
  if (!releases.some(({ tagName }) => tagName === tag)) {
    const kind = tag.includes("-") ? ["--prerelease"] : [];
    // A draft, so that no release can be seen without its archives.
    gh("release", "create", tag, "--verify-tag", "--draft", "--title", tag, "--notes-file", notes, ...kind);
  }
  const { assets } = JSON.parse(gh("release", "view", tag, "--json", "assets"));
  for (const file of missingAssets(files, assets)) {
    say(`  ${path.basename(file)} …`);
    gh("release", "upload", tag, file);
  }
  gh("release", "edit", tag, "--draft=false");
}

/** Pushes a tag at the commit that is checked out, unless it is there. Returns whether it was pushed. */
export function pushTag(tag, cwd) {
  const git = (...args) =>
    execFileSync("git", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();
  const commit = git("rev-parse", "HEAD");
  const [there] = git("ls-remote", "origin", `refs/tags/${tag}`).split("\t");
  if (there === commit) return false;
  if (there)
    throw new Stop(
      `The tag ${tag} is at ${there}, not at ${commit}. Go's proxy keeps what it has seen: release the next version.`,
    );
  git("push", "--quiet", "origin", `${commit}:refs/tags/${tag}`);
  return true;
}
