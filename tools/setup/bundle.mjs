// Bundles both bindings, because one or two files start several times faster than hundreds. The dynamic binding replaces
// the compiled one. The client for scripts is beside it and shares its file, so that a process loads the code once. The
// plugin has the schema beside it, in the layout shared by the clone, the npm package and the release archives for macOS;
// those for Linux have one executable with the same files (standalone.mjs). The build runs this after the compiler, with our
// own node.
import fs from "node:fs";
import path from "node:path";
import { inRoot } from "../lib/paths.mjs";
import { bundleConsole } from "./bundleConsole.mjs";
import { writeBundled } from "./bundled.mjs";
import { bundle, bundlePlugin } from "./bundlePlugin.mjs";

const sdk = inRoot("sdk/nodejs/dist");
const undici = /^undici(\/|$)/;
const bundles = await bundle(
  { "dynamic/index": inRoot("provider/dynamic/index.ts"), "client/index": inRoot("provider/client/index.ts") },
  path.join(sdk, "provider"),
  // undici is loaded with the first request only.
  {
    external: [undici],
    codeSplitting: { groups: [{ name: "shared", minShareCount: 2 }] },
    chunkFileNames: "[name].js",
  },
);
// The command is a process of its own, which a program that loads the others never pays for. Its executable is a file of its own,
// because what the rest requires may be missing in the Node.js that it refuses.
const command = {
  external: [undici, /^@pulumi\//],
  codeSplitting: false,
  minify: true,
  // An import would first look for the format of the file in its text.
  dynamicImportInCjs: false,
};
bundles.push(
  // Only `mcp` loads the SDK of its protocol, which is as large as everything else.
  ...(await bundle({ command: inRoot("cli/command.ts") }, path.join(sdk, "cli"), {
    ...command,
    codeSplitting: { groups: [{ name: "shared", minShareCount: 2 }] },
    chunkFileNames: "[name].js",
  })),
  ...(await bundle({ main: inRoot("cli/main.ts") }, path.join(sdk, "cli"), {
    ...command,
    external: [/\/command\.ts$/],
    paths: (id) => (id.endsWith("/command.ts") ? "./command.js" : id),
  })),
);
// Pulumi starts the converter in a folder without packages.
bundles.push(
  ...(await bundle({ converter: inRoot("cli/converter.ts") }, path.join(sdk, "cli"), {
    ...{ external: ["@grpc/proto-loader", undici], codeSplitting: false, minify: true },
  })),
);
for (const name of ["main", "converter"]) fs.chmodSync(path.join(sdk, `cli/${name}.js`), 0o755);
for (const folder of ["api", "provider"]) removeCode(path.join(sdk, folder), bundles);

// Only the types of the package itself are used by others.
const policy = inRoot("policy/dist");
const policyBundles = await bundle(
  { index: inRoot("policy/index.ts"), main: inRoot("policy/main.ts") },
  path.join(policy, "policy"),
  {
    external: [/^@pulumi\//],
    codeSplitting: { groups: [{ name: "shared", minShareCount: 2 }] },
    chunkFileNames: "[name].js",
  },
);
removeCode(policy, policyBundles);
for (const folder of ["api", "provider"]) fs.rmSync(path.join(policy, folder), { recursive: true, force: true });

// The command of the service, and the service in a process of others, share all code. Other packages stay packages, except for those
// that every start loads: finding and reading their hundreds of files would take a third of its time.
const loadedAlways = new Set([
  "@noble/ciphers",
  "@noble/hashes",
  "commander",
  "fastest-levenshtein",
  "fastify",
  "ulid",
  "zod",
]);
const service = inRoot("service/dist/service");
const { dependencies, peerDependencies } = JSON.parse(fs.readFileSync(inRoot("service/package.json"), "utf8"));
const serviceBundles = await bundle(
  {
    main: inRoot("service/main.ts"),
    index: inRoot("service/index.ts"),
    // A worker thread.
    history: inRoot("service/history/historyWorker.ts"),
  },
  service,
  {
    external: Object.keys({ ...dependencies, ...peerDependencies })
      .filter((name) => !loadedAlways.has(name))
      .map((name) => new RegExp(`^${name}(/|$)`)),
    chunkFileNames: "chunks/[name].js",
  },
);
// npm makes it executable when it links the command, but not in a clone whose packages were linked before the build.
fs.chmodSync(path.join(service, "main.js"), 0o755);
for (const folder of ["api", "service"]) removeCode(inRoot("service/dist", folder), serviceBundles);

// The console of the service shows programs. The service has none of this code itself, and starts it as a worker thread with the
// first of them. It sends requests only through the service, so it needs no undici.
await bundle({ code: inRoot("cli/organization/consoleWorker.ts") }, inRoot("service/dist/console"), {
  ...{ codeSplitting: false, minify: true },
});

await bundlePlugin();
await bundleConsole();
writeBundled();

// All that a computer with only Node.js needs: published in pulumi-machines-plugin, and packed for `pulumi plugin install`.
const plugin = inRoot("sdk/nodejs-plugin/plugin");
const { version, license } = JSON.parse(fs.readFileSync(inRoot("sdk/nodejs/package.json"), "utf8"));
fs.rmSync(plugin, { recursive: true, force: true });
for (const file of ["pulumi-resource-machines", "PulumiPlugin.yaml", "LICENSE", "provider/dist"])
  fs.cpSync(inRoot(file), path.join(plugin, file), { recursive: true }); // with its mode
// The bundle needs no package. But Pulumi runs `npm install` in a plugin folder, and starts it by the folder's @pulumi/pulumi. Only
// one file of that is needed, so the folder has it: an installation from a registry fails where there is none.
const runner = path.join(plugin, "run");
const writeManifest = (folder, manifest) =>
  fs.writeFileSync(
    path.join(folder, "package.json"),
    `${JSON.stringify({ ...manifest, private: true, license }, null, 2)}\n`,
  );
fs.cpSync(inRoot("tools/setup/runPlugin.cjs"), path.join(runner, "cmd/run-plugin/index.js"));
writeManifest(runner, { name: "@pulumi/pulumi", version });
writeManifest(plugin, {
  ...{ name: "pulumi-resource-machines", version, main: "provider/dist/main.js" },
  dependencies: { "@pulumi/pulumi": "file:run" },
});

/** Removes compiled code from a folder: the types stay, and the bundles have the code. */
function removeCode(folder, files) {
  for (const entry of fs.readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (file.endsWith(".js") && !files.includes(file)) fs.rmSync(file);
  }
}
