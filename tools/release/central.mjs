// The upload to Maven Central: one archive with every file of the Java SDK, their signatures and checksums.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { say, Stop } from "../lib/process.mjs";
import { digestOfFile } from "./digest.mjs";

const CENTRAL = "https://central.sonatype.com";

/**
 * Uploads files as one deployment, and waits until it is published.
 * @param {readonly string[]} files
 * @param {string} folder where they are below the repository
 * @param {{ user: string, password: string, passphrase: string, address?: string, pause?: number }} account
 */
export async function uploadToCentral(
  files,
  folder,
  { user, password, passphrase, address = CENTRAL, pause = 15_000 },
) {
  const work = fs.mkdtempSync(path.join(os.tmpdir(), "pulumi-machines-central-"));
  try {
    const authorization = `Bearer ${Buffer.from(`${user}:${password}`).toString("base64")}`;
    const bundle = makeBundle(work, files, folder, passphrase);
    const form = new FormData();
    form.set("bundle", new Blob([fs.readFileSync(bundle)]), "bundle.zip");
    const send = async (query, body) => {
      const answer = await fetch(`${address}/api/v1/publisher/${query}`, {
        method: "POST",
        headers: { authorization },
        body,
      });
      const text = await answer.text();
      if (!answer.ok) throw new Stop(`Maven Central answered ${answer.status} to ${query.split("?")[0]}: ${text}`);
      return text.trim();
    };
    const id = await send("upload?publishingType=AUTOMATIC", form);
    for (;;) {
      const { deploymentState: state, errors } = JSON.parse(await send(`status?id=${encodeURIComponent(id)}`));
      if (state === "PUBLISHED") return;
      if (state === "FAILED") throw new Stop(`Maven Central refuses the upload ${id}: ${JSON.stringify(errors)}`);
      say(`  Maven Central: ${state} …`);
      await sleep(pause);
    }
  } finally {
    fs.rmSync(work, { recursive: true, force: true });
  }
}

/** The archive, in the layout of a Maven repository. */
function makeBundle(work, files, folder, passphrase) {
  const target = path.join(work, folder);
  fs.mkdirSync(target, { recursive: true });
  for (const file of files) {
    const copy = path.join(target, path.basename(file));
    fs.copyFileSync(file, copy);
    const sign = [
      "--batch",
      "--yes",
      "--pinentry-mode",
      "loopback",
      "--passphrase-fd",
      "0",
      "--armor",
      "--detach-sign",
    ];
    execFileSync("gpg", [...sign, copy], { input: passphrase, stdio: ["pipe", "ignore", "inherit"] });
    for (const algorithm of ["md5", "sha1", "sha256"])
      fs.writeFileSync(`${copy}.${algorithm}`, digestOfFile(copy, algorithm));
  }
  execFileSync("zip", ["--quiet", "--recurse-paths", "bundle.zip", folder.split("/")[0]], { cwd: work });
  return path.join(work, "bundle.zip");
}
