// machines:endpoint local: the embedded service, installed beside the SDK, started when it is needed and left running.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { counts, Stack } from "../support/stack.ts";

interface Status {
  url: string;
  pid: number;
  data: string;
}

describe("machines:endpoint local", () => {
  let stack: Stack;
  let data: string;
  let env: Record<string, string>;

  beforeAll(async () => {
    stack = new Stack(inject("installed"), "local");
    data = join(mkdtempSync(join(inject("installed"), "data-")), "service");
    env = { MACHINES_SERVICE_DATA: data };
    stack.program(
      'import * as machines from "pulumi-machines";\nconst app = new machines.App("shop");\nnew machines.Volume("data", { app: app.id });\n',
    );
    await stack.init({ "machines:endpoint": "local" });
  });
  afterAll(() => service("stop"));

  const command = () => join(inject("installed"), "node_modules/.bin/machines-service");
  const service = (...args: string[]): string =>
    execFileSync(command(), [...args, "--data", data], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const status = (): Status => JSON.parse(service("status", "--json")) as Status;
  const run = (...args: string[]) => stack.run(args, { env });

  test("a preview without reads starts nothing", async () => {
    expect((await run("preview")).code).toBe(0);
    expect(existsSync(data)).toBe(false);
  });

  test("up starts it once, and leaves it running; the next up uses the same one", async () => {
    const { output } = await run("up", "--yes", "--skip-preview");
    expect(counts(output)).toEqual({ created: 3 });
    const first = status();
    expect(counts((await run("up", "--yes", "--skip-preview")).output)).toEqual({ unchanged: 3 });
    expect(status()).toEqual(first);
  });

  test("pulumi-machines console signs in to it", async () => {
    const console = ["pulumi-machines", "console", "--stack", "dev"];
    const { stdout, stderr } = await stack.run(console, { env, command: "npx", plain: true });
    expect(stderr).toBe("");
    const { origin, hash } = new URL(stdout.trim());
    const body = JSON.stringify({ code: hash.replace("#code=", "") });
    expect((await fetch(`${origin}/console/session`, { method: "POST", body })).status).toBe(200);
  });

  test("it has its own session and a minimal environment", () => {
    const { pid } = status();
    const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    expect(environment.filter((line) => /^(PULUMI|MACHINES_TOKEN|npm_)/.test(line))).toEqual([]);
    const [, , , , , session] = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/\(.*\)/, "x")
      .split(" ");
    expect(Number(session)).toBe(pid);
  });

  test("after a kill the next up starts it again, and its objects still exist", async () => {
    const { pid } = status();
    process.kill(pid, "SIGKILL");
    expect(counts((await run("refresh", "--yes", "--skip-preview")).output)).toEqual({ unchanged: 3 });
    expect(status().pid).not.toBe(pid);
    expect(counts((await run("destroy", "--yes", "--skip-preview")).output)).toMatchObject({ deleted: 3 });
  });
});
