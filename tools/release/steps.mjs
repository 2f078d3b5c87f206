// The steps of a release by name. Each writes its files, and returns a reason if this computer cannot do it.
import path from "node:path";
import { inRoot } from "../lib/paths.mjs";
import { bundledBelow } from "../setup/bundled.mjs";
import { goContent, packGo } from "./go.mjs";
import { packMaven } from "./maven.mjs";
import { manifestOf, PACKAGES, packNpm, packPlugin } from "./packages.mjs";
import { packPython, pythonContent } from "./python.mjs";
import { npmContent, plainContent, writeSbom } from "./sbom.mjs";

/**
 * @typedef {{ target: string, version: string, seconds: number, env: NodeJS.ProcessEnv, platforms: readonly string[] }} Release
 * @type {Record<string, (release: Release) => Promise<{ reason?: string }>>}
 */
export const steps = { npm, plugin, python, go, maven, image };

async function npm(release) {
  await packNpm(release.target, release.env);
  for (const dir of Object.keys(PACKAGES)) {
    const { name } = manifestOf(dir);
    const bundled = bundledBelow(inRoot(dir));
    // This package has the plugin in it.
    if (dir === "sdk/nodejs-plugin") bundled.push(...bundledBelow(inRoot("provider/dist")));
    sbom(release, name, npmContent(name, release.version, { dir, bundled }));
  }
  return {};
}

async function plugin(release) {
  await packPlugin(release.target, release.platforms, release.env);
  const { version } = release;
  const name = "pulumi-resource-machines";
  const content = npmContent(name, version, { bundled: bundledBelow(inRoot("provider/dist")) });
  for (const platform of release.platforms) {
    // The executables for Linux contain the Node.js that built them.
    const node = { name: "node", version: process.versions.node, purl: `pkg:generic/node@${process.versions.node}` };
    const inIt = plainContent({}, platform.startsWith("linux-") ? [node] : []);
    const parts = new Map([...content.parts, ...inIt.parts]);
    const direct = [...content.direct, ...inIt.direct];
    const purl = `pkg:github/pulumi-machines/pulumi-machines@v${version}`;
    sbom(release, `${name}-${platform}`, { ...content, name, purl, type: "application", parts, direct });
  }
  return {};
}

async function python(release) {
  const { reason } = await packPython(release);
  if (reason === undefined) sbom(release, "pulumi_machines", pythonContent(release.version));
  return { reason };
}

async function go(release) {
  const { reason } = await packGo(release);
  if (reason === undefined) sbom(release, "pulumi-machines-sdk-go", goContent(release.version));
  return { reason };
}

async function maven(release) {
  const { reason, content } = await packMaven(release);
  if (content !== undefined) sbom(release, "machines-java", content);
  return { reason };
}

/** Its base image and the packages in it are those of the moment, so its bytes are proved by an attestation instead. */
async function image() {
  return {
    reason:
      "the workflow builds the image for both architectures, with its SBOM; here, `docker build --file service/Dockerfile --tag machines-service` with this folder builds one",
  };
}

const sbom = (release, name, content) =>
  writeSbom(path.join(release.target, `${name}-${release.version}.cdx.json`), content, release);
