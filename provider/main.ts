// The plugin's executable. It imports nothing large before the compile cache is on, because that would be compiled at
// every start.
import module from "node:module";
import { nodeProblem } from "../api/nodeProblem.ts";

module.enableCompileCache?.();
const problem = nodeProblem("pulumi-resource-machines");
if (problem !== undefined) {
  process.stderr.write(`${problem}\n`);
  process.exit(1);
}
void import("./plugin/server.ts").then(({ serve }) => serve(process.argv.slice(2), __dirname));
