// Loaded first, because the other modules fail on an older Node.js with unclear errors.
import { enableCompileCache } from "node:module";
import { nodeProblem } from "../api/nodeProblem.ts";

const problem = nodeProblem("machines-service");
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`);
  process.exit(1);
}
enableCompileCache();
