// The plugin's executable. It imports nothing before the compile cache is on, because that would be compiled at every
// start.
import module from "node:module";

module.enableCompileCache?.();
const [major = 0] = process.versions.node.split(".").map(Number);
if (major < 22) {
  process.stderr.write(`pulumi-resource-machines needs Node.js 22 or newer; this is ${process.version}.\n`);
  process.exit(1);
}
void import("./plugin/server.ts").then(({ serve }) => serve(process.argv.slice(2), __dirname));
