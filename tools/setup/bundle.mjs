// Bundles the plugin: one file that starts fast, with the schema beside it, in the layout that the clone, the npm package
// and the release archive share. Run by the build with our own node.
import fs from "node:fs";
import path from "node:path";
import { rolldown } from "rolldown";
import { inRoot } from "../lib/paths.mjs";

const dist = inRoot("provider/dist");
fs.rmSync(dist, { recursive: true, force: true });
const bundle = await rolldown({
  input: inRoot("provider/main.ts"),
  platform: "node",
  // Read by a diagnostic service of grpc-js that nobody starts.
  external: ["@grpc/proto-loader"],
  onLog: (level, log, handle) => handle(level === "warn" ? "error" : level, log),
});
const { output } = await bundle.write({
  dir: dist,
  entryFileNames: "main.js",
  format: "cjs",
  codeSplitting: false,
  minify: true,
});
await bundle.close();
if (output.length !== 1)
  throw new Error(`one file was expected, not ${output.map(({ fileName }) => fileName).join(", ")}`);

// A single letter beyond ASCII makes V8 keep the whole text in twice the memory.
const main = path.join(dist, "main.js");
const ascii = fs
  .readFileSync(main, "utf8")
  .replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
fs.writeFileSync(main, ascii);
fs.copyFileSync(inRoot("provider/schema.json"), path.join(dist, "schema.json"));

// What a machine needs that has nothing but Node.js: published in pulumi-machines-plugin, and packed for `pulumi plugin install`.
const plugin = inRoot("sdk/nodejs-plugin/plugin");
const { version, license } = JSON.parse(fs.readFileSync(inRoot("sdk/nodejs/package.json"), "utf8"));
fs.rmSync(plugin, { recursive: true, force: true });
for (const file of [
  "pulumi-resource-machines",
  "PulumiPlugin.yaml",
  "LICENSE",
  "provider/dist/main.js",
  "provider/dist/schema.json",
]) {
  fs.mkdirSync(path.dirname(path.join(plugin, file)), { recursive: true });
  fs.copyFileSync(inRoot(file), path.join(plugin, file)); // with its mode
}
const manifest = { name: "pulumi-resource-machines", version, private: true, license, main: "provider/dist/main.js" };
fs.writeFileSync(path.join(plugin, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
