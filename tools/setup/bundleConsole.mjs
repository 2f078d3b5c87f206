// Bundles the console's page for browsers, with the libraries it uses.
import fs from "node:fs";
import path from "node:path";
import { rolldown } from "rolldown";
import { inRoot } from "../lib/paths.mjs";
import { noteBundled } from "./bundled.mjs";

/** Writes service/dist/console/page. The terminal and the chart are files of their own, loaded when they are first shown. */
export async function bundleConsole() {
  const source = inRoot("service/console/app");
  const dist = inRoot("service/dist/console/page");
  fs.rmSync(dist, { recursive: true, force: true });
  const made = await rolldown({
    input: { app: path.join(source, "main.tsx") },
    platform: "browser",
    tsconfig: path.join(source, "tsconfig.json"),
    transform: { target: "es2022" },
    onLog: (level, log, handle) => handle(level === "warn" ? "error" : level, log),
  });
  const { output } = await made.write({
    dir: dist,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name].js",
    minify: true,
  });
  await made.close();
  noteBundled(
    dist,
    output.flatMap((file) => (file.type === "chunk" ? file.moduleIds : [])),
  );
  const styles = [
    "app.css",
    "../../../node_modules/@xterm/xterm/css/xterm.css",
    "../../../node_modules/uplot/dist/uPlot.min.css",
  ];
  for (const style of styles)
    fs.copyFileSync(path.join(source, style), path.join(dist, path.basename(style).replace(".min", "")));
  fs.copyFileSync(path.join(source, "icon.svg"), path.join(dist, "icon.svg"));
}
