// Compiles files of the plugin's bundle: `node --predictable standaloneCompile.cjs FOLDER FILE…` writes FOLDER/NAME.compiled for each.
// It is a process of its own for the option: without it, V8 hashes names with a random seed, and every build has other bytes. Code
// that is compiled with it is accepted by processes without it.
const fs = require("node:fs");
const path = require("node:path");
const { compile } = require("./standaloneMain.cjs");

const [folder = "", ...files] = process.argv.slice(2);
for (const file of files) {
  const name = path.basename(file);
  fs.writeFileSync(path.join(folder, `${name}.compiled`), compile(name, fs.readFileSync(file, "utf8")).cachedData);
}
