// Bundles the plugin. It needs only npm packages: Pulumi's own installation of a clone does nothing else (tools/prepare.mjs).
import fs from "node:fs";
import path from "node:path";
import { rolldown } from "rolldown";
import { inRoot } from "../lib/paths.mjs";
import { noteBundled } from "./bundled.mjs";
import { lazyRegistries } from "./lazyRegistries.mjs";

/** Bundles entries into a folder; returns the files. */
export async function bundle(input, dir, { external = [], alias = {}, ...output } = {}) {
  const made = await rolldown({
    input,
    resolve: { alias },
    platform: "node",
    external,
    plugins: [lazyRegistries],
    onLog: (level, log, handle) => handle(level === "warn" ? "error" : level, log),
  });
  const { output: files } = await made.write({ dir, entryFileNames: "[name].js", format: "cjs", ...output });
  await made.close();
  noteBundled(
    dir,
    files.flatMap((file) => (file.type === "chunk" ? file.moduleIds : [])),
  );
  return files.map(({ fileName }) => path.join(dir, fileName));
}

/** Writes provider/dist. */
export async function bundlePlugin() {
  const dist = inRoot("provider/dist");
  fs.rmSync(dist, { recursive: true, force: true });
  // The entry is a separate file, because the compile cache never includes the file that enables it; undici is separate
  // because a run without a request never loads it; so is the exporter, which only a traced run loads. @grpc/proto-loader is only used by a diagnostic service of grpc-js that
  // is never started.
  const plugged = await bundle({ main: inRoot("provider/main.ts") }, dist, {
    external: ["@grpc/proto-loader"],
    alias: {
      "undici/index.js$": inRoot("tools/setup/undici.cjs"),
      "@opentelemetry/resources$": inRoot("tools/setup/otelResources.cjs"),
    },
    chunkFileNames: "[name].js",
    minify: true,
  });
  // A single non-ASCII character makes V8 use twice the memory for the whole text.
  for (const file of plugged) {
    const ascii = fs
      .readFileSync(file, "utf8")
      .replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
    fs.writeFileSync(file, ascii);
  }
  fs.copyFileSync(inRoot("provider/schema.json"), path.join(dist, "schema.json"));
}
