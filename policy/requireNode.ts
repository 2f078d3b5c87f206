// Loaded before everything else, because other modules would fail on an older Node with obscure errors.
import { nodeProblem } from "../api/nodeProblem.ts";

const problem = nodeProblem("pulumi-machines-policy");
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`);
  process.exit(1);
}
