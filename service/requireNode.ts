// Loaded first, because the other modules fail on an older Node.js with unclear errors.
import { enableCompileCache } from "node:module";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(`machines-service needs Node 22.19 or later; this is ${process.versions.node}.\n`);
  process.exit(1);
}
enableCompileCache();
