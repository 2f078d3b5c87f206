// Everything of a release, written by the real command and installed as its users install it. Nothing is published.
import { execFile } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { pythonEnvironment } from "../../tools/setup/python.mjs";
import { readBom, wrongChecksums } from "../support/releaseFiles.ts";

const work = mkdtempSync(join(tmpdir(), "machines-release-files-"));
const packages = join(work, "packages");
const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
let output = "";
afterAll(() => rmSync(work, { recursive: true, force: true, maxRetries: 3 }));

/** Runs a program outside of the clone; returns what it prints. */
async function run(
  cwd: string,
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<string> {
  const ran = await promisify(execFile)(program, [...args], {
    cwd,
    env: { ...process.env, ...env },
    maxBuffer: 64_000_000,
  });
  return `${ran.stdout}${ran.stderr}`;
}

const folder = (name: string): string => {
  mkdirSync(join(work, name));
  return join(work, name);
};
const file = (name: string): string => join(packages, name);

/** A test of a file, which is left out if this computer could not build it. */
const testOf = (step: string, name: string, body: () => Promise<void>): void =>
  test(name, async ({ skip }) => {
    const reason = new RegExp(`^  ${step}: (.*)\\.$`, "m").exec(output)?.[1];
    if (reason !== undefined) leaveOut(`the release's part ${step}`, reason);
    skip(reason !== undefined);
    await body();
  });

beforeAll(async () => {
  output = await run(".", process.execPath, ["tools/release.mjs", "--dry-run", "--to", packages]);
});

test("the checksums are right, and every list of contents is valid", () => {
  expect(wrongChecksums(packages)).toEqual([]);
  const boms = readdirSync(packages).filter((name) => name.endsWith(".cdx.json"));
  expect(boms.length).toBeGreaterThan(7);
  for (const name of boms) expect(readBom(file(name)).metadata.component.purl).toContain(version);
});

test("the notes are those of the changelog, and what is not done here is listed", () => {
  const changelog = readFileSync("CHANGELOG.md", "utf8");
  const [first = ""] = readFileSync(file("release-notes.md"), "utf8").split("\n");
  expect(changelog).toContain(`\n\n${first}\n`);
  expect(output).toMatch(/Not done here:\n(?: {2}.*\n)*? {2}image: the workflow builds the image/);
});

test("every platform has an archive of the name that Pulumi looks for", () => {
  for (const platform of ["darwin-amd64", "darwin-arm64", "linux-amd64", "linux-arm64"])
    expect(existsSync(file(`pulumi-resource-machines-v${version}-${platform}.tar.gz`))).toBe(true);
});

test("the npm packages can be installed and loaded", async () => {
  const project = folder("npm");
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "user", private: true }));
  const tarballs = readdirSync(packages).filter((name) => name.endsWith(".tgz"));
  expect(tarballs).toHaveLength(4);
  await run(project, "npm", [
    "install",
    "--no-audit",
    "--no-fund",
    "--prefer-offline",
    "@pulumi/pulumi@3.270.0",
    ...tarballs.map(file),
  ]);
  const load = `for (const name of ["pulumi-machines", "pulumi-machines-plugin", "machines-service", "pulumi-machines/client"]) console.log(Object.keys(require(name)).length > 0)`;
  expect(await run(project, "node", ["-e", load])).toBe("true\n".repeat(4));
  expect(await run(project, join(project, "node_modules/.bin/machines-service"), ["--version"])).toContain(version);
});

test("the plugin's archive can be installed by Pulumi, and starts", async () => {
  const home = folder("home");
  const archive = file(
    `pulumi-resource-machines-v${version}-${process.platform}-${process.arch === "arm64" ? "arm64" : "amd64"}.tar.gz`,
  );
  await run(work, "pulumi", ["plugin", "install", "resource", "machines", version, "--file", archive], {
    PULUMI_HOME: home,
  });
  const installed = join(home, `plugins/resource-machines-v${version}/pulumi-resource-machines`);
  expect(await run(work, installed, ["--version"])).toContain(version);
});

testOf("python", "the wheel can be installed in an environment of its own, and imported", async () => {
  const { dir } = await pythonEnvironment(process.env);
  const own = join(work, "venv");
  await run(work, join(dir ?? "", "bin/python"), ["-m", "venv", own]);
  const wheel = file(`pulumi_machines-${version}-py3-none-any.whl`);
  await run(work, join(own, "bin/python"), ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]);
  const program =
    "import pulumi_machines, importlib.metadata as m; print(m.version('pulumi_machines'), pulumi_machines.Machine.__name__)";
  expect(await run(work, join(own, "bin/python"), ["-c", program])).toBe(`${version} Machine\n`);
});

testOf("go", "Go takes the module from a proxy", async () => {
  const module = "github.com/pulumi-machines/pulumi-machines/sdk/go/machines";
  const at = join(folder("proxy"), module, "@v");
  mkdirSync(at, { recursive: true });
  writeFileSync(join(at, `v${version}.info`), JSON.stringify({ Version: `v${version}` }));
  copyFileSync("sdk/go/machines/go.mod", join(at, `v${version}.mod`));
  copyFileSync(file(`pulumi-machines-sdk-go-v${version}.zip`), join(at, `v${version}.zip`));
  const env = {
    GOPROXY: `file://${join(work, "proxy")}`,
    GONOSUMDB: module,
    GOFLAGS: "-modcacherw",
    GOMODCACHE: folder("modules"),
  };
  const { Dir: dir, Sum: sum } = JSON.parse(
    await run(work, "go", ["mod", "download", "-json", `${module}@v${version}`], env),
  ) as { Dir: string; Sum: string };
  expect(existsSync(join(dir, "machine.go"))).toBe(true);
  expect(output).toContain(`${module} v${version} ${sum}`);
});

testOf("maven", "the jar has the classes, and the files that Maven Central wants are beside it", async () => {
  for (const kind of ["-sources.jar", "-javadoc.jar", ".pom"])
    expect(existsSync(file(`machines-${version}${kind}`))).toBe(true);
  const pom = readFileSync(file(`machines-${version}.pom`), "utf8");
  for (const needed of ["name", "description", "url", "licenses", "developers", "scm"])
    expect(pom).toContain(`<${needed}>`);
  // Its classes can only be read together with those of Pulumi.
  const names = await run(work, "jar", ["--list", "--file", file(`machines-${version}.jar`)]);
  expect(names.split("\n")).toContain("io/github/pulumimachines/machines/Machine.class");
});
