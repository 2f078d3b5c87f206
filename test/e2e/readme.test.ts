// The README's first program, copied literally: it has the results that the README shows.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { thoroughTest } from "../support/thorough.ts";
import { counts, Stack } from "../support/stack.ts";

const readme = readFileSync("README.md", "utf8");
const chapter = /\n## Your first program\n(.*?)\n## /s.exec(readme)?.[1] ?? "";
const blocks = [...chapter.matchAll(/(?:`([^`\n]+)`:\n\n)?```(\w+)\n(.*?)```/gs)].map(
  ([, file, language = "", text = ""]) => ({ file, language, text }),
);

/** The code block with a file's content. */
const fileBlock = (name: string): string => blocks.find(({ file }) => file === name)?.text ?? "";
/** The shell block that contains a line. */
const shellBlock = (line: string): string =>
  blocks.find(({ language, text }) => language === "sh" && text.includes(`${line}\n`))?.text ?? "";

describe("the README's first program", () => {
  let stack: Stack;
  let env: Record<string, string>;
  let service: (...args: string[]) => string;

  beforeAll(() => {
    stack = new Stack(inject("installed"), "readme");
    stack.checkTypes();
    for (const file of ["package.json", "tsconfig.json", "Pulumi.yaml"]) rmSync(join(stack.dir, file));
    delete stack.env["PULUMI_CONFIG_PASSPHRASE"]; // the README chooses one
    env = { MACHINES_SERVICE_DATA: join(stack.dir, ".service") };
    service = (...args) =>
      execFileSync(join(inject("installed"), "node_modules/.bin/machines-service"), args, {
        env: { ...stack.env, ...env },
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      });
  });
  afterAll(() => service("stop"));

  const run = (...args: string[]) => stack.run(args, { env: { ...env, PULUMI_CONFIG_PASSPHRASE: "choose-one" } });
  /** Runs lines of the README in a shell that stops at the first failure. */
  const shell = (script: string) =>
    stack.run(["-euxc", script], { command: "bash", env: { ...env, PULUMI_SKIP_CONFIRMATIONS: "true" } });
  const program = (...changes: (readonly [from: string, to: string])[]): void => {
    const text = fileBlock("index.ts");
    for (const [from] of changes) expect(text).toContain(from);
    writeFileSync(
      join(stack.dir, "index.ts"),
      changes.reduce((text, [from, to]) => text.replace(from, to), text),
    );
  };
  const outputs = async () => JSON.parse((await run("stack", "output", "--json")).stdout) as Record<string, string>;
  let made: Record<string, string> = {};

  test("the folder is created, and the packed packages are installed", async () => {
    const lines = shellBlock("npm run package").trim().split("\n");
    // The setup of these tests has installed the packages of the last line in the parent folder, for all of them.
    expect(lines.pop()).toBe(
      'npm install @pulumi/pulumi typescript @types/node "$clone"/packages/pulumi-machines-[0-9]*.tgz "$clone"/packages/machines-service-*.tgz',
    );
    const init = lines.filter((line) => line.startsWith("npm init"));
    expect(await shell(init.join("\n"))).toMatchObject({ code: 0, output: expect.stringContaining("npm init -y") });
    for (const name of ["pulumi-machines", "machines-service"])
      expect(readdirSync(join(inject("installed"), "node_modules", name))).toEqual(
        expect.arrayContaining(["LICENSE", "README.md", "dist", "package.json"]),
      );
  });

  test("up creates it without a warning, and starts the service", async () => {
    writeFileSync(join(stack.dir, "Pulumi.yaml"), fileBlock("Pulumi.yaml"));
    program();
    // The backend of these tests is in the project, not in the user's home folder.
    const [login, ...lines] = shellBlock("pulumi up").split("\n");
    expect(login).toBe("export PULUMI_BACKEND_URL=file://~");
    const { code, output } = await shell(lines.join("\n"));
    expect(code, output).toBe(0);
    // A busy computer may answer the preview's question too late, which is a warning.
    if (!output.includes("did not answer this preview's question")) expect(output).not.toMatch(/warning|deprecat/i);
    expect(counts(output)).toEqual({ created: 4 });
    expect(service("status")).toContain(env["MACHINES_SERVICE_DATA"]);
    made = await outputs();
    expect(made).toEqual({
      machine: expect.stringMatching(/^hello-\w+\/\w+$/),
      version: expect.any(String),
    });
  });

  test("another image is an update of config.image and keeps the id", async () => {
    program(["hello:1.0.0", "hello:1.1.0"]);
    const { output } = await run("preview", "--diff");
    expect(output).toContain(`~ image: "registry.example.com/hello:1.0.0" => "registry.example.com/hello:1.1.0"`);
    expect(output).toContain(`[id=${made["machine"]}]`);
    expect(output).toMatch(/~ 1 to update\n\s+3 unchanged/);
  });

  thoroughTest("a larger volume is extended in place and does not affect the Machine", async () => {
    program(["sizeGb: 1", "sizeGb: 2"]);
    const { output } = await run("up", "--yes", "--skip-preview");
    expect(output).toMatch(/Volume data updated .*\[diff: ~sizeGb\]/);
    expect(counts(output)).toEqual({ updated: 1, unchanged: 3 });
    expect(await outputs()).toEqual(made);
  });

  // In process: test/volumes/volume.test.ts, and the compiler for the misspelt property.
  thoroughTest(
    "a smaller volume, another region, and a misspelt property are refused before anything happens",
    async () => {
      const refused = async (...changes: (readonly [from: string, to: string])[]) => {
        program(...changes);
        const { code, output } = await run("preview");
        expect(code).not.toBe(0);
        return output;
      };
      expect(await refused()).toMatch(/sizeGb: got 1, .*never shrinks\. Keep 2, or create a second, smaller volume/);
      expect(await refused(['region: "ams", sizeGb: 1', 'region: "fra", sizeGb: 2'])).toMatch(
        /region: changing it replaces the Volume and destroys .* set allowDataLoss: true/,
      );
      expect(await refused(["env:", "enviroment:"])).toMatch(
        /index\.ts\(12,5\): error TS2353: .*'enviroment' does not exist/,
      );
    },
  );

  test("destroy deletes everything", async () => {
    program();
    expect(counts((await run("destroy", "--yes", "--skip-preview")).output)).toEqual({ deleted: 4 });
  });
});
