// The examples in the descriptions of the package schema: each is of one program, which Pulumi's binder and generators have checked and
// written. `npm run check` and test/e2e/typePrograms.test.ts compile and run them.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withoutExamples } from "../../tools/lib/schemaExamples.mjs";
import { languageHost } from "../../tools/setup/languageHosts.mjs";
import { sdkGenerator } from "../../tools/setup/goProgram.mjs";
import {
  fenceOf,
  programLanguages,
  programsIn,
  programsOf,
  typesWithProgram,
  type ProgramLanguage,
} from "../../tools/generate/programs.ts";
import { packageSchema, type PackageSpec } from "../../tools/generate/schema.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { thoroughTest } from "../support/thorough.ts";

const committed = JSON.parse(readFileSync("provider/schema.json", "utf8")) as PackageSpec;
const programs = programsOf(committed);
const schema = packageSchema(String(committed["version"]));
const fences = programLanguages.map(({ fence }) => fence);
const text = (path: string): string => readFileSync(path, "utf8");

/** Without a PATH there is no Go to build the generator: only one that the checks have built is used. */
const builtGenerator = async () => (await sdkGenerator({ ...process.env, PATH: "" })).program;

/** The programs in a language, of the committed schema. */
const committedIn = (fence: (typeof fences)[number]) =>
  Object.fromEntries(Object.entries(programs).map(([type, code]) => [type, { [fence]: code[fence] }]));

test("every resource type has an example in every language, at the end of its description", () => {
  const types = Object.keys(committed.resources).map((token) => token.replace("machines:index:", ""));
  expect(typesWithProgram(".").toSorted()).toEqual(types.toSorted());
  for (const [token, { description }] of Object.entries(committed.resources)) {
    const type = token.replace("machines:index:", "");
    expect(Object.keys(programs[type] ?? {}), type).toEqual(fences);
    expect(withoutExamples(description), type).toBe(schema.resources[token]?.description);
    expect(description, type).toMatch(/\{\{% examples %\}\}\n## Example Usage\n\{\{% example %\}\}\n### \S.*[^.]\n\n/);
    expect(description.endsWith("```\n\n{{% /example %}}\n{{% /examples %}}"), type).toBe(true);
    for (const [fence, code] of Object.entries(programs[type] ?? {}))
      expect(code, `${type} ${fence}`).not.toMatch(/[ \t]$/m);
  }
});

test("each SDK shows the example in its own language, and no marks of the registry", () => {
  const sdks = {
    typescript: "sdk/nodejs-plugin/volume.ts",
    python: "sdk/python/pulumi_machines/volume.py",
    go: "sdk/go/machines/volume.go",
    csharp: "sdk/dotnet/Volume.cs",
    java: "sdk/java/src/main/java/io/github/pulumimachines/machines/Volume.java",
  };
  const begins = {
    typescript: 'const data = new machines.Volume("data"',
    python: '\n        data = machines.Volume("data"',
    go: 'machines.NewVolume(ctx, "data"',
    csharp: 'var data = new Machines.Volume("data"',
    java: 'var data = new Volume("data", VolumeArgs',
  };
  for (const [fence, path] of Object.entries(sdks)) {
    const file = text(path);
    expect(file, path).not.toContain("{{%");
    for (const [other, begin] of Object.entries(begins))
      expect(file.includes(begin), `${begin} in ${path}`).toBe(other === fence);
  }
});

test.each(["nodejs", "python", "dotnet", "go"] as const)(
  "the examples for %s are what Pulumi's generator writes for the programs",
  async (language) => {
    const generator = await builtGenerator();
    if (generator === undefined) return;
    expect(programsIn(generator, language, schema)).toEqual(committedIn(fenceOf(language)));
  },
);

// Their language hosts are built in minutes.
for (const language of ["java", "yaml"] as const satisfies readonly ProgramLanguage[])
  thoroughTest(`the examples for ${language} are what Pulumi's language host writes for the programs`, async () => {
    const generator = await builtGenerator();
    const { dir } = await languageHost(language, process.env);
    if (generator === undefined || dir === undefined) return;
    const written = programsIn(generator, language, schema, join(dir, `pulumi-language-${language}`));
    expect(written).toEqual(committedIn(language));
  });

test("a program that the schema does not allow is refused by the name of the property", async () => {
  const generator = await builtGenerator();
  if (generator === undefined) return;
  const dir = mkdtempSync(join(tmpdir(), "machines-programs-"));
  afterThisTest(() => rmSync(dir, { recursive: true, force: true }));
  writeFileSync(join(dir, "schema.json"), JSON.stringify(schema));
  const args = ["-programs", dir, "-python", join(dir, "out"), join(dir, "schema.json")];
  const volume = (more: string): void =>
    writeFileSync(join(dir, "Volume.pp"), `resource "data" "machines:index:Volume" {\n  app = "shop"\n${more}}\n`);
  volume("  sizeGb = 10\n");
  execFileSync(generator, args);
  expect(text(join(dir, "out/Volume/__main__.py"))).toContain("size_gb=10");
  for (const [wrong, message] of [
    ["  sizeGB = 10\n", /Volume\.pp.*sizeGB/s],
    ['  compute = "large"\n', /Volume\.pp.*Cannot assign value string to attribute of type .*MachineGuest/s],
  ] as const) {
    volume(wrong);
    const { status, stderr } = spawnSync(generator, args, { encoding: "utf8" });
    expect(status).toBe(1);
    expect(stderr).toMatch(message);
    expect(stderr.length).toBeLessThan(3000);
  }
});
