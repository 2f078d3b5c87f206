// A pack with as many policies as ours, which check nothing: the time that Pulumi itself needs to run a pack.
const { PolicyPack } = require("@pulumi/policy");

process.chdir(__dirname);
void new PolicyPack("floor", {
  policies: Array.from({ length: 25 }, (_, i) => ({
    name: `floor-${i}`,
    description: "Nothing is looked at.",
    enforcementLevel: "advisory",
    validateResource: () => {},
  })),
});
