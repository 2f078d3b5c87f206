// What is in the service and in no state, as somebody would find and clear it with the packed command and the real CLI.
import { execFile, spawn } from "node:child_process";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { family, kill } from "../support/processes.ts";
import { bindingsOr, counts, Stack } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import type { ReportJson } from "../cli/command.ts";

const program = `
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const config = { image: "registry.example.com/shop:1" };
const app = new machines.App("shop", { name: "left-shop" });
new machines.Machine("web", { app: app.id, name: "web", region: "ams", config });
class Tier extends pulumi.ComponentResource {
  constructor(name: string) {
    super("my:index:Tier", name);
    new machines.Machine("worker", { app: app.id, name: "worker", region: "ams", config }, { parent: this });
  }
}
const tier = new Tier("tier");
`;

interface Live {
  readonly id: string;
  readonly name: string;
  readonly config: { readonly metadata: Readonly<Record<string, string>> };
}

describe.each(bindingsOr("pulumi-machines-plugin"))("orphans of a stack on %s", (binding) => {
  let service: TestService;
  let stack: Stack;
  const isPlugin = binding === "pulumi-machines-plugin";

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "orphans", binding);
    stack.program(program);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    await stack.up();
  });
  afterAll(() => service.close());

  const machines = () => send<Live[]>(service, "GET", "/v1/apps/left-shop/machines");

  /** Runs the command as `npx pulumi-machines` does. */
  function orphans(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    return orphansWith({}, ...args);
  }
  function orphansWith(env: NodeJS.ProcessEnv, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const program = join(inject("installed"), "node_modules/.bin/pulumi-machines");
    const before = service.requests.length;
    return new Promise((resolve) => {
      execFile(program, ["orphans", ...args], { cwd: stack.dir, env: { ...stack.env, ...env } }, (error, out, err) => {
        expect(out + err).not.toContain(service.token);
        expect(service.requests.slice(before).filter(isWrite), "it only reads").toEqual([]);
        resolve({ code: error === null ? 0 : Number(error.code), out, err });
      });
    });
  }
  const report = async (...args: string[]) => JSON.parse((await orphans("--json", ...args)).out) as ReportJson;

  const [web, worker] = [
    { name: "web", within: undefined },
    { name: "worker", within: "my:index:Tier" },
  ] as const;

  test("nothing is found beside what up made", async () => {
    expect(await orphans()).toEqual({
      code: 0,
      out: `${service.url}, organization personal, compared with stack dev of orphans: no orphans.\n`,
      err: "",
    });
  });

  test("what is left beside it is found, and Machines with the resource they were made for", async () => {
    for (const { name, config } of await machines())
      await makeMachine(service, "left-shop", { name: `${name}-copy`, region: "ams", config });
    const volume = await makeVolume(service, "left-shop", "ams");
    const { ip } = await send<{ ip: string }>(service, "POST", "/v1/apps/left-shop/ip_assignments", { type: "v6" });
    const ids = Object.fromEntries((await machines()).map(({ name, id }) => [name, `left-shop/${id}`]));
    const { orphans: found, missing } = await report();
    expect(missing).toEqual([]);
    expect(Object.fromEntries(found.map(({ id, ...one }) => [id, one]))).toMatchObject({
      [String(ids["web-copy"])]: {
        type: "Machine",
        name: "web-copy",
        madeBy: "stack",
        urn: stack.urn("Machine", web.name),
        inState: [ids["web"]],
        delete: `DELETE /v1/apps/${String(ids["web-copy"]).replace("/", "/machines/")}`,
      },
      [String(ids["worker-copy"])]: {
        type: "Machine",
        madeBy: "stack",
        urn: stack.urn("Machine", worker.name, worker.within),
        inState: [ids["worker"]],
      },
      [`left-shop/${volume}`]: { type: "Volume", madeBy: "unknown", delete: null },
      [`left-shop/${ip}`]: { type: "IpAssignment", madeBy: "unknown", delete: null },
    });
    expect(found).toHaveLength(4);
    expect(await orphans()).toMatchObject({ code: 1, err: "" });
  });

  test.runIf(isPlugin)("pulumi import takes all of them over with the file that is written", async () => {
    expect(await orphans("--import", "import.json")).toMatchObject({ code: 1 });
    await stack.ok("import", "--file", "import.json", "--yes", "--generate-code=false", "--protect=false");
    expect(await orphans()).toMatchObject({ code: 0, err: "" });
    // A program without them would delete them, and nothing else.
    const steps = await stack.preview();
    expect(Object.fromEntries(Object.values(steps).map(({ name, op }) => [name, op]))).toEqual({
      "web-copy": "delete",
      "worker-copy": "delete",
      data: "delete",
      ipAssignment: "delete",
    });
    stack.program(`${program}
for (const name of ["web-copy", "worker-copy"]) new machines.Machine(name, { app: app.id, name, region: "ams", config });
new machines.Volume("data", { app: app.id, name: "data", region: "ams", sizeGb: 1 });
new machines.IpAssignment("ipAssignment", { app: app.id, type: "v6" });
`);
    expect(await stack.preview()).toEqual({});
  });

  test.runIf(!isPlugin)("dynamic resources cannot be imported: what this stack made is deleted as shown", async () => {
    expect((await orphans()).out).toContain("dynamic ones, and those cannot be imported. To adopt the orphans");
    const refused = await orphans("--import", "import.json");
    expect(refused).toMatchObject({ code: 2, out: "" });
    expect(refused.err).toMatch(/^pulumi-machines: --import: .* cannot be imported/);
    expect(readdirSync(stack.dir)).not.toContain("import.json");
    for (const { delete: request, look, type, id } of (await report()).orphans) {
      // Of the rest nobody can say here that it is nobody's.
      expect(request === null, type).toBe(type !== "Machine");
      const path = request?.split(" ")[1] ?? look.split(" ")[1] ?? "";
      const known: Readonly<Record<string, string>> = {
        Machine: `${path}?force=true`,
        IpAssignment: `${path}/${encodeURIComponent(id.slice(id.indexOf("/") + 1))}`,
      };
      await send(service, "DELETE", known[type] ?? path);
    }
    expect(await orphans()).toMatchObject({ code: 0, err: "" });
  });

  /** Adds a Machine to the program, and kills the run once the service has made it. */
  async function killDuring(name: string, options = "{}"): Promise<void> {
    stack.program(
      `${stack.read()}\nnew machines.Machine("${name}", { app: app.id, region: "ams", config }, ${options});\n`,
    );
    service.fail({ operation: "machines.create", when: "after", delayMs: 5000 });
    const before = (await machines()).length;
    const cli = spawn("pulumi", ["up", "--yes", "--skip-preview", "--non-interactive"], {
      cwd: stack.dir,
      env: stack.env,
      stdio: "ignore",
    });
    const ended = new Promise((resolve) => cli.on("close", resolve));
    await expect.poll(async () => (await machines()).length).toBe(before + 1);
    kill(family(cli.pid ?? -1));
    await ended;
    await stack.ok("cancel", "--yes");
  }

  test("a Machine that a killed run made is told with its resource, and the next up takes it over", async () => {
    await killDuring("late");
    const { orphans: found } = await report();
    expect(found).toMatchObject([{ type: "Machine", madeBy: "stack", urn: stack.urn("Machine", "late"), inState: [] }]);
    expect(found[0]?.remark).toMatch(/whose creation was interrupted\. The next up on this computer adopts it/);
    await stack.up();
    expect(await orphans()).toMatchObject({ code: 0, err: "" });
    expect(stack.state()["late"]?.id).toBe(found[0]?.id);
  });

  test.runIf(isPlugin)("one that was made on another computer is imported in the place that waits for it", async () => {
    await killDuring("later", "{ parent: tier }");
    rmSync(join(stack.env["PULUMI_HOME"] ?? "", "machines"), { recursive: true });
    expect(await orphans("--import", "later.json")).toMatchObject({ code: 1 });
    const [found] = (await report()).orphans;
    expect(found?.remark).toMatch(/whose creation was interrupted\.$/);
    await stack.ok("import", "--file", "later.json", "--yes", "--generate-code=false", "--protect=false");
    expect(await orphans()).toMatchObject({ code: 0, err: "" });
    expect(stack.state()["later"]?.id).toBe(found?.id);
    expect(await stack.preview()).toEqual({});
    expect(counts(await stack.up())).not.toHaveProperty("created");
  });

  test.runIf(isPlugin)("what lies where a provider of the program leads is imported through it", async () => {
    const text = stack.read();
    const other = `
const here = new machines.Provider("here", { endpoint: "${service.url}", token: pulumi.secret("${service.token}") });
const blog = new machines.App("blog", { name: "left-blog" }, { provider: here });
`;
    stack.program(`${text}${other}`);
    await stack.up();
    await makeVolume(service, "left-blog", "ams");
    expect(await orphans()).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^Not compared: provider here was not looked at: its token cannot be read/) as string,
    });
    const there = (...args: string[]) => orphansWith({ MACHINES_TOKEN: service.token }, "--provider", "here", ...args);
    expect(await there("--import", "here.json")).toMatchObject({ code: 1 });
    await stack.ok("import", "--file", "here.json", "--yes", "--generate-code=false", "--protect=false");
    expect(await there()).toMatchObject({ code: 0, err: "" });
    const [imported = ""] = Object.keys(await stack.preview());
    const volume = `{ app: blog.id, name: "data", region: "ams", sizeGb: 1 }, { provider: here }`;
    stack.program(`${text}${other}new machines.Volume("${imported}", ${volume});\n`);
    expect(await stack.preview()).toEqual({});
    stack.program(text);
    await stack.up();
  });

  test("what the service has no longer is told, until a refresh", async () => {
    const id = stack.state()["web"]?.id ?? "";
    await send(service, "DELETE", `/v1/apps/${id.replace("/", "/machines/")}?force=true`);
    expect(await report()).toMatchObject({
      orphans: [],
      missing: [{ type: "Machine", id, urn: stack.urn("Machine", web.name) }],
    });
    expect((await orphans()).out).toContain("`pulumi refresh` shows and forgets them");
    await stack.ok("refresh", "--yes", "--skip-preview");
    expect(await orphans()).toMatchObject({ code: 0, err: "" });
  });

  test("an export will do in place of the CLI, and a stack that is not there is said", async () => {
    writeFileSync(join(stack.dir, "state.json"), await stack.ok("stack", "export"));
    expect(await orphans("--state", "state.json", "--stack", "dev")).toMatchObject({ code: 0, err: "" });
    const { code, out, err } = await orphans("--stack", "none");
    expect([code, out]).toEqual([2, ""]);
    expect(err).toMatch(/^pulumi-machines: `pulumi stack export` failed: no stack named 'none' found\n$/);
  });

  test("when the state is lost, everything is found", async () => {
    const held = Object.values(stack.state()).map(({ id }) => id);
    await stack.ok("stack", "init", "fresh");
    for (const [key, value] of [
      ["endpoint", service.url],
      ["token", service.token],
    ] as const)
      await stack.ok("config", "set", ...(key === "token" ? ["--secret"] : []), `machines:${key}`, value);
    const { orphans: found } = await report("--all-apps");
    expect(found.map(({ id }) => id).sort()).toEqual(held.sort());
    await stack.ok("stack", "select", "dev");
    expect(counts(await stack.ok("destroy", "--yes", "--skip-preview")).deleted).toBeGreaterThan(3);
  });
});

describe.each(bindingsOr("pulumi-machines"))("F45: two backends with a stack of the same name on %s", (binding) => {
  let service: TestService;
  let stacks: readonly [Stack, Stack];
  const app = "shared-shop";

  beforeAll(async () => {
    service = await startService();
    await makeApp(service, app);
    stacks = [new Stack(inject("installed"), "namesake", binding), new Stack(inject("installed"), "namesake", binding)];
    for (const [i, stack] of stacks.entries()) {
      // One computer, whose notes both of them read.
      stack.env["PULUMI_HOME"] = stacks[0].env["PULUMI_HOME"];
      stack.program(`
import * as machines from "pulumi-machines";
new machines.Machine("web", { app: "${app}", name: "web-${i}", region: "ams", config: { image: "registry.example.com/shop:1" } });
`);
      await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    }
  });
  afterAll(() => service.close());

  const orphans = async (stack: Stack, ...args: string[]) => {
    const options = { command: join(inject("installed"), "node_modules/.bin/pulumi-machines"), plain: true };
    const { stdout } = await stack.run(["orphans", ...args], options);
    return stdout;
  };
  const webOf = (stack: Stack) => stack.state()["web"]?.id ?? "";

  test("neither is told that an earlier run of the other one was its own", async () => {
    for (const stack of stacks) {
      // A plan is kept to only where chance adds nothing to it.
      await stack.ok("preview", "--save-plan", "plan.json");
      expect(await stack.ok("up", "--plan", "plan.json", "--yes")).not.toContain("by an earlier run");
    }
    expect(webOf(stacks[0])).not.toBe(webOf(stacks[1]));
    for (const stack of stacks) expect(await stack.preview()).toEqual({});
  });

  test("neither reports the other one's Machine as its own, nor offers to delete it or the App they both use", async () => {
    for (const [own, other] of [stacks, [stacks[1], stacks[0]]] as const) {
      expect(await orphans(own)).toMatch(/: no orphans\.\n$/);
      const { orphans: found } = JSON.parse(await orphans(own, "--app", app, "--json")) as ReportJson;
      expect(found).toMatchObject([
        { type: "Machine", id: webOf(other), madeBy: "namesake", import: null, delete: null },
      ]);
      const text = await orphans(own, "--all-apps");
      expect(text).toContain("another of its name");
      expect(text).not.toMatch(/DELETE|import:|^App /m);
    }
  });

  test("what one of them made twice is its own, and nothing to the other one; a new name does not change whose it is", async () => {
    const [own, other] = stacks;
    const all = await send<Live[]>(service, "GET", `/v1/apps/${app}/machines`);
    const id = webOf(own);
    const config = all.find((one) => `${app}/${one.id}` === id)?.config;
    const copy = `${app}/${await makeMachine(service, app, { name: "copy", region: "ams", config })}`;
    const told = async (stack: Stack) =>
      (JSON.parse(await orphans(stack, "--app", app, "--json")) as ReportJson).orphans.find((one) => one.id === copy);
    const deletion = `DELETE /v1/apps/${copy.replace("/", "/machines/")}`;
    expect(await told(own)).toMatchObject({ madeBy: "stack", delete: deletion });
    expect(await told(other)).toMatchObject({ madeBy: "namesake", delete: null });
    await own.ok("stack", "rename", "staging");
    // The plugin's tags hold the name of before; the dynamic binding's state still tells it.
    const isPlugin = binding === "pulumi-machines-plugin";
    expect(await told(own)).toMatchObject(isPlugin ? { madeBy: "perhaps", delete: null } : { madeBy: "stack" });
    expect(await told(other)).toMatchObject({ madeBy: "namesake", delete: null });
  });
});
