// Maven for Java programs, with a local repository of downloaded packages in the per-user cache.
import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { withLock } from "../lib/lock.mjs";
import { inRoot } from "../lib/paths.mjs";
import { quiet, say, Stop, tail } from "../lib/process.mjs";
import { userCache } from "./userCache.mjs";

const SDK = "sdk/java";
const PROGRAM = "examples/quickstart-java";
const MINIMUM = 11; // the release that both are compiled for
const STAMP = "complete"; // written last: without it, the downloads were interrupted

/** The option that makes Maven use a local repository instead of the user's. */
export const repositoryOption = (repository) => `-Dmaven.repo.local=${repository}`;

/**
 * A local repository with all that programs need, or the reason why there is none: Java is optional. It also has the SDK of
 * whichever clone filled it: copy it and install the SDK there.
 * @returns {Promise<{ dir: string, reason?: undefined } | { dir?: undefined, reason: string }>}
 */
export async function mavenRepository(env) {
  const problem = await mavenProblem(env);
  if (problem !== undefined) return { reason: problem };
  const hash = createHash("sha256");
  for (const dir of [SDK, PROGRAM]) {
    const pom = fs.readFileSync(inRoot(dir, "pom.xml"), "utf8");
    hash.update(pom.replace(/<!--.*?-->/gs, "")); // the hash of the schema is in a comment
  }
  const dir = path.join(userCache("Maven's repository"), `maven-${hash.digest("hex").slice(0, 12)}`);
  if (fs.existsSync(path.join(dir, STAMP))) return { dir };
  return withLock(`${dir}.lock`, "downloading packages for Java", async () => {
    if (fs.existsSync(path.join(dir, STAMP))) return { dir }; // another set-up was faster
    const reason = await fill(dir, env);
    return reason === undefined ? { dir } : { reason };
  });
}

/** Why Maven cannot be used, or undefined. */
async function mavenProblem(env) {
  const wanted = `Maven with Java ${MINIMUM} or newer (https://maven.apache.org/install.html)`;
  const { code, stdout } = await quiet("mvn", ["--version"], { env, timeout: 120_000 });
  const [, version] = /Java version: (\d+)/.exec(stdout) ?? [];
  if (code === 0 && Number(version) >= MINIMUM) return undefined;
  return `it needs ${wanted}${version === undefined ? "" : `; this is Java ${version}`}`;
}

/** Downloads everything by doing once what Pulumi does for a program. Returns the reason if that fails. */
async function fill(dir, env) {
  say("Downloading packages for Java into a Maven repository of our own …");
  const work = fs.mkdtempSync(path.join(os.tmpdir(), "pulumi-machines-maven-"));
  try {
    for (const folder of [SDK, PROGRAM]) fs.cpSync(inRoot(folder), path.join(work, folder), { recursive: true });
    const steps = [
      [SDK, "install"],
      [PROGRAM, "compile", "exec:java", "-DmainClass=com.pulumi.bootstrap.internal.Main", "-DmainArgs=packages"],
    ];
    for (const [folder, ...goals] of steps) {
      const { code, output } = await quiet("mvn", ["--batch-mode", repositoryOption(dir), ...goals], {
        cwd: path.join(work, folder),
        env,
        alive: "still downloading packages for Java",
      });
      if (/Could not transfer|Unknown host|Connection refused|timed out/.test(output) && code !== 0)
        return "its packages cannot be downloaded: check the network and Maven's settings";
      if (code !== 0) throw new Stop(`${tail(output, 40)}\nMaven failed in ${folder}.`);
    }
    fs.writeFileSync(path.join(dir, STAMP), "");
    return undefined;
  } finally {
    fs.rmSync(work, { recursive: true, force: true, maxRetries: 3 });
  }
}
