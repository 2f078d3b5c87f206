// The promotion of a release through three stacks: the example's program, its npm scripts, the real CLI.
import { readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { startAdmin, type Admin } from "../../service/index.ts";
import { send } from "../support/around.ts";
import { Stack, type Ran } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const installed = inject("installed");
const image = (tag: string): string => `registry.example.com/shop:${tag}`;
const digest = (digit: string): string => `sha256:${digit.repeat(64)}`;

interface Release {
  readonly image: string;
  readonly digest: string;
  readonly machines: readonly string[];
  readonly promotedBy?: string;
  readonly promotedAt?: string;
}

describe("promotion", () => {
  let service: TestService;
  let admin: Admin;
  let stack: Stack;

  const list = async (tag: string, to: string): Promise<void> => {
    const response = await fetch(`${admin.url}/images`, {
      method: "PUT",
      headers: { authorization: `Bearer ${admin.token}`, "content-type": "application/json" },
      body: JSON.stringify({ reference: image(tag), digest: to }),
    });
    expect(response.status).toBe(204);
  };
  /** Runs a script of the example, as `npm run NAME -- ARGS` does. */
  const npm = (script: string, ...args: string[]): Promise<Ran> =>
    stack.run(["run", "-s", script, "--", ...args], { command: "npm", plain: true });
  const done = async (run: Promise<Ran>): Promise<string> => {
    const { code, output } = await run;
    expect(code, output).toBe(0);
    return output;
  };
  const refused = async (run: Promise<Ran>): Promise<string> => {
    const { code, output } = await run;
    expect(code, output).toBe(1);
    return output;
  };
  const releaseOf = async (name: string): Promise<Release> =>
    (JSON.parse(await stack.ok("stack", "output", "--json", "--stack", name)) as { release: Release }).release;
  const power = async (name: string, to: "stop" | "start"): Promise<string> => {
    const [id = ""] = (await releaseOf(name)).machines;
    const [app = "", machine = ""] = id.split("/");
    await send(service, "POST", `/v1/apps/${app}/machines/${machine}/${to}`);
    const state = to === "stop" ? "stopped" : "started";
    await send(service, "GET", `/v1/apps/${app}/machines/${machine}/wait?state=${state}&timeout=10`);
    return id;
  };
  const configuration = (name: string): string => readFileSync(join(stack.dir, `Pulumi.${name}.yaml`), "utf8");

  beforeAll(async () => {
    service = await startService();
    admin = await startAdmin({ service: service.service, listen: { host: "127.0.0.1", port: 0 } });
    await list("1.0.0", digest("a"));
    stack = new Stack(installed, "promotion");
    stack.example("promotion");
    stack.checkTypes(false); // the tests of the examples do
    const { scripts } = JSON.parse(readFileSync("examples/promotion/package.json", "utf8")) as { scripts: object };
    writeFileSync(join(stack.dir, "package.json"), JSON.stringify({ name: "promotion", main: "index.ts", scripts }));
    symlinkSync(join(installed, "node_modules"), join(stack.dir, "node_modules"));
    const reached = { "machines:endpoint": service.url, "machines:token": service.token };
    await stack.init(reached);
    for (const name of ["staging", "prod"]) {
      await stack.ok("stack", "init", name);
      await stack.set(reached);
    }
    await stack.ok("up", "--yes", "--skip-preview", "--stack", "dev");
  });
  afterAll(async () => {
    await admin.close();
    await service.close();
  });

  test("what is to change is shown, and a dry run changes nothing", async () => {
    const before = configuration("staging");
    const output = await done(npm("promote", "dev", "staging", "--dry-run"));
    expect(output).toContain(`image     none\n        ->  ${image("1.0.0")}@${digest("a")}`);
    expect(output).toMatch(/cost {6}about 0\.00 -> 3\.\d+ USD a month/);
    expect(output).toContain("This was a dry run: nothing has changed.");
    expect(configuration("staging")).toBe(before);
    expect(await stack.ok("stack", "output", "--json", "--stack", "staging")).toBe("{}\n");
  });

  test("a release goes from dev to prod by its digest, also when its tag is moved", async () => {
    await done(npm("promote", "dev", "staging", "--yes", "--by", "alice"));
    await list("1.0.0", digest("b"));
    const output = await done(npm("promote", "staging", "prod", "--yes", "--by", "bob"));
    expect(output).toContain(`prod runs ${image("1.0.0")}@${digest("a")} on 2 healthy Machines.`);
    expect(await releaseOf("prod")).toMatchObject({ digest: digest("a"), promotedBy: "bob" });
    expect(await done(npm("promote", "staging", "prod", "--yes"))).toContain(
      "prod runs the release of staging already",
    );
  });

  test("the three stacks are shown side by side, with what is wrong", async () => {
    const output = await done(npm("status"));
    expect(output).toMatch(/^dev +shop:1\.0\.0 +a{12} +\w{12} +1 healthy$/m);
    expect(output).toMatch(/^prod +shop:1\.0\.0 +a{12} +\w{12} +0 minutes ago by bob +2 healthy$/m);
    // Whoever works on a stack goes on with it.
    expect(await stack.ok("stack", "--show-name")).toBe("prod\n");
    const id = await power("staging", "stop");
    const [app = "", machine = ""] = id.split("/");
    await send(service, "POST", `/v1/apps/${app}/machines/${machine}/cordon`);
    const drifted = await refused(npm("status", "staging", "--drift"));
    expect(drifted).toMatch(/^staging .* not healthy +1$/m);
    expect(drifted).toContain(`staging: ${id} is stopped`);
    await send(service, "POST", `/v1/apps/${app}/machines/${machine}/uncordon`);
  });

  test("what staging does not run healthy now is not promoted, and nothing is changed", async () => {
    await list("1.1.0", digest("c"));
    await stack.ok("config", "set", "image", image("1.1.0"), "--stack", "dev");
    await stack.ok("up", "--yes", "--skip-preview", "--stack", "dev");
    await power("staging", "start");
    await done(npm("promote", "dev", "staging", "--yes"));
    const id = await power("staging", "stop");
    const before = configuration("prod");
    const output = await refused(npm("promote", "staging", "prod", "--yes"));
    expect(output).toContain(`does not run its release healthy now: ${id} is stopped, not started`);
    expect(output).toContain("Not promoted: the preview failed, for what it says above. Nothing has changed.");
    expect(configuration("prod")).toBe(before);
    expect(await releaseOf("prod")).toMatchObject({ digest: digest("a") });
    await power("staging", "start");
    expect(await refused(npm("promote", "dev", "prod", "--yes"))).toMatch(
      /pinned is another release than machines-promotion\/staging runs: .* of machines-promotion\/dev; promote from/,
    );
  });

  test("a violation of a policy blocks it", async () => {
    const file = join(stack.dir, "policy.prod.json");
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace('"maxMemoryMb": 2048', '"maxMemoryMb": 512'));
    const output = await refused(npm("promote", "staging", "prod", "--yes"));
    writeFileSync(file, text);
    expect(output).toMatch(/config\.guest\.memoryMb is 1024; 512 MiB are allowed/);
    expect(output).toContain("Nothing has changed.");
  });

  test("nothing that holds data is deleted or replaced by it", async () => {
    const program = stack.read();
    stack.program(program.replace('App("shop", {}', 'App("shop", { name: "another-shop" }'));
    const output = await refused(
      npm("promote", "dev", "staging", "--yes").then(async (ran) => {
        // Staging runs it already: another release is needed for there to be something to promote.
        expect(ran.output).toContain("runs the release of dev already");
        stack.program(program);
        await stack.ok("config", "set", "checkout", "modern", "--stack", "dev");
        await stack.ok("up", "--yes", "--skip-preview", "--stack", "dev");
        stack.program(program.replace('App("shop", {}', 'App("shop", { name: "another-shop" }'));
        return npm("promote", "dev", "staging", "--yes");
      }),
    );
    expect(output).toContain("settings  CHECKOUT");
    expect(output).toContain("Not promoted: it would delete or replace the App shop.");
    stack.program(program);
    // What dev runs meanwhile is read anew by a refresh of staging, and is no drift of it.
    expect(await done(npm("status", "staging", "--drift"))).toMatch(/^staging .* 1 healthy +none$/m);
  });

  test("one that was cut off is told of, and gone on with by the same command", async () => {
    service.fail({ operation: "machines.update", status: 422, times: 1 });
    expect(await refused(npm("promote", "staging", "prod", "--yes", "--by", "dave"))).toContain(
      "Running the same command again goes on; --rollback goes back.",
    );
    expect(await refused(npm("status", "prod"))).toContain("prod: a promotion to it was cut off");
    const output = await done(npm("promote", "staging", "prod", "--yes", "--by", "erin"));
    expect(output).toContain("Going on with the promotion from staging to prod");
    expect(await releaseOf("prod")).toMatchObject({ digest: digest("c"), promotedBy: "dave" });
  });

  test("a stack goes back to the release before", async () => {
    service.fail({ operation: "machines.update", status: 422, times: 1 });
    await refused(npm("promote", "prod", "--rollback", "--yes"));
    expect(await refused(npm("status", "prod"))).toContain("prod: a promotion to it was cut off");
    const output = await done(npm("promote", "prod", "--rollback", "--yes", "--by", "carol"));
    expect(output).toContain(`${image("1.1.0")}@${digest("c")}\n        ->  ${image("1.0.0")}@${digest("a")}`);
    expect(await releaseOf("prod")).toMatchObject({ digest: digest("a"), promotedBy: "carol" });
  });

  test("an environment is made like dev, told about, and gone in time with everything it made", async () => {
    const apps = async () =>
      (await send<{ total_apps: number }>(service, "GET", "/v1/apps?org_slug=personal")).total_apps;
    const before = await apps();
    const create = ["create", "pr-7", "--template", "dev", "--expires", "1h", "--summary", "summary.md"];
    await done(npm("environment", ...create, "--set", `image=${image("1.0.0")}`));
    expect(await apps()).toBe(before + 1);
    expect(await releaseOf("pr-7")).toMatchObject({
      image: expect.stringMatching(/^registry\.example\.com\/shop:1\.0\.0@/),
    });
    const summary = readFileSync(join(stack.dir, "summary.md"), "utf8");
    expect(summary).toMatch(/^### Environment pr-7\n\nUntil \d{4}-.*Z, about 3\.\d+ USD a month\./);
    expect(summary).toContain("- create Machine `web-ams`");
    expect(summary).toContain(image("1.0.0"));
    expect((await npm("environment", "destroy", "dev")).output).toContain("stack dev is no environment");
    expect((await npm("environment", "create", "dev", "--template", "staging", "--expires", "1h")).output).toContain(
      "stack dev is no environment",
    );
    // Another job of CI has a checkout of its own, without the stack's configuration.
    rmSync(join(stack.dir, "Pulumi.pr-7.yaml"));
    await done(npm("environment", "sweep"));
    expect(await apps()).toBe(before + 1);
    rmSync(join(stack.dir, "Pulumi.pr-7.yaml"));
    expect(await done(npm("environment", "create", "pr-7", "--template", "dev", "--expires", "1ms"))).toContain(
      "### Environment pr-7",
    );
    rmSync(join(stack.dir, "Pulumi.pr-7.yaml"));
    expect(await done(npm("environment", "sweep"))).toContain("Environment pr-7 is gone, with everything it made.");
    expect(await apps()).toBe(before);
    expect(await stack.ok("stack", "ls")).not.toContain("pr-7");
    expect(await done(npm("environment", "destroy", "pr-7"))).toContain("There is no environment pr-7.");
  });

  test("mistakes are told, and a secret does not travel", async () => {
    const program = stack.read();
    stack.program(program.replace('settings.get("checkout") ?? "classic"', 'pulumi.secret("c4n4ry-checkout")'));
    await stack.ok("up", "--yes", "--skip-preview", "--stack", "dev");
    const { code, output } = await npm("promote", "dev", "staging", "--yes");
    expect([code, output]).toEqual([2, expect.stringContaining("the release of stack dev holds a secret")]);
    expect(output + configuration("staging")).not.toContain("c4n4ry");
    stack.program(program);
    expect((await npm("promote", "staging")).output).toContain("promote takes two stacks: from, and to");
    expect((await npm("promote", "nowhere", "prod")).output).toContain("no stack named 'nowhere' found");
    await stack.ok("stack", "init", "empty");
    expect((await npm("promote", "empty", "prod")).output).toContain("stack empty runs no release");
  });
});
