// Users have settings for other work: in npm, Git, Pulumi, their language, and the names of their folders. With them, the first program and
// the commands do the same, and the tests pass.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { forTests } from "../../tools/lib/environment.mjs";
import { counts, Stack, type Ran } from "../support/stack.ts";
import { userSettings } from "../support/userSettings.ts";

describe("with settings of the user", () => {
  let stack: Stack;
  let settings: ReturnType<typeof userSettings>;
  /** What only this test sets. */
  let own: Record<string, string>;
  const umask = process.umask(0o077);

  beforeAll(async () => {
    const home = mkdtempSync(join(inject("installed"), "home-"));
    settings = userSettings(home);
    const place = join(inject("installed"), "a b/Übung");
    mkdirSync(place, { recursive: true });
    stack = new Stack(place, "settings");
    stack.example("quickstart");
    own = { MACHINES_SERVICE_DATA: join(stack.dir, ".service") };
    await stack.init({ "machines:endpoint": "local" });
  });
  afterAll(async () => {
    process.umask(umask);
    await run("npx", "machines-service", "stop");
  });

  /** Runs a command as the user does. */
  const run = (command: string, ...args: string[]): Promise<Ran> =>
    stack.run(args, { command, plain: command !== "pulumi", env: { ...settings.ofShell, ...own } });
  /** Runs a command as the tests do, if this user runs them. */
  const runInTest = (command: string, ...args: string[]): Promise<Ran> => {
    const { ofShell, ofPulumi } = settings;
    const env = { ...forTests({ ...process.env, ...ofShell, ...ofPulumi }), ...own };
    return new Promise((resolve) => {
      execFile(command, args, { cwd: stack.dir, env }, (error, stdout, stderr) =>
        resolve({ code: Number(error?.code ?? 0), output: stdout + stderr, stdout, stderr }),
      );
    });
  };

  test("F61 the first program goes up, does not differ, and is destroyed", async () => {
    const up = await run("pulumi", "up", "--yes", "--skip-preview");
    expect([up.code, counts(up.output)], up.output).toEqual([0, { created: 5 }]);
    const drift = await run("npx", "pulumi-machines", "drift", "--stack", "dev", "--json");
    expect([drift.code, JSON.parse(drift.stdout)], drift.output).toMatchObject([0, expect.any(Object)]);
    const orphans = await run("npx", "pulumi-machines", "orphans", "--stack", "dev");
    expect(orphans.code, orphans.output).toBe(0);
  });

  test("a command that a test starts prints only its answer", async () => {
    const status = await runInTest("npx", "machines-service", "status", "--json");
    expect([status.code, status.stderr], status.output).toEqual([0, ""]);
    expect(JSON.parse(status.stdout)).toMatchObject({ data: own["MACHINES_SERVICE_DATA"] });
    const npm = await runInTest("npm", "init", "-y");
    expect([npm.code, npm.stderr, npm.stdout], npm.output).toEqual([0, "", expect.not.stringContaining('"module"')]);
    const git = await runInTest("git", "init");
    expect([git.code, git.stderr], git.output).toEqual([0, ""]);
    expect(await runInTest("git", "commit", "--allow-empty", "--message", "Begin")).toMatchObject({
      code: 0,
      stderr: "",
    });
    expect((await runInTest("git", "branch", "--show-current")).stdout).toBe("main\n");
    expect(await runInTest("bash", "-c", "cd .service && pwd")).toMatchObject({
      stdout: `${own["MACHINES_SERVICE_DATA"] ?? ""}\n`,
      stderr: "",
    });
  });

  test("F61 destroy deletes everything", async () => {
    const destroyed = await run("pulumi", "destroy", "--yes", "--skip-preview");
    expect(counts(destroyed.output), destroyed.output).toEqual({ deleted: 5 });
  });

  // A run of the whole suite with such settings; the tests above have a program and a command.
  test("tests pass that read the repository, the variables of the provider, or what a command prints", async () => {
    const files = ["apps/app", "generated/marked", "service/commandLine", "tools/docs"];
    const args = ["node_modules/vitest/vitest.mjs", "run", "--project", "unit", "--maxWorkers=1"];
    // This process is one of vitest's own.
    const plain = Object.entries(process.env).filter(([name]) => !/^(VITEST|TINYPOOL|VITE_)/.test(name));
    const env = { ...Object.fromEntries(plain), ...settings.ofShell, ...settings.ofPulumi };
    const ran = await new Promise<readonly [code: unknown, output: string]>((resolve) => {
      execFile(
        process.execPath,
        [...args, ...files.map((file) => `test/${file}.test.ts`)],
        { env },
        (error, out, err) => resolve([error?.code ?? 0, out + err]),
      );
    });
    expect(ran).toEqual([0, expect.stringMatching(/Test Files\D+4 passed/)]);
  });
});
