// What a change costs, with the real CLI: by the command, from its own preview and from a saved plan. test/cost/ has the
// computation, and test/cli/cost.test.ts how it is read from a plan.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { bindingsOr, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const secret = "canary-cost-91";

interface Report {
  readonly cost: {
    readonly before: number;
    readonly after: number;
    readonly change: number;
    readonly isLeast: boolean;
    readonly apps: readonly { readonly place: string; readonly before: number; readonly after: number }[];
  };
}

describe.each(bindingsOr("pulumi-machines-plugin"))("the cost of a change on %s", (binding) => {
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "cost", binding);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
  });
  afterAll(() => service.close());

  const image = "registry.example.com/shop:1";
  const begin = `
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const app = new machines.App("shop");
const config = { image: "${image}", env: { TOKEN: pulumi.secret("${secret}") } };
new machines.Machine("web", { app: app.id, region: "ams", config });
new machines.Volume("data", { app: app.id, region: "ams", sizeGb: 10 });
new machines.IpAssignment("address", { app: app.id, type: "v4" });
`;
  const worker = `new machines.Machine("worker", { app: app.id, region: "ams", config });\n`;
  const more = `
new machines.Fleet("api", { app: app.id, regions: { ams: 2 }, config, volume: { path: "/data", sizeGb: 10 } });
const jobs = new machines.App("jobs");
new machines.Volume("queue", { app: jobs.id, region: "ams", sizeGb: 20 });
`;

  const cost = async (...options: string[]): Promise<string> => {
    const command = join(inject("installed"), "node_modules/.bin/pulumi-machines");
    const ran = await stack.run(["cost", ...options], { command, plain: true });
    expect(ran.code, ran.output).toBe(0);
    expect(ran.output).not.toContain(secret);
    return ran.stdout;
  };

  test("before anything exists, all of it is the difference", async () => {
    stack.program(begin + worker);
    const { cost: found } = JSON.parse(await cost("--json")) as Report;
    expect(found).toMatchObject({ before: 0, after: 7.4, change: 7.4, isLeast: false });
    expect(found.apps).toMatchObject([{ place: expect.stringMatching(/^App shop/), before: 0, after: 7.4 }]);
    await stack.up();
    expect(JSON.parse(await cost("--json"))).toMatchObject({ cost: { before: 7.4, after: 7.4, change: 0 } });
  });

  test("a change is counted by App, with what it removes, in a plan as well", async () => {
    stack.program(begin + more);
    const text = await cost();
    expect(text).toMatch(/^App jobs\S*(?: \(new\))? +0\.00 +3\.00 +\+3\.00$/m);
    expect(text).toMatch(/^App shop\S* +7\.40 +12\.35 +\+4\.95$/m);
    expect(text).toMatch(/^total +7\.40 +15\.35 +\+7\.95$/m);
    await stack.ok("preview", "--save-plan", "plan.json");
    const asked = service.requests.length;
    expect(await cost("--plan", "plan.json")).toBe(text);
    expect(service.requests.length).toBe(asked);
    expect(readFileSync(join(stack.dir, "plan.json"), "utf8")).not.toContain(secret);
    expect(await cost("--plan", "plan.json", "--markdown")).toMatch(
      /^\| \*\*total\*\* \| 7\.40 \| 15\.35 \| \+7\.95 \|$/m,
    );
  });

  test("what has no part in an update with targets stays", async () => {
    stack.program(begin);
    await stack.ok("preview", "--save-plan", "plan.json", "--target", stack.urn("Volume", "data"));
    expect(await cost("--plan", "plan.json")).toMatch(/^total +7\.40 +7\.40 +0\.00$/m);
  });

  const volumes = `
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const app = new machines.App("shop");
const volume = (name: string, sizeGb: number, options: pulumi.CustomResourceOptions = {}) =>
  new machines.Volume(name, { app: app.id, region: "ams", sizeGb }, options);
const tier = (name: string, options: pulumi.ComponentResourceOptions = {}) =>
  new pulumi.ComponentResource("my:index:Tier", name, {}, options);
`;

  test("what is renamed or moved costs the same", async () => {
    stack.program(`${volumes}
const parent = tier("old");
volume("old", 100);
volume("moved", 200);
volume("old-data", 10, { parent });
volume("queue", 20, { parent });
volume("old-inner-logs", 40, { parent: tier("old-inner", { parent }) });
volume("cache", 1);
`);
    await stack.up();
    stack.program(`${volumes}
const parent = tier("new", { aliases: [{ name: "old" }] });
volume("new", 100, { aliases: [{ name: "old" }] });
volume("moved", 200, { parent, aliases: [{ parent: pulumi.rootStackResource }] });
volume("new-data", 10, { parent });
volume("jobs", 20, { parent, aliases: [{ name: "queue" }] });
volume("new-inner-logs", 40, { parent: tier("new-inner", { parent }) });
volume("store", 1, { aliases: ["${stack.urn("Volume", "cache")}"] });
`);
    await stack.ok("preview", "--save-plan", "plan.json");
    expect(JSON.parse(await cost("--plan", "plan.json", "--json"))).toMatchObject({
      cost: { before: 55.65, after: 55.65, change: 0 },
    });
  });
});
