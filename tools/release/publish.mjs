// What the jobs of .github/workflows/release.yml publish, each with its own account: `node tools/release/publish.mjs npm FOLDER`. Each can
// be run again: what is published already is compared and left out. It needs only Node.js, so the jobs install nothing.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { inRoot } from "../lib/paths.mjs";
import { main, say, Stop } from "../lib/process.mjs";
import { uploadToCentral } from "./central.mjs";
import { publishRelease, pushTag } from "./github.mjs";
import { publishedImage } from "./image.mjs";
import { mavenHas, npmHas, pypiHas } from "./registries.mjs";

const MAVEN = "io/github/pulumimachines/machines";
const NPM = ["pulumi-machines", "pulumi-machines-plugin", "machines-service", "pulumi-machines-policy"];
const { version } = JSON.parse(fs.readFileSync(inRoot("sdk/nodejs/package.json"), "utf8"));

const targets = {
  npm: async (folder) => {
    for (const name of NPM) {
      const file = path.join(folder, `${name}-${version}.tgz`);
      if (await npmHas(file, name, version)) say(`${name}@${version} is published already.`);
      else run("npm", "publish", path.resolve(file), "--provenance", "--access", "public", "--tag", distTag());
    }
  },
  /** The upload itself is an action, which makes the attestations: this leaves in the folder `pypi` what it has to upload. */
  pypi: async (folder) => {
    const files = [`pulumi_machines-${version}-py3-none-any.whl`, `pulumi_machines-${version}.tar.gz`];
    fs.mkdirSync("pypi");
    for (const name of files) {
      const file = path.join(folder, name);
      if (await pypiHas(file, "pulumi-machines", version)) say(`${name} is published already.`);
      else fs.copyFileSync(file, path.join("pypi", name));
    }
    output("missing", `${fs.readdirSync("pypi").length > 0}`);
  },
  maven: async (folder) => {
    const names = [".pom", ".jar", "-sources.jar", "-javadoc.jar"].map((end) => `machines-${version}${end}`);
    const files = names.map((name) => path.join(folder, name));
    const at = `${MAVEN}/${version}`;
    const there = [];
    for (const file of files) there.push(await mavenHas(file, at));
    if (there.every(Boolean)) return say(`${names.join(", ")} are published already.`);
    const { CENTRAL_USER: user, CENTRAL_PASSWORD: password, GPG_PASSPHRASE: passphrase } = process.env;
    if (!user || !password || !passphrase)
      throw new Stop(
        "CENTRAL_USER, CENTRAL_PASSWORD and GPG_PASSPHRASE are secrets of the environment `release`: set them there.",
      );
    await uploadToCentral(files, at, { user, password, passphrase });
  },
  go: async () => {
    const tag = `sdk/go/machines/v${version}`;
    say(pushTag(tag, inRoot(".")) ? `Pushed ${tag}.` : `${tag} is there already.`);
  },
  /** The upload itself is an action: this says what it is called, and the digest if it is there already. */
  image: async (name) => {
    output("version", version);
    output("digest", publishedImage(`${name}:${version}`, process.env.GITHUB_SHA ?? "") ?? "");
  },
  github: async (folder) => {
    const files = fs.readdirSync(folder).map((name) => path.join(folder, name));
    publishRelease(`v${version}`, files, path.join(folder, "release-notes.md"));
  },
};

await main(async () => {
  const [target, folder = "packages"] = process.argv.slice(2);
  if (!Object.hasOwn(targets, target ?? ""))
    throw new Stop(`${target ?? "Nothing"} cannot be published; what can be: ${Object.keys(targets).join(", ")}.`);
  if (process.env.GITHUB_ACTIONS !== "true" || process.env.GITHUB_REF !== `refs/tags/v${version}`)
    throw new Stop(`Only .github/workflows/release.yml publishes, for the tag v${version}.`);
  await targets[target](folder);
});

/** `npm install` takes a version with this tag: none that is only a candidate. */
function distTag() {
  return version.includes("-") ? "next" : "latest";
}

function run(command, ...args) {
  execFileSync(command, args, { stdio: "inherit" });
}

/** A value for later steps of the job. */
function output(name, value) {
  const file = process.env.GITHUB_OUTPUT;
  if (file) fs.appendFileSync(file, `${name}=${value}\n`);
}
