// Digests of the files of a release. It needs only Node.js, because the jobs that publish install nothing.
import { createHash } from "node:crypto";
import fs from "node:fs";

/** The digest of a file. */
export const digestOfFile = (file, algorithm = "sha256", encoding = "hex") =>
  createHash(algorithm).update(fs.readFileSync(file)).digest(encoding);
