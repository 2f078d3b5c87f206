// A folder of the clone without what is not committed there, for programs that pack whatever they find.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { repositoryFiles } from "../lib/files.mjs";
import { inRoot } from "../lib/paths.mjs";

/** Runs `work` with a copy of a folder that also has the LICENSE of the repository; the copy is removed afterwards. */
export async function staged(dir, work) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "pulumi-machines-release-"));
  try {
    for (const file of [...repositoryFiles(dir), "LICENSE"]) {
      const target = path.join(folder, file === "LICENSE" ? file : path.relative(dir, file));
      fs.mkdirSync(path.dirname(target), { recursive: true });
      fs.copyFileSync(inRoot(file), target);
      // The mode of a clone depends on its umask, and some archives contain it.
      fs.chmodSync(target, 0o644);
    }
    return await work(folder);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
