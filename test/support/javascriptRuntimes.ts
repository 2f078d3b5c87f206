// Bun and Deno for programs in TypeScript, as docs/bindings.md tells users to run them.
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, delimiter, join } from "node:path";
import { findHost } from "../../tools/setup/languageHosts.mjs";
import { javascriptRuntime } from "../../tools/setup/javascriptRuntimes.mjs";
import { nodejs, type Found } from "./runtimes.ts";

/** Writes a script, for PATH. */
function script(folder: string, name: string, text: string): void {
  writeFileSync(join(folder, name), text);
  chmodSync(join(folder, name), 0o755);
}

const before = (folder: string): string => [folder, process.env["PATH"]].join(delimiter);

/** Bun, which the language host for Bun starts. */
export async function findBun(installed: string): Promise<Found> {
  const { program, reason } = await javascriptRuntime("bun", process.env);
  if (program === undefined) return { reason };
  const folder = join(installed, "bun");
  if (!existsSync(folder)) {
    mkdirSync(join(folder, "as-node"), { recursive: true });
    symlinkSync(program, join(folder, "bun"));
    symlinkSync(program, join(folder, "as-node/node"));
    // A CLI that was built from Go modules has no host for Bun. Its host for Node.js starts Bun as well, if that is called node.
    if (findHost("bun", process.env) === undefined)
      script(
        folder,
        "pulumi-language-bun",
        `#!/bin/sh\nPATH='${folder}/as-node:'"$PATH" exec pulumi-language-nodejs -typescript=false "$@"\n`,
      );
  }
  return { runtime: { ...nodejs, yaml: "bun", env: { PATH: before(folder) } } };
}

/** Deno, started by the script of the docs that is called `node`. */
export async function findDeno(installed: string): Promise<Found> {
  const { program, reason } = await javascriptRuntime("deno", process.env);
  if (program === undefined) return { reason };
  const folder = join(installed, "deno");
  const [, text = ""] =
    /^## Bun and Deno$.*?^```sh\n(#!.*?)^```$/ms.exec(readFileSync("docs/bindings.md", "utf8")) ?? [];
  if (!existsSync(folder)) {
    mkdirSync(folder);
    symlinkSync(program, join(folder, basename(program)));
    script(folder, "node", text);
  }
  const yaml = "{ name: nodejs, options: { typescript: false } }";
  return { runtime: { ...nodejs, yaml, env: { PATH: before(folder) } } };
}
