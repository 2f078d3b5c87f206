// The floor of the plugin binding: classes that register their inputs, under the type names of the real ones.
const fs = require("node:fs");
const pulumi = require("@pulumi/pulumi");

// Like generated classes, it adds the version and origin of the plugin to every resource in the state.
const { version, pulumi: origin } = require("pulumi-machines-plugin/package.json");
const state = JSON.parse(fs.readFileSync(process.env.BENCH_STATE, "utf8"));

/** Like these, it declares every output, so that it is unknown until it is known. */
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
