// Features of the plugin only, with the real CLI: import, several endpoints in one program, switching to the plugin, and
// running from Pulumi's plugin folder.
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { startPlugin } from "../support/plugin.ts";
import { installReleased } from "../support/released.ts";
import { collected, counts, Stack, type Ran } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/shop:1.0.0";
const plugin = "pulumi-machines-plugin";
const start = 'import * as pulumi from "@pulumi/pulumi";\nimport * as machines from "pulumi-machines";\n';

const writesOf = (service: TestService, from: number): string[] =>
  service.requests.slice(from).flatMap(({ method, path }) => (method === "GET" ? [] : [`${method} ${path}`]));

describe("import", () => {
  let service: TestService;
  let stack: Stack;
  const ids: Record<string, string> = {};

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "import", plugin);
    stack.program("export {};");
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    await makeApp(service, "old-shop");
    const volume = await makeVolume(service, "old-shop", "ams");
    const machine = await makeMachine(service, "old-shop", {
      name: "web",
      region: "ams",
      config: {
        image,
        env: { GREETING: "hello", PASSWORD: "hush-hush" },
        restart: { policy: "always" },
        mounts: [{ volume, path: "/data" }],
        services: [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 80, handlers: ["http"] }] }],
        metadata: { role: "web" },
      },
    });
    await send(service, "GET", `/v1/apps/old-shop/machines/${machine}/wait?state=started`);
    Object.assign(ids, { app: "old-shop", volume: `old-shop/${volume}`, machine: `old-shop/${machine}` });
  });
  afterAll(() => service.close());

  const program = (changes: { greeting?: string; options?: string } = {}): void =>
    stack.program(`${start}
new machines.App("shop", { name: "old-shop" }${changes.options === undefined ? "" : `, { import: "old-shop" }`});
new machines.Volume("data", { app: "old-shop", name: "data", region: "ams", sizeGb: 1 }${changes.options === undefined ? "" : `, { import: "${ids["volume"]}" }`});
new machines.Machine("web", {
  app: "old-shop",
  name: "web",
  region: "ams",
  config: {
    image: "${image}",
    env: { GREETING: "${changes.greeting ?? "hello"}", PASSWORD: "hush-hush" },
    restart: { policy: "always" },
    mounts: [{ volume: "${ids["volume"]?.split("/")[1]}", path: "/data" }],
    services: [{ protocol: "tcp", internalPort: 8080, ports: [{ port: 80, handlers: ["http"] }] }],
    metadata: { role: "web" },
  },
}${changes.options === undefined ? "" : `, { import: "${ids["machine"]}" }`});`);

  test("after an import by id, a program with the imported inputs previews without changes, and nothing was written", async () => {
    const before = service.requests.length;
    const flags = ["--yes", "--skip-preview", "--generate-code=false", "--protect=false"];
    await stack.ok("import", "machines:index:App", "shop", ids["app"] ?? "", ...flags);
    await stack.ok("import", "machines:index:Volume", "data", ids["volume"] ?? "", ...flags);
    // A CLI that this repository has built imports, and then fails to print the program (docs/import.md).
    const printed = flags.filter((flag) => !flag.startsWith("--generate-code"));
    const { code, output } = await stack.run([
      ...["import", "machines:index:Machine", "web", ids["machine"] ?? ""],
      ...printed,
    ]);
    if (code === 0) expect(output).toContain("new machines.Machine");
    else expect(output).toContain("unknown method GenerateProgram");
    const { shop, data, web } = stack.state();
    expect(shop?.inputs).toEqual({ name: "old-shop", network: expect.anything(), organization: "personal" });
    expect(data?.inputs).toEqual({ app: "old-shop", name: "data", region: "ams", sizeGb: 1 });
    expect(web?.inputs).toEqual({
      app: "old-shop",
      name: "web",
      region: "ams",
      config: {
        image,
        env: { GREETING: "hello", PASSWORD: "hush-hush" },
        restart: { policy: "always" },
        mounts: [{ volume: ids["volume"]?.split("/")[1], path: "/data" }],
        services: [{ protocol: "tcp", internalPort: 8080, ports: [{ port: 80, handlers: ["http"] }] }],
        metadata: { role: "web" },
      },
    });
    program();
    expect(await stack.preview()).toEqual({});
    expect(counts(await stack.up())).toEqual({ unchanged: 4 });
    expect(counts(await stack.refresh())).toEqual({ unchanged: 4 });
    expect(writesOf(service, before)).toEqual([]);
  });

  test("a value that the program makes secret is encrypted in the state by the next up, without a request", async () => {
    expect(await stack.ok("stack", "export")).toContain("hush-hush");
    const before = service.requests.length;
    stack.program(stack.read().replace('PASSWORD: "hush-hush"', 'PASSWORD: pulumi.secret("hush-hush")'));
    expect(counts(await stack.up())).toEqual({ updated: 1, unchanged: 3 });
    expect(await stack.ok("stack", "export")).not.toContain("hush-hush");
    expect(writesOf(service, before)).toEqual([]);
  });

  test("an invalid id, an unknown id and the id of a destroyed object are refused, and the error shows the form", async () => {
    const gone = await makeMachine(service, "old-shop", { config: { image } });
    await send(service, "DELETE", `/v1/apps/old-shop/machines/${gone}?force=true`);
    for (const id of ["old-shop", "old-shop/3d8d413b29d089", `old-shop/${gone}`]) {
      const output = await stack.fails("import", "machines:index:Machine", "other", id, "--yes");
      expect(output).toMatch(/(is no id of this resource|there is no Machine).* the form <app>\/<machineId>/);
    }
    expect(Object.keys(stack.state())).not.toContain("other");
  });

  test("the import option shows differences, and up imports and changes the object", async () => {
    await stack.ok("state", "delete", stack.urn("Machine", "web"), "--yes");
    await stack.ok("state", "delete", stack.urn("Volume", "data"), "--yes");
    await stack.ok("state", "delete", stack.urn("App", "shop"), "--yes");
    program({ greeting: "hi", options: "import" });
    const { web } = await stack.preview();
    expect(web?.changes).toEqual(["config.env.GREETING"]);
    await stack.up();
    const live = await send<{ config: { env: Record<string, string> } }>(
      service,
      "GET",
      `/v1/apps/old-shop/machines/${ids["machine"]?.split("/")[1] ?? ""}`,
    );
    expect(live.config.env["GREETING"]).toBe("hi");
    await stack.destroy();
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
  });
});

describe("several endpoints in one program", () => {
  let here: TestService;
  let there: TestService;
  let stack: Stack;

  beforeAll(async () => {
    [here, there] = await Promise.all([startService(), startService()]);
    stack = new Stack(inject("installed"), "places", plugin);
    await stack.init({});
  });
  afterAll(() => Promise.all([here.close(), there.close()]));

  const program = (second: { url: string; token: string } = there, more = ""): void =>
    stack.program(`${start}
const here = new machines.Provider("here", { endpoint: "${here.url}", token: "${here.token}", retries: 3 });
const there = new machines.Provider("there", { endpoint: "${second.url}", token: "${second.token}" });
const one = new machines.App("one", { name: "first-place" }, { provider: here });
const two = new machines.App("two", { name: "second-place" }, { provider: there });
const data = new machines.Volume("data", { app: two.id, region: "ams" }, { provider: there });
${more}`);
  const names = async ({ url, token }: TestService): Promise<string[]> =>
    (await send<{ apps: { name: string }[] }>({ url, token }, "GET", "/v1/apps?org_slug=personal")).apps.map(
      ({ name }) => name,
    );

  test("each resource is created at its provider's endpoint, and tokens are secrets in the state", async () => {
    // Unknown values at preview never reach the program's own code, whatever their type.
    program(
      there,
      "export const twice = data.currentSizeGb.apply((gb) => Number(gb).toFixed(0) + (typeof gb as string));",
    );
    expect(Object.keys(await stack.preview())).toHaveLength(3);
    await stack.up();
    expect((await stack.ok("stack", "output", "twice")).trim()).toBe("3number");
    program();
    expect([await names(here), await names(there)]).toEqual([["first-place"], ["second-place"]]);
    const state = await stack.ok("stack", "export");
    for (const { token } of [here, there]) expect(state).not.toContain(token);
  });

  test("another spelling of the endpoint and another token do not change the resources", async () => {
    program({ url: `${there.url}/v1/`, token: there.token });
    expect(await stack.preview()).toEqual({});
    program();
  });

  // In process: test/plugin/configuration.test.ts.
  test("another endpoint replaces nothing: if its service does not know the App, the change is refused (R14)", async () => {
    program(here);
    const unknown = /the service knows neither App second-place nor any other App of this run/;
    expect(await stack.fails("preview")).toMatch(unknown);
    expect(await stack.fails("up", "--yes")).toMatch(unknown);
    expect([await names(here), await names(there)], "nothing was made").toEqual([["first-place"], ["second-place"]]);
    program();
    expect(await stack.preview()).toEqual({});
  });

  // In process: test/plugin/configuration.test.ts.
  test("resources of a token that is not yet known preview as unknown", async () => {
    program(
      there,
      `const late = one.appId.apply(() => "${here.token}");
const third = new machines.Provider("third", { endpoint: "${here.url}", token: late });
new machines.App("three", { name: "third-place" }, { provider: third });`,
    );
    await stack.destroy();
    const steps = await stack.preview();
    expect(steps["three"]?.op).toBe("create");
    await stack.up();
    expect((await names(here)).toSorted()).toEqual(["first-place", "third-place"]);
    await stack.destroy();
    expect([await names(here), await names(there)]).toEqual([[], []]);
  });

  test("an invalid provider argument is refused at preview, by name", async () => {
    stack.program(`${start}
new machines.Provider("wrong", { endpoint: "machines.example.com", token: "t", retires: 3 } as machines.ProviderArgs);`);
    const output = await stack.fails("preview");
    expect(output).toMatch(/machines:endpoint: got "machines\.example\.com"; must begin with http/);
    expect(output).toMatch(/machines:retires: there is no such configuration; did you mean machines:retries\?/);
  });
});

// The lifecycle suite has this in process for every type, and the upgrade test a whole program in one direction.
describe("from the dynamic binding to the plugin", () => {
  test("changing the import to the plugin and back changes nothing in the service", async () => {
    const service = await startService();
    try {
      const stack = new Stack(inject("installed"), "switch");
      await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
      const program = (greeting: string): string => `${start}
const app = new machines.App("shop");
const data = new machines.Volume("data", { app: app.id, region: "ams" });
class Half extends pulumi.ComponentResource {
  constructor(name: string) {
    super("test:index:Half", name);
    new machines.Machine(\`\${name}-web\`, {
      app: app.id,
      region: "ams",
      config: {
        image: "${image}",
        env: { GREETING: "${greeting}", PASSWORD: pulumi.secret("hush-hush") },
        mounts: [{ volume: data.id, path: "/data" }],
      },
    }, { parent: this });
  }
}
new Half("half");`;
      stack.program(program("hello"));
      await stack.up();
      stack.switchTo(plugin);
      stack.program(program("hello"));
      const before = service.requests.length;
      expect(await stack.preview()).toEqual({});
      expect(counts(await stack.up())).toEqual({ unchanged: 5 });
      expect(counts(await stack.refresh())).toEqual({ unchanged: 5 });
      expect(writesOf(service, before)).toEqual([]);
      stack.program(program("hi"));
      expect(counts(await stack.up())).toEqual({ updated: 1, unchanged: 4 });
      expect(await stack.ok("stack", "export")).not.toMatch(/hush-hush/);
      // And back: an update writes the reference to the dynamic provider into the state, and sends nothing.
      stack.switchTo("pulumi-machines");
      stack.program(program("hi"));
      const changed = service.requests.length;
      expect(counts(await stack.up())).toEqual({ updated: 3, unchanged: 2 });
      expect(counts(await stack.up())).toEqual({ unchanged: 5 });
      expect(counts(await stack.refresh())).toEqual({ unchanged: 5 });
      expect(writesOf(service, changed)).toEqual([]);
      expect(await stack.ok("stack", "export")).not.toMatch(/hush-hush/);
      await stack.destroy();
      expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
    } finally {
      await service.close();
    }
  });
});

describe("a plugin in Pulumi's own folder", () => {
  test("a plugin in Pulumi's own folder is installed from the release archive, and a stack runs on it", async () => {
    const service = await startService();
    try {
      const stack = new Stack(inject("installed"), "kept", plugin);
      stack.env["PULUMI_IGNORE_AMBIENT_PLUGINS"] = "true"; // the clone's own plugin is on the PATH of npm scripts
      writeFileSync(join(stack.dir, "Pulumi.yaml"), "name: kept\nruntime: nodejs\n");
      await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
      stack.program(`${start}new machines.App("shop");`);
      expect(await stack.fails("preview"), "not there yet").toMatch(/machines/);
      const { version } = await installReleased(stack);
      expect(counts(await stack.up())).toEqual({ created: 2 });
      expect(await stack.ok("plugin", "ls")).toMatch(
        new RegExp(`machines +resource +${version.replaceAll(".", "\\.")}`),
      );
      await stack.destroy();
      expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
    } finally {
      await service.close();
    }
  });
});

describe("a plugin folder outside of every project", () => {
  let outside = "";
  let folder = "";
  beforeAll(() => {
    outside = mkdtempSync(join(tmpdir(), "pulumi-machines-outside-"));
    folder = join(outside, "plugin");
    cpSync(join(inject("installed"), "node_modules", plugin, "plugin"), folder, { recursive: true });
  });
  afterAll(() => rmSync(outside, { recursive: true, force: true, maxRetries: 3 }));

  const schemaOf = (source: string): Promise<Ran> => {
    const child = spawn("pulumi", ["package", "get-schema", source, "--non-interactive", "--color", "never"], {
      cwd: outside,
      env: {
        ...process.env,
        PULUMI_HOME: join(outside, "home"),
        PULUMI_SKIP_UPDATE_CHECK: "true",
        // No registry answers there: all that the folder needs is in it.
        npm_config_registry: "http://127.0.0.1:9",
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    return collected(child).ended;
  };

  test("its executable returns the schema", async () => {
    const { code, stdout, output } = await schemaOf(join(folder, "pulumi-resource-machines"));
    expect(code, output).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ name: "machines" });
  });

  // A language host that cannot run plugins fails at the end; another host uses what it installed.
  test("the folder returns the schema, which names the npm package that runs it", async () => {
    const { code, stdout, output } = await schemaOf(folder);
    if (code === 0) expect(JSON.parse(stdout)).toMatchObject({ name: "machines" });
    else expect(output).toMatch(/could not read plugin .*: not supported/);
    expect(output).not.toMatch(/npm error|ECONNREFUSED/);
    rmSync(join(folder, "pulumi-resource-machines"));
    const runner = join(folder, "node_modules/@pulumi/pulumi/cmd/run-plugin");
    const run = await startPlugin({ command: [process.execPath, runner, folder] });
    try {
      const schema = (await run.client.getSchema(new proto.GetSchemaRequest())).getSchema();
      expect(JSON.parse(schema)).toMatchObject({ name: "machines" });
      expect(run.written.stdout).toBe(`${run.port}\n`);
    } finally {
      await run.close();
    }
  });
});

test("pulumi do, without a state and with one URN per type, creates a second object without mentioning the first (F45)", async () => {
  const service = await startService();
  try {
    const stack = new Stack(inject("installed"), "do", plugin);
    await makeApp(service, "do-app");
    const env = { MACHINES_ENDPOINT: service.url, MACHINES_TOKEN: service.token };
    const folder = "plugin/pulumi-resource-machines";
    const ours = join(inject("installed"), "node_modules/pulumi-machines-plugin", folder);
    const inputs = ["--app", "do-app", "--region", "ams", "--name", "data", "--yes"];
    const args = ["do", "--package", ours, "machines:index:Volume", "create", "--stateless", ...inputs];
    for (let count = 1; count <= 2; count++) {
      const { code, output } = await stack.run(args, { env });
      expect(code, output).toBe(0);
      expect(output).not.toMatch(/warning|earlier run/);
      expect(await send<unknown[]>(service, "GET", "/v1/apps/do-app/volumes")).toHaveLength(count);
    }
    const volume = async (...words: string[]) => {
      const ran = await stack.run(["do", "--package", ours, "machines:index:Volume", ...words], { env });
      expect(ran.code, ran.output).toBe(0);
      return ran;
    };
    const listed = async (...words: string[]) =>
      JSON.parse((await volume("list", ...words)).stdout) as { readonly id: string }[];
    const [first, ...others] = await listed("--app", "do-app", "--all");
    expect(others).toHaveLength(1);
    expect(await listed("--count", "1")).toEqual([first]);
    const id = first?.id ?? "";
    expect((await volume("read", id)).output).toContain(id);
    await volume("delete", id, "--stateless", "--yes");
    expect(await listed()).toEqual(others);
  } finally {
    await service.close();
  }
});

describe("pulumi do with a stack", () => {
  test("pulumi do with a stack creates, patches and upserts in the stack, refuses a second one, and up leaves it as it is", async () => {
    const service = await startService();
    try {
      const stack = new Stack(inject("installed"), "do-stack", plugin);
      stack.program("export {};");
      await stack.init({});
      // It starts only an installed plugin; a folder with a PulumiPlugin.yaml would be installed by npm.
      const from = join(inject("installed"), "node_modules", plugin, "plugin");
      const { version } = JSON.parse(readFileSync(join(from, "package.json"), "utf8")) as { version: string };
      const home = join(stack.dir, `.pulumi-home/plugins/resource-machines-v${version}`);
      for (const file of ["pulumi-resource-machines", "provider"])
        cpSync(join(from, file), join(home, file), { recursive: true });
      const env = { MACHINES_ENDPOINT: service.url, MACHINES_TOKEN: service.token };
      const run = (type: string, ...words: string[]) =>
        stack.run(["do", "--package", `machines@${version}`, `machines:index:${type}`, ...words, "--yes"], { env });
      const todo = (...words: string[]) => run("App", ...words);
      const apps = async () =>
        (await send<{ total_apps: number }>(service, "GET", "/v1/apps?org_slug=personal")).total_apps;
      const made = await todo("create", "shop", "--name", "do-stack-app");
      expect(made.code, made.output).toBe(0);
      const again = await todo("create", "shop", "--name", "do-stack-app");
      expect([again.code === 0, again.output]).toEqual([false, expect.stringContaining("already exists in stack")]);
      const up = await stack.run(["up", "--yes", "--skip-preview"], { env });
      expect([up.code, await apps()], up.output).toEqual([0, 1]);
      const volume = async (...words: string[]) => {
        const { code, output } = await run("Volume", ...words);
        expect(code, output).toBe(0);
        return send<{ id: string; region: string; size_gb: number; encrypted: boolean }[]>(
          service,
          "GET",
          "/v1/apps/do-stack-app/volumes",
        );
      };
      const [created] = await volume("create", "data", "--app", "do-stack-app", "--region", "fra", "--size-gb", "1");
      expect(created).toMatchObject({ region: "fra", size_gb: 1, encrypted: true });
      // A patch keeps the inputs that it does not name; an upsert replaces all of them.
      expect(await volume("patch", "data", "--size-gb", "2")).toMatchObject([{ ...created, size_gb: 2 }]);
      const all = ["--app", "do-stack-app", "--region", "fra", "--size-gb", "3"];
      expect(await volume("upsert", "data", ...all)).toMatchObject([{ ...created, size_gb: 3 }]);
      expect(await volume("upsert", "other", ...all)).toHaveLength(2);
      // Another region would destroy the data: refused as in a program.
      const refused = await run("Volume", "patch", "data", "--region", "ams");
      expect([refused.code === 0, refused.output]).toEqual([
        false,
        expect.stringContaining("changing it replaces the Volume and destroys"),
      ]);
      for (const name of ["data", "other"]) await volume("delete", name);
      const deleted = await todo("delete", "shop");
      expect([deleted.code, await apps()], deleted.output).toEqual([0, 0]);
    } finally {
      await service.close();
    }
  });
});
