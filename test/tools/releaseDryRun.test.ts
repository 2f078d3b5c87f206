// The npm packages and the plugin for this computer, built by the real command, twice in `npm run test:all`. `releaseFiles.test.ts` builds
// the rest.
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isThorough } from "../support/extent.mts";
import { hang } from "../support/patience.mts";
import { readBom, wrongChecksums } from "../support/releaseFiles.ts";
import { thoroughTest } from "../support/thorough.ts";

const folder = mkdtempSync(join(tmpdir(), "machines-release-twice-"));
let output = "";

beforeAll(async () => {
  const args = ["--dry-run", "--only", "npm,plugin", "--here", "--to", join(folder, "packages")];
  const ran = await promisify(execFile)(process.execPath, [
    "tools/release.mjs",
    ...args,
    ...(isThorough ? ["--verify"] : []),
  ]);
  output = ran.stderr;
}, 3 * hang);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

thoroughTest("a release that is built twice in two folders has the same bytes", () => {
  expect(output).toContain("Both builds have the same bytes.");
});

test("a dry run writes the packages and their checksums", () => {
  const names = readdirSync(join(folder, "packages"));
  const wanted = [/^pulumi-machines-\d/, /^pulumi-machines-plugin-/, /^machines-service-/, /^pulumi-machines-policy-/];
  for (const name of [...wanted, /^pulumi-resource-machines-v.*\.tar\.gz$/])
    expect(names).toContainEqual(expect.stringMatching(name));
  expect(wrongChecksums(join(folder, "packages"))).toEqual([]);
});

test("what a release leaves out is listed with the reason", () => {
  for (const step of ["python", "go", "maven"]) expect(output).toContain(`  ${step}: it was left out by --only.`);
});

test("its lists of contents are valid, and have what is needed and what is bundled", () => {
  const packages = join(folder, "packages");
  const bomOf = (name: string) =>
    readBom(
      join(packages, readdirSync(packages).find((file) => file.startsWith(name) && file.endsWith(".cdx.json")) ?? ""),
    );
  const namesOf = (name: string): string[] => bomOf(name).components.map((component) => component.name);
  const service = JSON.parse(readFileSync("service/package.json", "utf8")) as { dependencies: object };
  expect(namesOf("machines-service-")).toEqual(expect.arrayContaining(Object.keys(service.dependencies)));
  // Of the console, which is a bundle.
  expect(namesOf("machines-service-")).toEqual(expect.arrayContaining(["preact", "uplot", "@xterm/xterm"]));
  expect(namesOf("pulumi-machines-plugin-")).toEqual(
    expect.arrayContaining(["@pulumi/pulumi", "@grpc/grpc-js", "undici"]),
  );
  expect(namesOf("pulumi-resource-machines-")).toEqual(expect.arrayContaining(["@grpc/grpc-js", "undici", "zod"]));
  expect(namesOf("pulumi-machines-policy-")).toEqual(expect.arrayContaining(["@pulumi/policy"]));
  expect(namesOf("pulumi-machines-0")).not.toContain("vitest");
});
