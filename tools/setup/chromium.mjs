// Finds a Chromium for the tests of the console, or installs that of Debian.
import fs from "node:fs";
import path from "node:path";
import { installPackages, isDebian } from "./debian.mjs";

const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
const places = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

function find(env) {
  const onPath = (env.PATH ?? "")
    .split(path.delimiter)
    .flatMap((folder) => names.map((name) => path.join(folder, name)));
  return [...onPath, ...places].find((file) => fs.existsSync(file));
}

/** Path of the executable, from PULUMI_MACHINES_CHROMIUM or found; otherwise `reason` says why there is none. */
export async function provideChromium(env = process.env) {
  const { PULUMI_MACHINES_CHROMIUM: given } = env;
  if (given)
    return fs.existsSync(given) ? { file: given } : { reason: `PULUMI_MACHINES_CHROMIUM=${given} does not exist` };
  const found = find(env);
  if (found !== undefined) return { file: found };
  if (!isDebian() || process.getuid?.() !== 0) return { reason: "Chromium is not installed" };
  const reason = await installPackages(["chromium", "fonts-dejavu-core"], env);
  if (reason !== undefined) return { reason };
  const file = find(env);
  return file === undefined ? { reason: "Chromium was installed, but is not on PATH" } : { file };
}
