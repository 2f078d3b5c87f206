// The Python SDK: its wheel and its source distribution.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import toml from "smol-toml";
import { writeArchive } from "../lib/archive.mjs";
import { inRoot } from "../lib/paths.mjs";
import { quiet, say, Stop, tail } from "../lib/process.mjs";
import { inPythonEnvironment, pythonEnvironment } from "../setup/python.mjs";
import { plainContent } from "./sbom.mjs";
import { staged } from "./staged.mjs";

/** Builds both into a folder; or says why it cannot. */
export async function packPython({ target, version, seconds, env }) {
  const { dir, reason } = await pythonEnvironment(env, inRoot("tools/python/release.txt"));
  if (dir === undefined) return { reason };
  say("  the SDK for Python …");
  await staged("sdk/python", async (folder) => {
    const dist = path.join(folder, "dist");
    const built = await quiet(
      path.join(dir, "bin/python"),
      ["-m", "build", "--no-isolation", "--outdir", dist, folder],
      {
        cwd: folder,
        env: { ...inPythonEnvironment(dir, env), SOURCE_DATE_EPOCH: `${seconds}` },
        alive: "still building the Python SDK",
      },
    );
    if (built.code !== 0) throw new Stop(`${tail(built.output)}\nThe Python SDK could not be built.`);
    const [wheel, sdist] = [`pulumi_machines-${version}-py3-none-any.whl`, `pulumi_machines-${version}.tar.gz`];
    fs.copyFileSync(path.join(dist, wheel), path.join(target, wheel));
    // setuptools gives its files the current time and the owner of the clone.
    const unpacked = path.join(folder, "unpacked");
    fs.mkdirSync(unpacked);
    execFileSync("tar", ["-xzf", path.join(dist, sdist), "-C", unpacked]);
    await writeArchive(path.join(target, sdist), unpacked);
  });
  return {};
}

/** What the SDK needs. Its versions are chosen when it is installed. */
export function pythonContent(version) {
  const { project } = toml.parse(fs.readFileSync(inRoot("sdk/python/pyproject.toml"), "utf8"));
  const parts = project.dependencies.map((requirement) => {
    const [name] = /^[\w.-]+/.exec(requirement) ?? [];
    return { name, purl: `pkg:pypi/${name}` };
  });
  const name = "pulumi_machines";
  return plainContent({ name, version, purl: `pkg:pypi/pulumi-machines@${version}` }, parts);
}
