// The plugin's executable. What is imported before the compile cache is on is compiled anew at every start: nothing is.
import module from "node:module";

module.enableCompileCache?.();
const [major = 0] = process.versions.node.split(".").map(Number);
if (major < 22) {
  process.stderr.write(`pulumi-resource-machines needs Node.js 22 or newer; this is ${process.version}.\n`);
  process.exit(1);
}
void import("./plugin/server.ts").then(({ serve }) => serve(process.argv.slice(2), __dirname));
