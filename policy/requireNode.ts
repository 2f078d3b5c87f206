// Loaded before everything else, because other modules would fail on an older Node with obscure errors.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(`pulumi-machines-policy needs Node 22.19 or later; this is ${process.versions.node}.\n`);
  process.exit(1);
}
