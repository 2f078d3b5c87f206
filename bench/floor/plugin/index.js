// The floor of the plugin binding: classes that register their inputs, under the type names of the real ones.
const pulumi = require("@pulumi/pulumi");

// Like generated classes, it adds the version and origin of the plugin to every resource in the state.
const { version, pulumi: origin } = require("pulumi-machines-plugin/package.json");
const properties = require("./properties.json");

/** Like these, it declares every property, so that it is unknown until it is known. */
const floorOf = (type) => {
  const unknown = Object.fromEntries(properties[type].map((name) => [name, undefined]));
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
