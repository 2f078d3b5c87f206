// How commands run the Pulumi CLI, with a fake one that prints its environment.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { pulumi } from "../../cli/pulumi.ts";

const cli = `#!/usr/bin/env node
console.log(JSON.stringify(process.env));
`;

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "machines-pulumi-"));
  writeFileSync(join(folder, "pulumi"), cli, { mode: 0o755 });
  vi.stubEnv("PATH", `${folder}${delimiter}${process.env["PATH"] ?? ""}`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

test("F61 options that the user gives to every command do not change what is read", async () => {
  for (const option of ["FILE", "FORCE", "JSON", "SHOW_SECRETS", "VERSION"]) vi.stubEnv(`PULUMI_OPTION_${option}`, "1");
  const meant = { PULUMI_OPTION_STACK: "dev", PULUMI_OPTION_CONFIG_FILE: "other.yaml", PULUMI_STACK: "dev" };
  for (const [name, value] of Object.entries(meant)) vi.stubEnv(name, value);
  const got = JSON.parse(await pulumi(["stack", "export"], undefined)) as Record<string, string>;
  const about = Object.entries(got).filter(([name]) => /^PULUMI_(OPTION_|STACK$)/.test(name));
  expect(Object.fromEntries(about)).toEqual(meant);
});
