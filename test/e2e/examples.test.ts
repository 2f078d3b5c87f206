// Every example: up, up again, refresh, destroy, with the real CLI. The second up changes nothing, and nothing remains.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { allOr, isThorough } from "../support/extent.mts";
import { exampleStack } from "../support/example.ts";
import { expectUnchanged } from "../support/invariants.ts";
import { findRuntime } from "../support/runtimes.ts";
import { counts, type Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

// The first have tests of their own, which show the same besides their own steps: the web app in test/runtime/webApp.test.ts,
// the quickstart in readme.test.ts, Python in languages.test.ts, and rollouts in fleets.test.ts. Those that
// only docs/gallery.md has use the same resources; gallery.test.ts has their own steps. The last are compiled, or need language hosts that are built in minutes.
const elsewhere: readonly string[] = [
  "canary",
  "volumes",
  "database",
  "policy",
  "promotion",
  "web-app",
  "rolling",
  "bluegreen",
  "worker-fleet",
  "multi-region",
  "private-network",
  "sandboxes",
  "scheduled-jobs",
  "static-site",
  "worker-queue",
  "quickstart",
  "quickstart-python",
  "quickstart-go",
  "quickstart-java",
  "quickstart-csharp",
  "quickstart-yaml",
];
// A program that depends on the time of day gets one, because a run may cross an hour.
const configOf: Readonly<Record<string, Readonly<Record<string, string>>>> = { "worker-queue": { hour: "12" } };
// Those without a project are for others: the operator of a cluster (test/kubernetes/gitops.test.ts).
const names = readdirSync("examples").filter(
  (name) => existsSync(`examples/${name}/Pulumi.yaml`) && (isThorough || !elsewhere.includes(name)),
);

// One of them runs with both bindings, because it has every resource and every function.
describe.each([
  ...names.map((name) => [name, "pulumi-machines"] as const),
  ...allOr([["everything", "pulumi-machines-plugin"] as const], []),
])("example %s with %s", async (name, binding) => {
  const { runtime, reason } = await findRuntime(
    readFileSync(`examples/${name}/Pulumi.yaml`, "utf8"),
    inject("installed"),
  );
  if (runtime === undefined) {
    test.skip(`the example is not run: ${reason}`);
    return;
  }
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService();
    stack = await exampleStack(name, service, configOf[name] ?? {}, { binding, runtime });
  });
  afterAll(() => service.close());

  test("up creates everything", async () => {
    // A saved plan holds the update to every input, of every type.
    const plan = isThorough || name === "everything" ? ["--plan", "plan.json"] : [];
    if (plan.length > 0) await stack.ok("preview", "--save-plan", "plan.json");
    const { created = 0, ...rest } = counts(await stack.ok("up", "--yes", "--skip-preview", ...plan));
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
    // Deleted clusters remain listed on request; only running or expiring ones count as left.
    const left = await send<{ data: { status: string }[] }>(service, "GET", "/v1/postgres?org_slug=personal");
    expect(left.data.filter(({ status }) => status !== "deleted")).toEqual([]);
    expect(stack.state()).toEqual({});
  });
});
