// `npm run -s path` prints the same folders whatever is on the PATH already.
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { expect, test } from "vitest";

test("the command path prints the folders of Node and of Pulumi, also if they are on the PATH", () => {
  const folder = mkdtempSync(join(tmpdir(), "machines-path-"));
  for (const [name, says] of [["pulumi", "v3.259.0"], ["pulumi-language-nodejs"], ["pulumi-resource-pulumi-nodejs"]]) {
    writeFileSync(join(folder, name ?? ""), `#!/bin/sh\necho ${says ?? ""}\n`);
    chmodSync(join(folder, name ?? ""), 0o755);
  }
  const ask = (PATH = ""): string => {
    const env = { ...process.env, PATH, PULUMI_MACHINES_PULUMI: folder };
    return execFileSync(process.execPath, ["tools/path.mjs"], { env, encoding: "utf8" }).trim();
  };
  const usual = process.env["PATH"];
  const first = ask(usual);
  expect(first).toBe([resolve("node_modules/.bin"), folder].join(delimiter));
  expect(ask([first, usual].join(delimiter))).toBe(first);
  rmSync(folder, { recursive: true });
});
