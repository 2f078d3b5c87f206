// The floor of the plugin binding: classes that register what they are given, under the type names of the real ones.
const fs = require("node:fs");
const pulumi = require("@pulumi/pulumi");

// As generated classes do it: the state names version and origin of the plugin with every resource.
const { version, pulumi: origin } = require("pulumi-machines-plugin/package.json");
const state = JSON.parse(fs.readFileSync(process.env.BENCH_STATE, "utf8"));

/** As they do it too: every output is declared, so that it is unknown until it is known. */
const floorOf = (type) => {
  const unknown = Object.fromEntries(Object.keys(state[type].outputs).map((name) => [name, undefined]));
  return class extends pulumi.CustomResource {
    constructor(name, args, opts) {
      super(
        `machines:index:${type}`,
        name,
        { ...unknown, ...args },
        { version, pluginDownloadURL: origin?.server, ...opts },
      );
    }
  };
};

exports.App = floorOf("App");
exports.Machine = floorOf("Machine");
