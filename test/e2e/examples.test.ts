// Every example: up, up again, refresh, destroy, with the real CLI. Nothing changes the second time, nothing is left.
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { isThorough } from "../support/extent.mts";
import { expectUnchanged } from "../support/invariants.ts";
import { findRuntime } from "../support/runtimes.ts";
import { counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const names = readdirSync("examples");

// One of them through both bindings: it holds every resource and every function.
describe.each([
  ...names.map((name) => [name, "pulumi-machines"] as const),
  ["everything", "pulumi-machines-plugin"] as const,
])("example %s with %s", async (name, binding) => {
  const { runtime, reason } = await findRuntime(
    readFileSync(`examples/${name}/Pulumi.yaml`, "utf8"),
    inject("installed"),
  );
  if (runtime === undefined) {
    test.skip(`not run: ${reason}`);
    return;
  }
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), name, binding, runtime);
    stack.example(name);
    // What one of them imports is all there is; the others' types are among the checks.
    stack.checkTypes(isThorough || name === "everything");
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
  });
  afterAll(() => service.close());

  test("up creates everything", async () => {
    const preview = isThorough || name === "everything" ? [] : ["--skip-preview"];
    const { created = 0, ...rest } = counts(await stack.ok("up", "--yes", ...preview));
    expect(created).toBeGreaterThan(1);
    expect(rest).toEqual({});
    stack.checkTypes(false);
  });

  test("up again and refresh change nothing", async () => {
    expect(await expectUnchanged(stack)).toBeGreaterThan(1);
  });

  test("destroy leaves the service empty", async () => {
    await stack.destroy();
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
    // Deleted clusters stay in the list of those that are asked for so: what is left is what still runs, or is about to end.
    const left = await send<{ data: { status: string }[] }>(service, "GET", "/v1/postgres?org_slug=personal");
    expect(left.data.filter(({ status }) => status !== "deleted")).toEqual([]);
    expect(stack.state()).toEqual({});
  });
});
