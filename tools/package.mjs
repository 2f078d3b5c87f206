// npm run package: what would be published, as files to install from.
import fs from "node:fs";
import path from "node:path";
import { bin, inRoot } from "./lib/paths.mjs";
import { main, quiet, say, Stop } from "./lib/process.mjs";
import { setup } from "./setup/index.mjs";

const PACKAGES = ["sdk/nodejs", "service"];

await main(async () => {
  const { env } = await setup();
  const target = inRoot("packages");
  fs.rmSync(target, { recursive: true, force: true }); // older versions
  fs.mkdirSync(target, { recursive: true });
  const files = [];
  for (const dir of PACKAGES) {
    const license = inRoot(dir, "LICENSE"); // npm packs the one beside package.json, and nothing from above
    fs.copyFileSync(inRoot("LICENSE"), license);
    const packed = await quiet("npm", ["pack", "--json", "--loglevel=error", "--pack-destination", target], {
      cwd: inRoot(dir),
      env,
    });
    fs.rmSync(license);
    if (packed.code !== 0) throw new Stop(`${packed.output.trim()}\nnpm pack failed in ${dir}.`);
    const { name, version } = JSON.parse(fs.readFileSync(inRoot(dir, "package.json"), "utf8"));
    const file = path.join(target, `${name}-${version}.tgz`);
    if (!fs.existsSync(file)) throw new Stop(`npm pack did not write ${file}.`);
    const lint = await quiet(path.join(bin, "publint"), ["run", file, "--strict"], { cwd: inRoot(dir), env });
    if (lint.code !== 0) throw new Stop(`${lint.output.trim()}\n${name} is not fit to be published.`);
    files.push(file);
  }
  for (const file of files) console.log(file);
  say(`\nIn a project of yours:\n  npm install @pulumi/pulumi ${files.join(" ")}`);
});
