// The example of each resource type in the descriptions of the package schema, as the Pulumi Registry shows it. That those in TypeScript,
// Python, Go and C# compile is a part of `npm run check`; here those in Java are compiled, and all run with the real CLI.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from "vitest";
import { schemaExamples } from "../../tools/lib/schemaExamples.mjs";
import { send } from "../support/around.ts";
import { makeCertificate } from "../support/certificates.ts";
import { allOr } from "../support/extent.mts";
import { expectUnchanged } from "../support/invariants.ts";
import { findRuntime } from "../support/runtimes.ts";
import { counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";
import { thoroughTest } from "../support/thorough.ts";

const { fullchain, private_key: privateKey } = makeCertificate({ hosts: ["own.example.com"] });

/** The configuration that programs ask for. */
const configOf: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  AppSecrets: { apiKey: "hush-hush" },
  CustomCertificate: { fullchain, privateKey },
  Secret: { apiKey: "hush-hush" },
};

// The programs are of one source: each runs in one language, and one of them in another. YAML names properties as the schema does.
describe.each(
  allOr(
    [
      { language: "yaml", fence: "yaml", only: undefined },
      { language: "nodejs", fence: "typescript", only: "PostgresAttachment" },
    ],
    [{ language: "nodejs", fence: "typescript", only: "PostgresAttachment" }],
  ),
)("the examples of the types in $language", async ({ language, fence, only }) => {
  const { runtime, reason } = await findRuntime(`runtime: ${language}`, inject("installed"));
  if (runtime === undefined) {
    test.skip(`the language is not run: ${reason}`);
    return;
  }
  const programs = Object.entries(schemaExamples(fence)).filter(([type]) => only === undefined || type === only);
  let service: TestService;
  let stack: Stack;
  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), `types-${language}`, "pulumi-machines-plugin", runtime);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
  });
  afterAll(() => service.close());
  // One that failed must not fail the next.
  afterEach(async () => {
    if (stack.resources().length > 0) await stack.destroy();
  });

  test.each(programs)("%s is created, unchanged by a second up, and destroyed", async (type, code) => {
    stack.program(code);
    await stack.set(configOf[type] ?? {});
    const { created = 0, ...others } = counts(await stack.up());
    expect(created).toBeGreaterThan(0);
    expect(others).toEqual({});
    expect(stack.resources().map((one) => one.type)).toContain(`machines:index:${type}`);
    await expectUnchanged(stack);
    await stack.destroy();
    expect(stack.state()).toEqual({});
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
    const left = await send<{ data: { status: string }[] }>(service, "GET", "/v1/postgres?org_slug=personal");
    expect(left.data.filter(({ status }) => status !== "deleted")).toEqual([]);
  });
});

thoroughTest("the examples of the types in Java compile", async () => {
  const { runtime } = await findRuntime("runtime: java", inject("installed"));
  if (runtime === undefined) return;
  const stack = new Stack(inject("installed"), "types-java", "pulumi-machines-plugin", runtime);
  const folder = join(stack.dir, "src/main/java");
  rmSync(folder, { recursive: true, force: true });
  const programs = Object.entries(schemaExamples("java"));
  expect(programs.length).toBeGreaterThan(20);
  for (const [type, code] of programs) {
    // All of them have the same package and class.
    const file = join(folder, type.toLowerCase(), "Main.java");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, code.replace("package generated_program;", `package ${type.toLowerCase()};`));
  }
  const { code, output } = await stack.run(["--batch-mode", "--quiet", "compile"], { command: "mvn", plain: true });
  expect(code, output).toBe(0);
});
