// The main script of the plugin's standalone executable. Its assets are the files of the bundle, each with V8's compiled
// code. Node.js's own `useCodeCache` prints a warning at every start whose NODE_OPTIONS has an option of V8.
const sea = require("node:sea");
const vm = require("node:vm");

const loaded = new Map();

/** Compiles a file of the bundle. Compiled code that does not fit this process is ignored. */
function compile(name, code, cachedData) {
  return vm.compileFunction(code, ["exports", "require", "__dirname"], {
    filename: name,
    cachedData,
    produceCachedData: !sea.isSea(),
    importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER, // for modules of Node.js
  });
}

function load(name) {
  const known = loaded.get(name);
  if (known !== undefined) return known;
  const exported = {};
  loaded.set(name, exported);
  const compiled = `${name}.compiled`;
  const cachedData = sea.getAssetKeys().includes(compiled) ? new Uint8Array(sea.getRawAsset(compiled)) : undefined;
  const run = compile(name, sea.getAsset(name, "utf8"), cachedData);
  run(exported, (id) => (id.startsWith("./") ? load(id.slice(2)) : require(id)), __dirname);
  return exported;
}

module.exports = { compile };
if (sea.isSea()) load("main.js");
