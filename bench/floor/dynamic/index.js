// The floor of the dynamic binding: classes that register their inputs, under the type names of the real ones.
const pulumi = require("@pulumi/pulumi");

const properties = require("./properties.json");

/** Like the real classes, it declares every property, so that it is unknown until it is known. */
const floorOf = (type) => {
  const unknown = Object.fromEntries(properties[type].map((name) => [name, undefined]));
  // As long as the real one.
  const __provider = `exports.handler=()=>require("machines-floor/provider").provider("${type}");`;
  return class extends pulumi.CustomResource {
    constructor(name, args, opts) {
      super(`pulumi-nodejs:dynamic/machines:${type}`, name, { ...unknown, ...args, __provider }, opts);
    }
  };
};

exports.App = floorOf("App");
exports.Machine = floorOf("Machine");
