// The programs of docs/gallery.md with the real CLI, and the steps that make each of them what it is. That they are created,
// unchanged and destroyed is in examples.test.ts.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { parse } from "yaml";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { exampleStack } from "../support/example.ts";
import { expectUnchanged } from "../support/invariants.ts";
import { counts, Stack } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";

interface MachineOf {
  readonly id: string;
  readonly name: string;
  readonly region: string;
  readonly state: string;
  readonly events: readonly { readonly type: string; readonly status: string }[];
}

let service: TestService;
beforeEach(async () => {
  service = await startService();
});
afterEach(() => service.close());

/** The value of an output of the stack. */
const output = async <T>(stack: Stack, name: string): Promise<T> =>
  JSON.parse((await stack.run(["stack", "output", name, "--json", "--show-secrets"])).stdout) as T;

const machinesOf = (app: string): Promise<MachineOf[]> => send(service, "GET", `/v1/apps/${app}/machines`);

const machineCalled = async (app: string, name: string): Promise<MachineOf> => {
  const found = (await machinesOf(app)).find((machine) => machine.name.startsWith(name));
  if (found === undefined) throw new Error(`there is no Machine ${name}`);
  return send(service, "GET", `/v1/apps/${app}/machines/${found.id}`);
};

/** Destroys the stack: nothing remains. */
async function destroy(stack: Stack): Promise<void> {
  await stack.destroy();
  expect(stack.state()).toEqual({});
  expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
}

test("worker-queue: the workflow brings the workers to the number of the hour", async () => {
  const stack = await exampleStack("worker-queue", service, { hour: "3" });
  await stack.up();
  expect(await output(stack, "workerMachines")).toHaveLength(1);
  const { jobs } = parse(readFileSync(join(stack.dir, "workflows/scale.yml"), "utf8")) as {
    jobs: { scale: { steps: { run?: string }[] } };
  };
  const scale = jobs.scale.steps.find(({ run }) => run?.startsWith("pulumi up"))?.run ?? "";
  for (const [hour, workers] of [
    ["6", 4],
    ["18", 2],
    ["23", 1],
  ] as const) {
    await stack.set({ hour });
    const ran = await stack.run(["-euc", scale.replace("--stack prod", "--stack dev")], {
      command: "bash",
      plain: true,
    });
    expect(ran.code, ran.output).toBe(0);
    expect(counts(ran.output)["updated"]).toBe(1);
    expect(await output(stack, "workerMachines")).toHaveLength(workers);
  }
  // The queue was never touched.
  const [app] = [await output<string>(stack, "appName")];
  expect((await machineCalled(app, "queue")).events.filter(({ type }) => type === "start")).toHaveLength(1);
  await destroy(stack);
});

test("scheduled-jobs: a job that has ended runs again after its time, and changes nothing in the program", async () => {
  const stack = await exampleStack("scheduled-jobs", service, { image: "registry.example.com/shop:simulate-exit-0" });
  await stack.up();
  const app = await output<string>(stack, "appName");
  const starts = async (name: string): Promise<number> => {
    const { events } = await machineCalled(app, name);
    return events.filter(({ type, status }) => type === "start" && status === "started").length;
  };
  const ended = async (name: string): Promise<string> => (await machineCalled(app, name)).state;
  for (const name of ["expire-carts", "report", "invoices"]) await expect.poll(() => ended(name)).toBe("stopped");
  const before = await Promise.all(["expire-carts", "report"].map(starts));
  service.service.context.clock.advance(3_600_000);
  await expect.poll(() => starts("expire-carts")).toBe((before[0] ?? 0) + 1);
  await expect.poll(() => ended("expire-carts")).toBe("stopped");
  expect(await starts("report")).toBe(before[1]);
  await expectUnchanged(stack);
  await destroy(stack);
});

test("static-site: the Machines have the files, and a changed file is published", async () => {
  const stack = await exampleStack("static-site", service, { hostname: "www.example.com" });
  await stack.up();
  const app = await output<string>(stack, "appName");
  const shown = async (file: string): Promise<string> => {
    const { id } = await machineCalled(app, "web");
    const command = { command: ["cat", `/srv/${file}`] };
    return (await send<{ stdout: string }>(service, "POST", `/v1/apps/${app}/machines/${id}/exec`, command)).stdout;
  };
  const local = (file: string): string => readFileSync(join(stack.dir, "site", file), "utf8");
  for (const file of ["index.html", "css/site.css"]) expect((await shown(file)).trim()).toBe(local(file).trim());
  expect(await output(stack, "dnsRecords")).toBeTruthy();
  appendFileSync(join(stack.dir, "site/css/site.css"), "h1 {\n  color: green;\n}\n");
  expect(counts(await stack.up())).toMatchObject({ updated: 1 });
  expect(await shown("css/site.css")).toContain("color: green");
  await expectUnchanged(stack);
  await destroy(stack);
});

describe("multi-region", () => {
  const web = async (stack: Stack): Promise<string[]> =>
    (await output<string[]>(stack, "webMachines")).map((text) => text.slice(-3)).sort();

  test("the Machines of a region that is lost are created elsewhere", async () => {
    const stack = await exampleStack("multi-region", service);
    await stack.up();
    expect(await web(stack)).toEqual(["ams", "ams", "iad", "iad"]);
    const app = await output<string>(stack, "appName");
    const [fault] = service.service.faults.add({ unreachableHost: { app, region: "iad" } });
    await stack.ok("up", "--yes", "--skip-preview", "--refresh");
    expect(await web(stack)).toEqual(["ams", "ams", "fra", "fra"]);
    if (fault !== undefined) service.service.faults.remove(fault);
    await stack.ok("up", "--yes", "--skip-preview", "--refresh");
    expect(await web(stack)).toHaveLength(4);
    await expectUnchanged(stack);
    await destroy(stack);
  });

  test("the standby starts when the worker has failed, and the next up repairs it", async () => {
    const stack = await exampleStack("multi-region", service);
    await stack.up();
    const app = await output<string>(stack, "appName");
    const { id } = await machineCalled(app, "worker-ams");
    expect(await machineCalled(app, "worker-standby")).toMatchObject({ state: "stopped" });
    // Its program is killed more often than it is started again.
    await expect
      .poll(async () => {
        const { state } = await machineCalled(app, "worker-ams");
        if (state === "started")
          await send(service, "POST", `/v1/apps/${app}/machines/${id}/signal`, { signal: "SIGKILL" });
        return state;
      })
      .toBe("failed");
    await expect.poll(async () => (await machineCalled(app, "worker-standby")).state).toBe("started");
    await stack.ok("up", "--yes", "--skip-preview", "--refresh");
    expect(await machineCalled(app, "worker-ams")).toMatchObject({ state: "started" });
    expect(await machineCalled(app, "worker-standby")).toMatchObject({ state: "stopped" });
    await destroy(stack);
  });
});

test("sandboxes: each user has a network and a token that opens no other sandbox, and leaves without the others", async () => {
  const stack = await exampleStack("sandboxes", service);
  await stack.up();
  const { ada, grace } = await output<Record<string, { app: string; token: string }>>(stack, "sandboxes");
  if (ada === undefined || grace === undefined) throw new Error("a sandbox is missing");
  const networks = Object.values(stack.state()).flatMap(({ inputs }) => inputs["network"] ?? []);
  expect(networks.sort()).toEqual(["sandbox-ada", "sandbox-grace"]);
  const withToken = { url: service.url, token: ada.token };
  expect(await send(withToken, "GET", `/v1/apps/${ada.app}`)).toMatchObject({ name: ada.app });
  await expect(send(withToken, "GET", `/v1/apps/${grace.app}`)).rejects.toThrow(/: 40[34] /);
  await expect(send(withToken, "DELETE", `/v1/apps/${grace.app}`)).rejects.toThrow(/: 40[34] /);
  await stack.set({ users: '["ada"]' });
  expect(counts(await stack.up())).toEqual({ deleted: 5, unchanged: 6 });
  await expectUnchanged(stack);
  await destroy(stack);
});

test("private-network: only the gateway has addresses, and all Apps are on the network of the stack", async () => {
  const stack = await exampleStack("private-network", service);
  await stack.up();
  const apps = await output<Record<"gateway" | "api" | "cache", string>>(stack, "apps");
  const addresses = async (app: string): Promise<number> =>
    (await send<{ ips: unknown[] }>(service, "GET", `/v1/apps/${app}/ip_assignments`)).ips.length;
  expect(await Promise.all([apps.gateway, apps.api, apps.cache].map(addresses))).toEqual([2, 0, 0]);
  for (const app of Object.values(apps))
    expect(await send(service, "GET", `/v1/apps/${app}`)).toMatchObject({ network: "shop-dev" });
  const { id } = await machineCalled(apps.gateway, "gateway");
  const path = `/v1/apps/${apps.gateway}/machines/${id}/exec`;
  expect(await send(service, "POST", path, { command: ["env"] })).toMatchObject({
    stdout: expect.stringContaining(`API_URL=http://${apps.api}.internal:8080`) as string,
  });
  await destroy(stack);
});

// The commands of the page, as someone would type them.
const [, commands = ""] =
  /^```sh\n(npx pulumi-machines import .*?)^```/ms.exec(readFileSync("docs/import.md", "utf8")) ?? [];

test("an existing organization becomes a program by the commands of docs/import.md, and nothing in it changes", async () => {
  const app = await makeApp(service, "my-shop");
  await send(service, "POST", `/v1/apps/${app}/secrets/DATABASE_URL`, { value: "postgres://db.example.com/shop" });
  for (const region of ["ams", "fra"]) {
    const volume = await makeVolume(service, app, region);
    const config = { image: "registry.example.com/shop:1", mounts: [{ volume, path: "/data" }] };
    await makeMachine(service, app, { name: `web-${region}`, region, config });
  }
  const before = service.requests.length;
  const stack = new Stack(inject("installed"), "gallery-import");
  // No package is published yet, so the installed ones stand in for `npm install`.
  const installed = join(inject("installed"), "node_modules");
  const env = {
    PATH: `${join(installed, ".bin")}${delimiter}${process.env["PATH"] ?? ""}`,
    MACHINES_ENDPOINT: service.url,
    MACHINES_TOKEN: service.token,
  };
  const run = async (script: string): Promise<string> => {
    const { code, output: said } = await stack.run(["-euc", script], { command: "bash", plain: true, env });
    expect(code, said).toBe(0);
    return said;
  };
  const typed = commands
    .replace("npx pulumi-machines", "pulumi-machines")
    .replace("my-company", "personal")
    .replace("npm install", `ln -s ${installed} node_modules`)
    .replace("https://machines.example.com", service.url)
    .replace("machines:token", 'machines:token <<< "$MACHINES_TOKEN"')
    .replace("pulumi import", "pulumi import --yes")
    .replace("--out shop", "--out imported")
    .replace("cd shop", "cd imported");
  const [importing = "", preview = ""] = typed.split(/^(?=pulumi preview)/m);
  const said = await run(importing);
  // The command names the secrets that the service does not show.
  const keys = [...said.matchAll(/config set --secret (\S+)/g)]
    .map(([, key = ""]) => key)
    .filter((key) => key !== "machines:token");
  expect(keys).toHaveLength(1);
  for (const key of keys) await run(`cd imported && pulumi config set --secret ${key} x`);
  expect(existsSync(join(stack.dir, "imported/index.ts"))).toBe(true);
  const shown = counts(await run(`cd imported && ${preview}`));
  expect(Object.keys(shown)).toEqual(["unchanged"]);
  expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
  await run("cd imported && pulumi state unprotect --all --yes && pulumi destroy --yes --skip-preview");
  expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
});
