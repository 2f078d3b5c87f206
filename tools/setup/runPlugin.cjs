// Starts a plugin folder: `node index.js FOLDER [arguments of the plugin]`. Pulumi's language host for Node.js looks for this as
// `@pulumi/pulumi/cmd/run-plugin` in the folder. The folder brings it along, so that `npm install` there asks no registry.
const [node, , folder, ...args] = process.argv;
process.argv = [node, folder, ...args];
require(folder);
