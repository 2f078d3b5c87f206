// Prepares a clone: dependencies, the Pulumi CLI, the build. Does only what is missing.
import path from "node:path";
import { Stop } from "../lib/process.mjs";
import { bin } from "../lib/paths.mjs";
import { build } from "./build.mjs";
import { installDependencies } from "./dependencies.mjs";
import { findPulumi } from "./pulumi.mjs";

/**
 * Prepares the clone and returns the environment for its programs, with the folders of our node and pulumi first on PATH.
 */
export async function setup({ pulumi: wantsPulumi = false, build: wantsBuild = true, force = false } = {}) {
  if (process.platform === "win32")
    throw new Stop("These scripts need Linux or macOS; on Windows, run them inside WSL.");
  if (Number.parseInt(process.versions.node, 10) < 20)
    throw new Stop(`Node.js 20 or newer is needed to start; this is ${process.version}. See https://nodejs.org/.`);

  await installDependencies();
  const others = (process.env.PATH ?? "").split(path.delimiter).filter((dir) => dir !== "" && dir !== bin);
  const env = { ...process.env, PATH: [bin, ...others].join(path.delimiter) };
  const both = [
    wantsPulumi ? findPulumi(env) : Promise.resolve(),
    wantsBuild ? build(env, { force }) : Promise.resolve(),
  ];
  const results = await Promise.allSettled(both); // both until their end, so that neither keeps running after a failure
  const failed = results.find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
  const pulumiDir = results[0].value;
  const folders = [...new Set(pulumiDir === undefined ? [bin] : [bin, pulumiDir])];
  env.PATH = [...folders, ...others.filter((dir) => !folders.includes(dir))].join(path.delimiter);
  return { env, folders };
}
