// The files of the repository, as the checks read them.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { inRoot } from "./paths.mjs";

/** Paths of the files in Git and of new ones, from the root of the repository; without `paths`, all of them. */
export const repositoryFiles = (...paths) =>
  execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard", ...paths], {
    cwd: inRoot("."),
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  })
    .split("\0")
    .filter((file) => file !== "" && fs.existsSync(inRoot(file)));

/** The text of a file of the repository. */
export const textOf = (file) => fs.readFileSync(inRoot(file), "utf8");
