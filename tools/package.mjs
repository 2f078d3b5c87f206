// npm run package [-- --release]: the published packages, as files to install from. The plugin's archive is the one for this
// computer; with --release, those of all platforms, which downloads their Node.js.
import fs from "node:fs";
import path from "node:path";
import { writeLocalTemplates } from "./lib/localTemplates.mjs";
import { inRoot } from "./lib/paths.mjs";
import { main, say } from "./lib/process.mjs";
import { here, manifestOf, packNpm, packPlugin, PLATFORMS } from "./release/packages.mjs";
import { setup } from "./setup/index.mjs";

const { version } = manifestOf("sdk/nodejs");

/** A path as a word of a shell. */
const inShell = (file) => (/[^\w@%+=:,./-]/.test(file) ? `'${file.replaceAll("'", `'\\''`)}'` : file);

await main(async () => {
  const { env } = await setup();
  const target = inRoot("packages");
  say(`Writing the packages of version ${version} to ${target}; nothing is published.`);
  fs.rmSync(target, { recursive: true, force: true }); // remove older versions
  fs.mkdirSync(target, { recursive: true });
  const files = await packNpm(target, env);
  const archives = await packPlugin(target, process.argv.includes("--release") ? PLATFORMS : [here], env);
  say("Written:");
  for (const file of [...files, ...archives]) console.log(file);
  const [sdkFile, , serviceFile] = files;
  const templates = writeLocalTemplates(path.join(target, "templates"), {
    "pulumi-machines": sdkFile,
    "machines-service": serviceFile,
  });
  const [sdk, plugin, service, policy] = files.map(inShell);
  say(`
What to do with them. In a TypeScript project of yours:
  npm install @pulumi/pulumi ${sdk} ${service}
or, on the plugin:
  npm install @pulumi/pulumi ${plugin} ${service}
the policies for it, for \`--policy-pack node_modules/pulumi-machines-policy/pulumi-analyzer-machines\`:
  npm install --save-dev ${policy}
The plugin alone, for programs in any language:
  pulumi plugin install resource machines ${version} --file ${inShell(archives.find((file) => file.includes(here)))}
A new project in an empty folder, here in TypeScript; templates/README.md says what the others need:
  pulumi new ${inShell(path.join(templates, "typescript"))}`);
});
