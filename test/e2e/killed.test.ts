// A run that is killed while a Machine is being created: the next one goes on, and makes nothing twice (F18).
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { bindings, counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const program = `
import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "killed-shop" });
const data = new machines.Volume("data", { app: app.id, region: "ams" });
new machines.Machine("store", {
  app: app.id,
  region: "ams",
  config: { image: "registry.example.com/shop:1", mounts: [{ volume: data.id, path: "/data" }] },
});
`;

/** The process and everything it started, children first. */
function family(pid: number): number[] {
  const parents = readdirSync("/proc").flatMap((name) => {
    try {
      const fields = readFileSync(`/proc/${name}/stat`, "utf8")
        .replace(/\(.*\)/s, "x")
        .split(" ");
      return [{ pid: Number(name), parent: Number(fields[3]) }];
    } catch {
      return [];
    }
  });
  const below = (of: number): number[] =>
    parents.filter(({ parent }) => parent === of).flatMap((child) => [...below(child.pid), child.pid]);
  return [...below(pid), pid];
}

const victims = ["the CLI alone", "the CLI and everything it started"];
const cases = bindings.flatMap((binding) => victims.map((what) => [what, binding] as const));

describe.each(cases)("kill -9 of %s during a create on %s", (what, binding) => {
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "killed", binding);
    stack.program(program);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
  });
  const left: number[] = [];
  afterAll(() => {
    for (const pid of left) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has ended already.
      }
    }
    return service.close();
  });

  const machines = () => send<{ id: string; state: string }[]>(service, "GET", "/v1/apps/killed-shop/machines");

  test("the next up takes over what was made, and makes nothing twice", async () => {
    // Everything up to the Machine first, so that the kill meets its create and nothing else.
    stack.program(program.replace(/new machines.Machine[^]*/, ""));
    await stack.up();
    stack.program(program);
    service.fail({ operation: "machines.create", when: "after", delayMs: 3000 });
    const cli = spawn("pulumi", ["up", "--yes", "--skip-preview", "--non-interactive"], {
      cwd: stack.dir,
      env: stack.env,
      stdio: "ignore",
    });
    const ended = new Promise((resolve) => cli.on("close", resolve));
    await expect.poll(async () => (await machines()).length, { timeout: 60_000 }).toBe(1);
    const started = cli.pid === undefined ? [] : family(cli.pid);
    const pids = cli.pid === undefined ? [] : what === "the CLI alone" ? [cli.pid] : started;
    for (const pid of pids) process.kill(pid, "SIGKILL");
    await ended;
    const [made] = await machines();
    // A provider whose CLI is gone would wait for ever; by now it has done all that it can.
    left.push(...started);
    await stack.ok("cancel", "--yes");
    const output = await stack.ok("up", "--yes", "--skip-preview");
    expect(counts(output)).toMatchObject({ created: 1 });
    expect(output).toMatch(/was made by a run that was cut off; it is taken over/);
    expect((await machines()).map(({ id, state }) => ({ id, state }))).toEqual([{ id: made?.id, state: "started" }]);
    expect(counts(await stack.up())).toEqual({ unchanged: 4 });
    await stack.ok("destroy", "--yes", "--skip-preview");
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
  });
});
