// A second build in another folder, whose files must be the same.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { repositoryFiles } from "../lib/files.mjs";
import { inRoot } from "../lib/paths.mjs";
import { quiet, say, Stop, tail } from "../lib/process.mjs";
import { differences } from "./checksums.mjs";

/** Builds with the same arguments in a copy of the clone, and compares with what is in a folder. */
export async function verify(target, args, env) {
  const copy = fs.mkdtempSync(path.join(os.tmpdir(), "pulumi-machines-again-"));
  try {
    copyClone(copy);
    const second = path.join(copy, "packages");
    say("A second time, in a copy of this clone in another folder …");
    const built = await quiet("node", [path.join(copy, "tools/release.mjs"), ...args, "--to", second], {
      cwd: copy,
      env,
      alive: "still building a second time",
    });
    if (built.code !== 0) throw new Stop(`${tail(built.output, 40)}\nThe second build failed.`);
    const different = differences(target, second);
    if (different.length === 0) return say("Both builds have the same bytes.");
    const kept = `${target}-again`;
    fs.rmSync(kept, { recursive: true, force: true });
    fs.cpSync(second, kept, { recursive: true });
    throw new Stop(`A second build wrote other bytes: ${different.join(", ")}. Compare ${target} with ${kept}.`);
  } finally {
    fs.rmSync(copy, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** The same commit and files, and the installed packages, but nothing that was built. */
function copyClone(copy) {
  const git = (cwd, ...args) => execFileSync("git", args, { cwd, encoding: "utf8", stdio: "pipe" });
  git(inRoot("."), "clone", "--quiet", "--shared", "--no-checkout", inRoot("."), copy);
  for (const file of repositoryFiles()) {
    fs.mkdirSync(path.dirname(path.join(copy, file)), { recursive: true });
    fs.cpSync(inRoot(file), path.join(copy, file), { verbatimSymlinks: true });
  }
  git(copy, "reset", "--quiet");
  const modules = path.join(copy, "node_modules");
  fs.mkdirSync(modules);
  const names = fs.readdirSync(inRoot("node_modules")).filter((name) => name !== ".cache");
  const from = names.map((name) => inRoot("node_modules", name));
  // Links take a second, if both folders are on one disk. Nothing writes into an installed package.
  try {
    execFileSync("cp", ["-al", ...from, modules], { stdio: "pipe" });
  } catch {
    execFileSync("cp", ["-a", ...from, modules], { stdio: "pipe" });
  }
}
