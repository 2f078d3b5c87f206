// The Go SDK. A Go module is published by a tag, so its zip is only a proof that the module proxy accepts it.
import fs from "node:fs";
import path from "node:path";
import { inRoot } from "../lib/paths.mjs";
import { quiet, say, Stop, tail } from "../lib/process.mjs";
import { goProgram } from "../setup/goProgram.mjs";
import { plainContent } from "./sbom.mjs";
import { staged } from "./staged.mjs";

const DIR = "sdk/go/machines";
const goMod = () => fs.readFileSync(inRoot(DIR, "go.mod"), "utf8");
const modulePath = () => /^module (\S+)$/m.exec(goMod())?.[1] ?? "";

/** The tag by which Go finds a version of the module: the module's folder in the repository, and the version. */
export function goTag(version) {
  const major = Number(version.split(".")[0]);
  // From version 2 on, the path of a module ends with the version, and the folder may do so.
  if (major >= 2 && !modulePath().endsWith(`/v${major}`))
    throw new Stop(
      `${DIR}/go.mod must name the module …/v${major}, because Go takes version ${version} of no other one.`,
    );
  return `${DIR}/v${version}`;
}

/** Writes the zip of the module as the proxy makes it; or says why it cannot. */
export async function packGo({ target, version, env }) {
  goTag(version);
  const { program, reason } = await goProgram(
    { name: "module-zip", what: "the program that zips a Go module", source: "tools/moduleZip" },
    env,
  );
  if (program === undefined) return { reason };
  say("  the SDK for Go …");
  const file = path.join(target, `pulumi-machines-sdk-go-v${version}.zip`);
  const { code, output } = await staged(DIR, (folder) =>
    quiet(program, [folder, modulePath(), `v${version}`, file], { env }),
  );
  if (code !== 0) throw new Stop(`${tail(output)}\n${DIR} is not a module that Go accepts.`);
  say(`    ${modulePath()} v${version} ${output.trim()}`);
  return {};
}

/** What the SDK needs, in the versions that its go.mod has. */
export function goContent(version) {
  const required = [...goMod().matchAll(/^\t(\S+) (v\S+)(?: \/\/ indirect)?$/gm)];
  const parts = required.map(([, name, of]) => ({ name, version: of, purl: `pkg:golang/${name}@${of}` }));
  const name = modulePath();
  return plainContent({ name, version, purl: `pkg:golang/${name}@v${version}` }, parts);
}
