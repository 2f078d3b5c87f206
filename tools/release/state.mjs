// Whether the clone is in a state from which a version can be released.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { inRoot } from "../lib/paths.mjs";

const git = (...args) => execFileSync("git", args, { cwd: inRoot("."), encoding: "utf8", stdio: "pipe" }).trimEnd();

/** The time of the commit in seconds: that of everything in a release that must have a time. */
export const timeOfCommit = () => Number(git("log", "-1", "--format=%ct"));

/** The commit that is checked out. */
export const commit = () => git("rev-parse", "HEAD");

/** What speaks against releasing a version from this clone, as sentences. */
export function problemsOf(version, notes) {
  const problems = [];
  const changed = git("status", "--porcelain").split("\n").filter(Boolean);
  if (changed.length > 0)
    problems.push(
      `${changed.length} files differ from the commit, first ${changed[0].slice(3)}: commit or remove them.`,
    );
  const tagged = commitOfTag(`v${version}`);
  if (tagged !== undefined && tagged !== commit())
    problems.push(
      `The tag v${version} is at another commit, ${tagged.slice(0, 12)}: that version is released, so set the next one.`,
    );
  if (notes === undefined)
    problems.push(`CHANGELOG.md has no section [${version}]: rename [Unreleased], and begin an empty one above it.`);
  if (!fs.existsSync(inRoot("test/upgrade", version)))
    problems.push(`test/upgrade/${version} does not exist: run \`npm run record-upgrade\` and commit it.`);
  return problems;
}

/** The commit of a tag; undefined if there is no such tag. */
function commitOfTag(tag) {
  try {
    return git("rev-parse", "--verify", "--quiet", `refs/tags/${tag}^{commit}`);
  } catch {
    return undefined;
  }
}
