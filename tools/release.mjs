// npm run release -- --dry-run [VERSION]: everything of a release that needs no account, in one folder. Publishing is the work of
// .github/workflows/release.yml, which runs this first (CONTRIBUTING.md#releasing).
import fs from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { inRoot } from "./lib/paths.mjs";
import { main, say, Stop } from "./lib/process.mjs";
import { CHECKSUMS, writeChecksums } from "./release/checksums.mjs";
import { commit, problemsOf, timeOfCommit } from "./release/state.mjs";
import { steps } from "./release/steps.mjs";
import { here, PLATFORMS } from "./release/packages.mjs";
import { verify } from "./release/verify.mjs";
import { notesOf, versionEverywhere, withWholeLinks } from "./release/versions.mjs";
import { setup } from "./setup/index.mjs";

const USAGE = `npm run release -- --dry-run [VERSION] [--verify] [--to FOLDER] [--only ${Object.keys(steps).join(",")}] [--here]`;

await main(async () => {
  // The modes of files must not depend on who builds.
  process.umask(0o022);
  const { wanted, again, ...how } = readArguments();
  const { version, notes, problems } = examine(wanted);
  const { env } = await setup();
  const left = await build({ ...how, version, env }, wanted);
  fs.writeFileSync(path.join(how.target, "release-notes.md"), `${notes}\n`);
  writeChecksums(how.target);
  say(`Written, with the checksums in ${CHECKSUMS}:`);
  for (const name of fs.readdirSync(how.target).toSorted()) console.log(path.join(how.target, name));
  list("Not done here:", left);
  list(`A release of ${version} from this clone would be refused:`, problems);
  if (again !== undefined) await verify(how.target, again, env);
});

/** The version, its notes, and what speaks against releasing it, which is an error if it was wanted. */
function examine(wanted) {
  const version = versionEverywhere();
  if (wanted !== undefined && wanted !== version)
    throw new Stop(
      `The version of this clone is ${version}, not ${wanted}: check out the commit of that version, or set it first.`,
    );
  const { homepage } = JSON.parse(fs.readFileSync(inRoot("package.json"), "utf8"));
  const changelog = fs.readFileSync(inRoot("CHANGELOG.md"), "utf8");
  const own = notesOf(changelog, version);
  const problems = problemsOf(version, own);
  if (wanted !== undefined && problems.length > 0)
    throw new Stop([`Version ${version} cannot be released from this clone:`, ...problems].join("\n  "));
  const notes = own ?? notesOf(changelog, "Unreleased");
  if (notes === undefined)
    throw new Stop(`CHANGELOG.md has no section [${version}] and no [Unreleased] with changes: write one.`);
  return { version, problems, notes: withWholeLinks(notes, homepage, own ? `v${version}` : commit()) };
}

/** Does the steps; returns what was left out, with the reasons. A wanted version must be complete. */
async function build({ version, target, only, platforms, env }, wanted) {
  say(`Writing everything of version ${version} to ${target}; nothing is published.`);
  emptyFolder(target);
  const release = { target, version, seconds: timeOfCommit(), env, platforms };
  const [left, lacking] = [[], []];
  for (const [name, step] of Object.entries(steps)) {
    const isWanted = only.includes(name);
    const { reason, byWorkflow } = isWanted ? await step(release) : { reason: "it was left out by --only" };
    if (reason === undefined) continue;
    left.push(`${name}: ${reason}.`);
    if (isWanted && byWorkflow !== true) lacking.push(`${name}: ${reason}.`);
  }
  // The workflow would publish it without them.
  if (wanted !== undefined && lacking.length > 0)
    throw new Stop([`Version ${version} is not complete:`, ...lacking].join("\n  "));
  return left;
}

/** Makes a folder and removes what an earlier release wrote there, and nothing else. */
function emptyFolder(folder) {
  const names = fs.existsSync(folder) ? fs.readdirSync(folder) : [];
  if (names.length > 0 && folder !== inRoot("packages") && !names.includes(CHECKSUMS))
    throw new Stop(`${folder} has other files than those of a release: name an empty folder with --to.`);
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
}

/** The arguments, as they were meant. */
function readArguments() {
  const { values, positionals } = parseOrStop();
  if (!values["dry-run"])
    throw new Stop(
      "Only .github/workflows/release.yml publishes, when the tag v<version> is pushed; give --dry-run to do the rest of it here.",
    );
  const [version, ...more] = positionals;
  if (more.length > 0) throw new Stop(`One version is released at a time, not ${positionals.join(" and ")}. ${USAGE}`);
  const only = values.only?.split(",") ?? Object.keys(steps);
  const unknown = only.filter((name) => !Object.hasOwn(steps, name));
  if (unknown.length > 0) throw new Stop(`--only: ${unknown.join(" and ")} is no step. ${USAGE}`);
  const same = ["--dry-run", ...positionals, "--only", only.join(","), ...(values.here ? ["--here"] : [])];
  return {
    ...{ wanted: version?.replace(/^v/, ""), target: path.resolve(values.to ?? inRoot("packages")), only },
    platforms: values.here ? [here] : PLATFORMS,
    again: values.verify ? same : undefined,
  };
}

function parseOrStop() {
  const options = {
    "dry-run": { type: "boolean" },
    verify: { type: "boolean" },
    here: { type: "boolean" },
    to: { type: "string" },
    only: { type: "string" },
  };
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    throw new Stop(`${error.message}. ${USAGE}`);
  }
}

function list(title, lines) {
  if (lines.length > 0) say([title, ...lines.map((line) => `  ${line}`)].join("\n"));
}
