// Objects of the service that are in no state, found and removed with the packed command and the real CLI.
import { execFile } from "node:child_process";
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { family, kill } from "../support/processes.ts";
import { bindings, bindingsOr, counts, Stack } from "../support/stack.ts";
import { hang } from "../support/patience.mts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { allOr, isThorough } from "../support/extent.mts";
import { thoroughTest } from "../support/thorough.ts";
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

  /** Runs the command like `npx pulumi-machines`. */
  function orphans(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    return orphansWith({}, ...args);
  }
  function orphansWith(env: NodeJS.ProcessEnv, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const program = join(inject("installed"), "node_modules/.bin/pulumi-machines");
    const before = service.requests.length;
    return new Promise((resolve) => {
      execFile(program, ["orphans", ...args], { cwd: stack.dir, env: { ...stack.env, ...env } }, (error, out, err) => {
        expect(out + err).not.toContain(service.token);
        const isDeletion = args.includes("--delete");
        if (!isDeletion) expect(service.requests.slice(before).filter(isWrite), "it only reads").toEqual([]);
        resolve({ code: error === null ? 0 : Number(error.code), out, err });
      });
    });
  }
  const report = async (...args: string[]) => JSON.parse((await orphans("--json", ...args)).out) as ReportJson;

  /** Runs the commands that are shown, and deletes the others by their ids, which are named twice. */
  async function deleteAsShown(found: ReportJson["orphans"]): Promise<void> {
    for (const [i, { delete: shown, id }] of found.entries()) {
      const args = shown === null ? ["--delete", id] : shown.split(" ").slice(3);
      // The question is the same for each.
      if (isThorough || i === 0)
        expect(await orphans(...args)).toMatchObject({
          code: 2,
          err: expect.stringContaining("no one can answer") as string,
        });
      const confirmed = shown === null ? ["--confirm", id] : [];
      expect(await orphans(...args, ...confirmed, "--yes", "--allow-data-loss")).toMatchObject({
        code: 0,
        out: expect.stringMatching(new RegExp(`^deleted \\w+ ${id}$`, "m")) as string,
      });
    }
  }

  const [web, worker] = [
    { name: "web", within: undefined },
    { name: "worker", within: "my:index:Tier" },
  ] as const;

  test("the executable loads nothing before it has checked the Node that it runs on", () => {
    const main = readFileSync(join(inject("installed"), "node_modules/pulumi-machines/dist/cli/main.js"), "utf8");
    const check = main.indexOf("process.exit(");
    expect(check).toBeGreaterThan(0);
    expect(main.slice(0, check)).not.toContain("require(");
  });

  test("nothing is found beside what up made", async () => {
    expect(await orphans()).toEqual({
      code: 0,
      out: `${service.url}, organization personal, compared with stack dev of orphans: no orphans.\n`,
      err: "",
    });
  });

  test("other objects are reported, and Machines with the resource they were created for", async () => {
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
        delete: `npx pulumi-machines orphans --delete ${ids["web-copy"]}`,
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
    if (isThorough) expect(await orphans()).toMatchObject({ code: 1, err: "" });
  });

  test.runIf(isPlugin)("pulumi import imports all of them with the written file", async () => {
    expect(await orphans("--import", "import.json")).toMatchObject({ code: 1 });
    await stack.ok("import", "--file", "import.json", "--yes", "--generate-code=false", "--protect=false");
    expect(Object.keys(stack.state())).toEqual(
      expect.arrayContaining(["web-copy", "worker-copy", "data", "ipAssignment"]),
    );
    if (isThorough) {
      expect(await orphans()).toMatchObject({ code: 0, err: "" });
      // A program without them would delete them, and nothing else.
      const steps = await stack.preview();
      expect(Object.fromEntries(Object.values(steps).map(({ name, op }) => [name, op]))).toEqual({
        "web-copy": "delete",
        "worker-copy": "delete",
        data: "delete",
        ipAssignment: "delete",
      });
    }
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
    const found = (await report()).orphans;
    // Of the rest nobody can say here that it is nobody's.
    expect(found.filter((one) => one.delete !== null).map(({ type }) => type)).toEqual(["Machine", "Machine"]);
    await deleteAsShown(found);
    expect(await orphans()).toMatchObject({ code: 0, err: "" });
  });

  test.runIf(isPlugin)(
    "what this stack made twice is deleted by the command that is shown, and the rest by its id",
    async () => {
      const config = (await machines()).find(({ name }) => name === "web")?.config;
      await makeMachine(service, "left-shop", { name: "web-again", region: "ams", config });
      await makeVolume(service, "left-shop", "ams");
      const before = await machines();
      const found = (await report()).orphans;
      expect(found.map((one) => [one.type, one.delete === null])).toEqual([
        ["Machine", false],
        ["Volume", true],
      ]);
      await deleteAsShown(found);
      expect(await orphans()).toMatchObject({ code: 0, err: "" });
      expect((await machines()).map(({ name }) => name)).toEqual(
        before.map(({ name }) => name).filter((name) => name !== "web-again"),
      );
    },
  );

  /** Adds a Machine to the program, and kills the run once the service has made it. */
  async function killDuring(name: string, options = "{}"): Promise<void> {
    stack.program(
      `${stack.read()}\nnew machines.Machine("${name}", { app: app.id, region: "ams", config }, ${options});\n`,
    );
    service.fail({ operation: "machines.create", when: "after", delayMs: 5000 });
    const before = (await machines()).length;
    const { pid, ended } = stack.start(["up", "--yes", "--skip-preview"]);
    await expect.poll(async () => (await machines()).length).toBe(before + 1);
    kill(family(pid));
    await ended;
    await stack.ok("cancel", "--yes");
  }

  thoroughTest(
    "a Machine created by a killed run is reported with its resource, and the next up adopts it",
    async () => {
      await killDuring("late");
      const { orphans: found } = await report();
      expect(found).toMatchObject([
        { type: "Machine", madeBy: "stack", urn: stack.urn("Machine", "late"), inState: [] },
      ]);
      expect(found[0]?.remark).toMatch(/whose creation was interrupted\. The next up on this computer adopts it/);
      await stack.up();
      expect(await orphans()).toMatchObject({ code: 0, err: "" });
      expect(stack.state()["late"]?.id).toBe(found[0]?.id);
    },
  );

  // test/cli/report.test.ts has an interrupted create without the journal.
  thoroughTest(
    "a Machine created on another computer is imported for the resource that waits for it",
    async ({ skip }) => {
      skip(!isPlugin);
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
    },
  );

  // test/cli/report.test.ts compares with such a provider.
  thoroughTest("an object at an explicit provider's endpoint is imported through that provider", async ({ skip }) => {
    skip(!isPlugin);
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
      err: expect.stringMatching(/^Not compared: provider here was not read: its token cannot be read/) as string,
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

  // test/cli/orphans.test.ts has missing objects of each type.
  thoroughTest("an object that the service no longer has is reported until a refresh", async () => {
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

  thoroughTest(
    "F58: a volume that a Machine of others mounts is refused at once, also when all is confirmed",
    async () => {
      const volume = await makeVolume(service, "left-shop", "ams");
      const config = { image: "registry.example.com/theirs:1", mounts: [{ volume, path: "/data" }] };
      const machine = await makeMachine(service, "left-shop", { name: "theirs", region: "ams", config });
      const id = `left-shop/${volume}`;
      const all = ["--yes", "--allow-data-loss", "--confirm", id];
      expect(await orphans("--delete", id, ...all)).toMatchObject({
        code: 1,
        err: expect.stringContaining(`Not deleted: ${id}: Machine left-shop/${machine} mounts it.`) as string,
      });
      expect(await send(service, "GET", `/v1/apps/left-shop/volumes/${volume}`)).toMatchObject({ state: "created" });
      await send(service, "DELETE", `/v1/apps/left-shop/machines/${machine}?force=true`);
      expect(await orphans("--delete", id, ...all)).toMatchObject({ code: 0 });
    },
  );

  thoroughTest("an export can replace the CLI, and a missing stack is reported", async () => {
    writeFileSync(join(stack.dir, "state.json"), await stack.ok("stack", "export"));
    expect(await orphans("--state", "state.json", "--stack", "dev")).toMatchObject({ code: 0, err: "" });
    const { code, out, err } = await orphans("--stack", "none");
    expect([code, out]).toEqual([2, ""]);
    expect(err).toMatch(/^pulumi-machines: `pulumi stack export` failed: no stack named 'none' found\n$/);
  });

  // test/cli/orphans.test.ts shows the same in process.
  thoroughTest("if the state is lost, everything is reported", async () => {
    const held = Object.values(stack.state()).map(({ id }) => id);
    await stack.ok("stack", "init", "fresh");
    for (const [key, value] of [
      ["endpoint", service.url],
      ["token", service.token],
    ] as const)
      await stack.ok("config", "set", ...(key === "token" ? ["--secret"] : []), `machines:${key}`, value);
    // What the project's other stack holds is its own, and nothing of it is offered.
    const beside = await report("--all-apps");
    expect(beside.orphans).toEqual([]);
    expect(beside.heldElsewhere.map(({ id, stack: name }) => [id, name]).sort()).toEqual(
      held.map((id) => [id, "dev"]).sort(),
    );
    const [own = ""] = held;
    expect(await orphans("--all-apps", "--delete", own, "--yes", "--allow-data-loss")).toMatchObject({
      code: 1,
      err: expect.stringContaining(`Not deleted: ${own}: it belongs to stack dev of this project`) as string,
    });
    const state = await stack.ok("stack", "export", "--stack", "dev");
    const { deployment, ...rest } = JSON.parse(state) as { deployment: { resources?: unknown[] } };
    writeFileSync(
      join(stack.dir, "lost.json"),
      JSON.stringify({ ...rest, deployment: { ...deployment, resources: [] } }),
    );
    writeFileSync(join(stack.dir, "kept.json"), state);
    await stack.ok("stack", "import", "--stack", "dev", "--file", "lost.json");
    const { orphans: found } = await report("--all-apps");
    expect(found.map(({ id }) => id).sort()).toEqual(held.sort());
    await stack.ok("stack", "import", "--stack", "dev", "--file", "kept.json");
    await stack.ok("stack", "select", "dev");
    expect(counts(await stack.ok("destroy", "--yes", "--skip-preview")).deleted).toBeGreaterThan(3);
  });
});

// In process, test/cli/deletion.test.ts and test/plugin/state.test.ts show the same.
describe.each(allOr(bindings, []))("F45: two backends with a stack of the same name on %s", (binding) => {
  let service: TestService;
  let stacks: readonly [Stack, Stack];
  const app = "shared-shop";

  beforeAll(async () => {
    service = await startService();
    await makeApp(service, app);
    stacks = [new Stack(inject("installed"), "namesake", binding), new Stack(inject("installed"), "namesake", binding)];
    for (const [i, stack] of stacks.entries()) {
      // One computer, so that both stacks read the same notes.
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
  /** A plan is valid only if it contains nothing random. */
  const planOf = async (stack: Stack) => {
    if (!isThorough) return ["--skip-preview"];
    await stack.ok("preview", "--save-plan", "plan.json");
    return ["--plan", "plan.json"];
  };
  const webOf = (stack: Stack) => stack.state()["web"]?.id ?? "";

  test("neither stack is reported that an interrupted run of the other was its own", async () => {
    for (const stack of stacks) {
      expect(await stack.ok("up", "--yes", ...(await planOf(stack)))).not.toContain("by an earlier run");
    }
    expect(webOf(stacks[0])).not.toBe(webOf(stacks[1]));
    if (isThorough) for (const stack of stacks) expect(await stack.preview()).toEqual({});
  });

  test("neither stack reports the other's Machine as its own, or suggests deleting it or their shared App", async () => {
    for (const [own, other] of [stacks, [stacks[1], stacks[0]]] as const) {
      expect(await orphans(own)).toMatch(/: no orphans\.\n$/);
      const { orphans: found } = JSON.parse(await orphans(own, "--app", app, "--json")) as ReportJson;
      expect(found).toMatchObject([
        { type: "Machine", id: webOf(other), madeBy: "namesake", import: null, delete: null },
      ]);
      const text = await orphans(own, "--all-apps");
      expect(text).toContain("another of its name");
      expect(text).not.toMatch(/DELETE|--delete \w+\/|import:|^App /m);
    }
  });

  thoroughTest(
    "a duplicate created by one stack is reported only to that stack; a rename does not change its owner",
    async () => {
      const [own, other] = stacks;
      const all = await send<Live[]>(service, "GET", `/v1/apps/${app}/machines`);
      const id = webOf(own);
      const config = all.find((one) => `${app}/${one.id}` === id)?.config;
      const copy = `${app}/${await makeMachine(service, app, { name: "copy", region: "ams", config })}`;
      const reported = async (stack: Stack) =>
        (JSON.parse(await orphans(stack, "--app", app, "--json")) as ReportJson).orphans.find((one) => one.id === copy);
      const deletion = `npx pulumi-machines orphans --app ${app} --delete ${copy}`;
      expect(await reported(own)).toMatchObject({ madeBy: "stack", delete: deletion });
      expect(await reported(other)).toMatchObject({ madeBy: "namesake", delete: null });
      await own.ok("stack", "rename", "staging");
      // The plugin's tags have the old name; the dynamic binding's state still has it, and its id in this backend.
      const isPlugin = binding === "pulumi-machines-plugin";
      expect(await reported(own)).toMatchObject(isPlugin ? { madeBy: "perhaps", delete: null } : { madeBy: "stack" });
      expect(await reported(other)).toMatchObject({ madeBy: "namesake", delete: null });
    },
  );
});

// In process: test/cli/whose.test.ts.
describe.each(allOr(bindings, []))("F59: copied and moved states on %s", (binding) => {
  let service: TestService;
  const app = "shared-shop";
  beforeAll(async () => {
    service = await startService();
    await makeApp(service, app);
  });
  afterAll(() => service.close());

  const settings = () => ({ "machines:endpoint": service.url, "machines:token": service.token });
  const machine = (name: string) =>
    `new machines.Machine("${name}", { app: "${app}", region: "ams", config: { image: "registry.example.com/shop:1" } });\n`;
  const text = (...names: readonly string[]) =>
    `import * as machines from "pulumi-machines";\n${names.map(machine).join("")}`;
  /** A stack with a program, which is not deployed yet. All are on one computer. */
  const begin = async (project: string, home: Stack | undefined, ...names: readonly string[]): Promise<Stack> => {
    const stack = new Stack(inject("installed"), project, binding);
    if (home) stack.env["PULUMI_HOME"] = home.env["PULUMI_HOME"];
    stack.program(text(...names));
    await stack.init(settings());
    return stack;
  };
  const orphans = (stack: Stack, ...args: string[]) =>
    stack.run(["orphans", ...args], {
      command: join(inject("installed"), "node_modules/.bin/pulumi-machines"),
      plain: true,
    });
  const found = async (stack: Stack, id: string) =>
    (JSON.parse((await orphans(stack, "--app", app, "--json")).stdout) as ReportJson).orphans.find(
      (one) => one.id === id,
    );
  const live = async () =>
    (await send<Live[]>(service, "GET", `/v1/apps/${app}/machines`)).map(({ id }) => `${app}/${id}`);
  const idOf = (stack: Stack, name: string): string => stack.state()[name]?.id ?? "";
  /** Neither shows a command that deletes, nor deletes without the name. */
  async function isNotClaimed(stack: Stack, id: string, ...madeBy: readonly string[]): Promise<void> {
    const one = await found(stack, id);
    expect(one).toMatchObject({ delete: null });
    expect(madeBy).toContain(one?.madeBy);
    const { code, stdout } = await orphans(stack, "--app", app, "--delete", id, "--yes", "--allow-data-loss");
    expect([code, stdout]).toEqual([1, ""]);
    expect(await live()).toContain(id);
  }

  test("neither a stack nor its copy in another backend claims what the other one has made since", async () => {
    const own = await begin("copied", undefined, "web");
    await own.up();
    writeFileSync(join(own.dir, "state.json"), await own.ok("stack", "export"));
    const copy = await begin("copied", own, "web");
    await copy.ok("stack", "import", "--file", join(own.dir, "state.json"));
    for (const stack of [own, copy]) {
      stack.program(text("web", "late"));
      await stack.up();
    }
    expect(idOf(copy, "web")).toBe(idOf(own, "web"));
    const [late, other] = [idOf(own, "late"), idOf(copy, "late")];
    expect(late).not.toBe(other);
    await isNotClaimed(own, other, "namesake");
    // A run that creates before it has read the id of its state gives it another one, which the copy does not have.
    await isNotClaimed(copy, late, "perhaps", "namesake");
    // What the copy makes twice is proved to be its own.
    const all = await send<Live[]>(service, "GET", `/v1/apps/${app}/machines`);
    const config = all.find(({ id }) => `${app}/${id}` === other)?.config;
    const double = `${app}/${await makeMachine(service, app, { name: `double-${binding}`, region: "ams", config })}`;
    expect(await found(copy, double)).toMatchObject({ madeBy: "stack" });
    await isNotClaimed(own, double, "namesake");
    expect(await orphans(copy, "--app", app, "--delete", double, "--yes")).toMatchObject({ code: 0 });
  });

  test("what a stack of another project got by state move is that stack's, and so there and back", async () => {
    const own = await begin("giver", undefined, "web", "given");
    await own.up();
    const taker = new Stack(inject("installed"), "taker", binding);
    for (const name of ["PULUMI_BACKEND_URL", "PULUMI_HOME"]) taker.env[name] = own.env[name];
    taker.program(text("given"));
    await taker.init(settings());
    const given = idOf(own, "given");
    const isOf = async (stack: Stack, whose: string): Promise<void> => {
      const { code, stdout, stderr } = await orphans(
        ...([stack, "--app", app, "--delete", given, "--confirm", given, "--yes", "--allow-data-loss"] as const),
      );
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toContain(
        `Not deleted: ${given}: it belongs to stack ${whose}; delete it there, with its program.`,
      );
      expect(await live()).toContain(given);
    };
    const urn = own.urn("Machine", "given");
    await own.ok("state", "move", "--source", "dev", "--dest", "organization/taker/dev", urn, "--yes");
    await isOf(own, "organization/taker/dev");
    // What the new stack makes next does not have the id of the state that it got the Machine from.
    taker.program(text("given", "more"));
    await taker.up();
    await taker.ok(
      "state",
      "move",
      "--source",
      "dev",
      "--dest",
      "organization/giver/dev",
      urn.replace("::giver::", "::taker::"),
      "--yes",
    );
    await isOf(taker, "organization/giver/dev");
    expect(await own.preview()).toEqual({});
  });

  // test/core/backend.test.ts has the journal.
  test("the interrupted Machine of a stack of the same name in another backend is left to that stack", async () => {
    const own = await begin("twins", undefined, "web");
    const other = await begin("twins", own, "web");
    await own.up();
    await other.up();
    const before = await live();
    other.program(text("web", "late"));
    service.fail({ operation: "machines.create", when: "after", delayMs: 60_000 });
    const running = other.start(["up", "--yes", "--skip-preview"]);
    await expect.poll(async () => (await live()).length, { timeout: hang }).toBe(before.length + 1);
    kill(family(running.pid));
    await running.ended;
    await other.ok("cancel", "--yes");
    const [begun = ""] = (await live()).filter((id) => !before.includes(id));
    await isNotClaimed(own, begun, "pulumi");
    // The same resource of this stack does not adopt it either, with the same journal.
    own.program(text("web", "late"));
    await own.up();
    expect(idOf(own, "late")).not.toBe(begun);
    await isNotClaimed(own, begun, "namesake");
    await other.up();
    expect(idOf(other, "late")).toBe(begun);
  });
});
