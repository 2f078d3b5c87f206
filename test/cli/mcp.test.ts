// `pulumi-machines mcp` as assistants use it: the official client, the built command, a real service. test/e2e/mcp.test.ts has
// plans and updates.
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { makeApp, makeCluster, makeMachine, makeVolume, send } from "../support/around.ts";
import { cliMain } from "../support/built.ts";
import { leaks, type Readable } from "../support/canaries.ts";
import { currentCertificate } from "../support/certificates.ts";
import { Output, WritingRuntime } from "../support/logs.ts";
import { assistant, type Assistant } from "../support/mcp.ts";
import { hang } from "../support/patience.mts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { answeringCli } from "./answeringCli.ts";
import { exportOf } from "./exports.ts";

/** Secrets in every place from which a tool reads. */
const canaries = {
  "a variable": "canary-variable-5601",
  "a variable of a process": "canary-process-5602",
  "a variable of a container": "canary-container-5613",
  "the contents of a file": "canary-file-5603",
  "a header of a check": "canary-header-5604",
  "a secret of the App": "canary-secret-5605",
  "a command": "canary-command-5606",
  metadata: "canary-metadata-5607",
  "the state": "canary-state-5608",
  "a line of the state": "canary-line-5614",
  "another resource of the state": "canary-other-5609",
  "the configuration": "canary-config-5610",
  "the passphrase": "canary-passphrase-5611",
};

const image = "registry.example.com/shop:1";
const output = new Output();

let service: TestService;
let folder = "";
let machine = "";
let volume = "";
let cluster = "";
let nonce = "";
let privateKey = "";
let password = "";
let reader: Assistant;
let changer: Assistant;
/** Everything that tools have answered. */
const seen: Readable[] = [];

beforeAll(async () => {
  service = await startService({ runtime: (host) => new WritingRuntime(host, output) });
  folder = mkdtempSync(join(tmpdir(), "machines-mcp-"));
  await makeApp(service, "shop");
  await send(service, "POST", "/v1/apps/shop/secrets/TOKEN", { value: canaries["a secret of the App"] });
  volume = await makeVolume(service, "shop", "ams");
  machine = await makeMachine(service, "shop", {
    name: "web",
    region: "ams",
    config: {
      image,
      env: { API_TOKEN: canaries["a variable"], LEVEL: "debug" },
      processes: [{ env: { DB_PASSWORD: canaries["a variable of a process"] } }],
      containers: [{ name: "side", image, env: { DB_PASSWORD: canaries["a variable of a container"] } }],
      files: [
        { guest_path: "/etc/key", raw_value: Buffer.from(canaries["the contents of a file"]).toString("base64") },
      ],
      checks: {
        alive: {
          ...{ type: "http", port: 80, path: "/" },
          headers: [{ name: "authorization", values: [canaries["a header of a check"]] }],
        },
      },
      init: { cmd: ["serve", `--key=${canaries["a command"]}`] },
      metadata: { "pulumi-fleet": "web", note: canaries["metadata"] },
      services: [{ internal_port: 8080, protocol: "tcp", ports: [{ port: 443, handlers: ["tls", "http"] }] }],
      mounts: [{ volume, path: "/data" }],
    },
  });
  await makeMachine(service, "shop", { name: "idle", region: "fra", config: { image } });
  await send(service, "POST", "/v1/apps/shop/ip_assignments", { type: "v4" });
  const own = currentCertificate({ hosts: ["www.example.com"] });
  privateKey = own.private_key.split("\n")[1] ?? "";
  await send(service, "POST", "/v1/apps/shop/certificates/custom", { hostname: "www.example.com", ...own });
  cluster = await makeCluster(service, "main");
  await vi.waitFor(
    async () =>
      expect((await send<{ data: { status: string } }>(service, "GET", `/v1/postgres/${cluster}`)).data.status).toBe(
        "ready",
      ),
    hang,
  );
  await send(service, "POST", `/v1/postgres/${cluster}/users`, { username: "shop", role: "writer" });
  const credentials = await send<{ data: { password: string } }>(
    service,
    "GET",
    `/v1/postgres/${cluster}/users/shop/credentials`,
  );
  ({ password } = credentials.data);
  output.write(machine, Date.now() - 1000, "listening on port 8080");
  output.write(machine, Date.now() - 900, `token is ${canaries["a variable"]}`);
  output.write(
    machine,
    Date.now() - 800,
    `state has ${canaries["the state"]}, ${canaries["another resource of the state"]}`,
  );
  output.write(machine, Date.now() - 750, `side has ${canaries["a variable of a container"]}`);
  output.write(machine, Date.now() - 720, canaries["a line of the state"]);
  output.write(machine, Date.now() - 700, `\u001b[31mred\u001b[0m ${"x".repeat(5000)}`);
  const env = {
    MACHINES_ENDPOINT: service.url,
    MACHINES_TOKEN: service.token,
    PULUMI_CONFIG_PASSPHRASE: canaries["the passphrase"],
  };
  [reader, changer] = await Promise.all([
    assistant({ env, cwd: folder }),
    assistant({ env, cwd: folder, args: ["--allow-changes"] }),
  ]);
  for (const one of [reader, changer]) {
    const { ask } = one;
    const noted: Assistant["ask"] = async (name, args) => {
      const answer = await ask(name, args);
      seen.push({ what: `${name} ${JSON.stringify(args ?? {})}`, text: answer.text });
      return answer as never;
    };
    Object.assign(one, { ask: noted });
  }
});
afterAll(async () => {
  // If it could not begin, its failure is the one to show.
  for (const one of [reader, changer] as readonly (Assistant | undefined)[]) await one?.close();
  await service.close();
  rmSync(folder, { recursive: true });
});

/** The answer of a tool that must succeed. */
async function get<T = Record<string, unknown>>(
  name: string,
  args: Record<string, unknown> = {},
  of = reader,
): Promise<T> {
  const { text, isError, found } = await of.ask<T>(name, args);
  expect(isError, text).toBe(false);
  return found;
}

/** The message of a tool that must fail. */
async function refused(name: string, args: Record<string, unknown>, of = reader): Promise<string> {
  const { text, isError } = await of.ask(name, args);
  expect(isError, text).toBe(true);
  return (JSON.parse(text) as { content: { text: string }[] }).content[0]?.text ?? "";
}

test("tools that change something exist only with --allow-changes, and all others say that they only read", async () => {
  const reading = ["cost", "list", "logs", "plan", "problems", "read_docs", "search_docs", "show"];
  const [{ tools: few }, { tools: all }] = await Promise.all([reader.client.listTools(), changer.client.listTools()]);
  expect(few.map(({ name }) => name).toSorted()).toEqual(reading);
  expect(few.filter(({ annotations }) => annotations?.readOnlyHint !== true)).toEqual([]);
  const changing = all.filter(({ annotations }) => annotations?.readOnlyHint === false);
  expect(changing.map(({ name }) => name)).toEqual(["apply_plan", "change_machine"]);
  expect(changing.filter(({ annotations }) => annotations?.destructiveHint !== true)).toEqual([]);
  for (const { name, description, inputSchema, outputSchema } of all)
    expect([name, description?.length, inputSchema.type, outputSchema?.["type"]]).toEqual([
      ...[name, expect.any(Number), "object", "object"],
    ]);
  expect(reader.client.getInstructions()).toContain("--allow-changes");
  await expect(reader.client.callTool({ name: "apply_plan", arguments: { plan: "plan-1" } })).rejects.toThrow(
    /apply_plan/,
  );
});

test("list has every kind of objects, with filters and a limit", async () => {
  type List = { readonly items: Record<string, unknown>[]; readonly more: boolean; readonly notes: string[] };
  const list = (kind: string, more: object = {}) => get<List>("list", { kind, ...more });
  expect((await list("app")).items).toMatchObject([{ id: "shop", machines: 2, volumes: 1 }]);
  expect((await list("machine")).items).toHaveLength(2);
  expect(await list("machine", { region: "ams" })).toMatchObject({
    items: [{ id: machine, app: "shop", name: "web", region: "ams", state: "started", image, fleet: "web" }],
    more: false,
  });
  expect(await list("machine", { limit: 1 })).toMatchObject({ more: true });
  expect((await list("machine", { name: "idl" })).items).toMatchObject([{ name: "idle" }]);
  expect((await list("machine", { app: "other" })).items).toEqual([]);
  expect((await list("fleet")).items).toMatchObject([
    { id: "shop/web", machines: 1, regions: { ams: 1 }, states: { started: 1 }, images: [{ image, machines: 1 }] },
  ]);
  expect((await list("volume")).items).toMatchObject([{ id: volume, app: "shop", sizeGb: 1, machine }]);
  expect((await list("cluster")).items).toMatchObject([{ id: cluster, name: "main", state: "ready", plan: "basic" }]);
  expect((await list("certificate")).items).toMatchObject([{ id: "www.example.com", app: "shop" }]);
  expect((await list("ip_address", { app: "shop" })).items).toMatchObject([
    { app: "shop", id: expect.stringMatching(/^198\./) },
  ]);
  expect(await refused("list", { kind: "ip_address", app: "none" })).toMatch(/apps\.get answered 404/);
});

test("show has the details of one object, with the names of variables and files and none of their values", async () => {
  const show = async (kind: string, id: string, app?: string) =>
    (await get<{ object: Record<string, unknown> }>("show", { kind, id, ...(app !== undefined && { app }) })).object;
  expect(await show("machine", `shop/${machine}`)).toMatchObject({
    ...{ id: machine, name: "web", state: "started", image, fleet: "web" },
    ...{ variables: ["API_TOKEN", "LEVEL"], files: ["/etc/key"], mounts: [{ path: "/data", volume }] },
    services: [{ internalPort: 8080, protocol: "tcp", ports: [{ port: 443, handlers: ["tls", "http"] }] }],
    events: expect.arrayContaining([expect.objectContaining({ type: "launch" })]),
  });
  expect(await show("machine", "web", "shop")).toMatchObject({ id: machine });
  expect(await show("app", "shop")).toMatchObject({ machines: 2, hostnames: [{ hostname: "www.example.com" }] });
  expect(await show("fleet", "shop/web")).toMatchObject({ machines: 1, members: [{ id: machine }] });
  expect(await show("volume", volume, "shop")).toMatchObject({ id: volume, sizeGb: 1 });
  expect(await show("cluster", cluster)).toMatchObject({ name: "main", state: "ready" });
  expect(await show("certificate", "www.example.com", "shop")).toMatchObject({ certificates: [{ source: "custom" }] });
  const [address] = (await show("app", "shop"))["addresses"] as string[];
  expect(await show("ip_address", address ?? "", "shop")).toMatchObject({ id: address });
  expect(await refused("show", { kind: "machine", id: "web" })).toMatch(
    /^app: is missing; name the App of the Machine/,
  );
  expect(await refused("show", { kind: "machine", id: "shop/wbe" })).toMatch(/no such Machine; it has .*web/);
  expect(await refused("show", { kind: "fleet", id: "shop/x" })).toMatch(/no such fleet; it has web/);
  expect(await refused("show", { kind: "elephant", id: "x" })).toMatch(/kind/);
});

test("logs are bounded, without what moves a terminal, and without values of variables that look secret", async () => {
  interface Logs {
    readonly lines: { readonly name: string; readonly text: string }[];
    readonly omitted: number;
  }
  const all = await get<Logs>("logs", { app: "shop" });
  expect(all.lines.map(({ name, text }) => [name, text.slice(0, 24)])).toEqual([
    ["web", "listening on port 8080"],
    ["web", "token is [secret]"],
    ["web", "state has canary-state-5"],
    ["web", "side has [secret]"],
    ["web", "canary-line-5614"],
    ["web", expect.stringMatching(/^\\u001b\[31mred|^\\x1b/)],
  ]);
  expect(all.lines[5]?.text.length).toBeLessThan(2100);
  expect((await get<Logs>("logs", { app: "shop", machine: "web", lines: 2 })).lines).toHaveLength(2);
  expect((await get<Logs>("logs", { app: "shop", contains: "LISTENING" })).lines).toHaveLength(1);
  // Who finds a line by a part of a secret could guess the secret.
  for (const contains of [canaries["a variable"], canaries["a variable"].slice(0, 9)])
    expect((await get<Logs>("logs", { app: "shop", contains })).lines.filter(({ text }) => /token/.test(text))).toEqual(
      [],
    );
  expect((await get<Logs>("logs", { app: "shop", machine: "idle" })).lines).toEqual([]);
  expect(await refused("logs", { app: "none" })).toMatch(/machines\.list answered 404/);
  expect(await refused("logs", { app: "shop", lines: 501 })).toMatch(/lines/);
  // The answers above are of a session that knows no stack. Below they must not be there.
  seen.splice(0, seen.length, ...seen.filter(({ what }) => !what.startsWith("logs")));
});

test("an answer is bounded, and says what it leaves out", async () => {
  const loud = await makeMachine(service, "shop", { name: "loud", region: "fra", config: { image } });
  for (let i = 0; i < 500; i++) output.write(loud, Date.now() - 5000 + i, `${i} ${"x".repeat(1000)}`);
  const { text, found } = await reader.ask<{ lines: { text: string }[]; omitted: number }>("logs", {
    ...{ app: "shop", machine: "loud", lines: 500 },
  });
  expect(found.lines.length + found.omitted).toBe(500);
  expect(found.omitted).toBeGreaterThan(400);
  expect(found.lines.at(-1)?.text).toMatch(/^499 x/);
  // Twice, because clients get it as text and as an object.
  expect(text.length).toBeLessThan(2 * 60_000);
  await send(service, "DELETE", `/v1/apps/shop/machines/${loud}?force=true`);
});

test("docs/agents.md names every tool, and its entries start this command", async () => {
  const page = readFileSync("docs/agents.md", "utf8");
  const { tools } = await changer.client.listTools();
  const rows = page.split("\n").flatMap((line) => /^\| (`\w+`(?:, `\w+`)*) \|/.exec(line)?.[1]?.match(/\w+/g) ?? []);
  expect(rows.toSorted()).toEqual(tools.map(({ name }) => name).toSorted());
  const entries = [...page.matchAll(/^```json\n(.*?)^```/gms)].map(([, json = ""]) => JSON.parse(json) as object);
  expect(entries).toEqual([
    { mcpServers: { machines: { command: "npx", args: ["pulumi-machines", "mcp"] } } },
    { servers: { machines: { type: "stdio", command: "npx", args: ["pulumi-machines", "mcp"] } } },
  ]);
});

test("only this command loads the SDK of the protocol", () => {
  const mentions = (file: string): boolean =>
    readFileSync(join(dirname(cliMain), file), "utf8").includes("notifications/initialized");
  expect(["main.js", "command.js", "shared.js", "serve.js"].filter(mentions)).toEqual(["serve.js"]);
});

test("problems are those of the console, and those of states where there is none", async () => {
  const simulated = { image, env: { MACHINES_SIMULATE: "crash" }, restart: { policy: "no" } };
  await makeMachine(service, "shop", { name: "broken", region: "ams", config: simulated });
  type Problems = { readonly source: string; readonly total: number; readonly problems: Record<string, unknown>[] };
  await expect
    .poll(() => get<Problems>("problems"))
    .toMatchObject({
      source: "console",
      problems: [
        { kind: "Machine failed", app: "shop", text: expect.stringMatching(/^Machine broken of shop has failed\. /) },
      ],
    });
  expect(await get<Problems>("problems", { app: "other" })).toMatchObject({ total: 0, problems: [] });
  const without = await startService({ console: "off" });
  const other = await assistant({
    env: { MACHINES_ENDPOINT: without.url, MACHINES_TOKEN: without.token },
    cwd: folder,
  });
  try {
    expect(await get<Problems>("problems", {}, other)).toEqual({ source: "states", total: 0, problems: [] });
    await makeApp(without, "shop");
    await makeMachine(without, "shop", { name: "broken", config: simulated });
    await expect
      .poll(() => get<Problems>("problems", {}, other))
      .toMatchObject({
        source: "states",
        problems: [{ kind: "Machine failed", text: "Machine broken of shop has failed." }],
      });
    // Its runtime runs no programs.
    expect(await refused("logs", { app: "shop" }, other)).toMatch(
      /has no logs of shop: .*runs no programs; start the service with/,
    );
  } finally {
    await other.close();
    await without.close();
  }
});

test("the documentation is searched and read offline", async () => {
  interface Results {
    readonly results: {
      readonly page: string;
      readonly heading: string;
      readonly text: string;
      readonly url: string;
    }[];
  }
  const { results } = await get<Results>("search_docs", { query: "fleet canary", limit: 3 });
  expect(results).toHaveLength(3);
  expect(results.map(({ page }) => page)).toContain("fleets.md");
  expect(results[0]?.url).toMatch(/^https:\/\/.*\/docs\//);
  expect((await get<Results>("search_docs", { query: "zzzzqqq" })).results).toEqual([]);
  // The same program in six languages would hide what else there is.
  const volumes = (await get<Results>("search_docs", { query: "volume example", limit: 10 })).results;
  expect(volumes.map(({ page, heading }) => `${page} ${heading}`)).toContain("reference/Volume.md Example");
  for (const { text } of volumes) expect(text).not.toContain("<details>");
  expect((await get<{ text: string }>("read_docs", { page: "reference/Volume.md" })).text).toContain("pulumi_machines");
  const first = await get<{ text: string; next: number }>("read_docs", { page: "reference/Machine.md" });
  expect(first.text).toMatch(/^(<!--.*-->\s*)?# Machine/);
  const second = await get<{ text: string }>("read_docs", { page: "reference/Machine.md", offset: first.next });
  expect(second.text).not.toContain(first.text.slice(0, 200));
  expect(await refused("read_docs", { page: "fleet.md" })).toMatch(/no page; did you mean fleets\.md\? \(/);
});

test("what is missing is said with what to do", async () => {
  const bare = await assistant({ env: { MACHINES_ENDPOINT: undefined, MACHINES_TOKEN: undefined }, cwd: folder });
  try {
    expect(await refused("list", { kind: "app" }, bare)).toMatch(/^no endpoint: set the service's base URL/);
  } finally {
    await bare.close();
  }
  expect(await refused("plan", {})).toMatch(/there is no Pulumi project/);
  for (const elsewhere of ["..", "/", "../..", tmpdir()])
    expect(await refused("plan", { folder: elsewhere })).toMatch(
      /^folder: got .*which is elsewhere; must be a folder within/,
    );
  expect(await refused("plan", { folder: "none" })).toMatch(/^folder: got "none", which cannot be read \(ENOENT\)/);
  expect(await refused("cost", { plan: "plan-000000000000" })).toMatch(/no plan of this session; call `plan` again/);
});

describe("a Machine is started, stopped and restarted", () => {
  type Answer = {
    readonly done: boolean;
    readonly confirmation?: string;
    readonly plan: string;
    readonly state: string;
  };
  const power = (args: object) => get<Answer>("change_machine", { app: "shop", machine: "web", ...args }, changer);
  const writes = () => service.requests.filter(isWrite).length;
  const stateOf = async () =>
    (await send<{ state: string }>(service, "GET", `/v1/apps/shop/machines/${machine}`)).state;

  test("in two calls, of which the first changes nothing and shows the plan", async () => {
    const before = writes();
    const shown = await power({ action: "stop" });
    expect(shown).toMatchObject({
      done: false,
      state: "started",
      plan: expect.stringMatching(/^stop Machine shop\/web \(/),
    });
    expect(writes()).toBe(before);
    expect(await power({ action: "stop", confirmation: shown.confirmation })).toMatchObject({ done: true });
    expect(writes()).toBe(before + 1);
    await expect.poll(stateOf).toBe("stopped");
    const { confirmation } = await power({ action: "start" });
    await power({ action: "start", confirmation });
    await expect.poll(stateOf).toBe("started");
    const restart = await power({ action: "restart" });
    await power({ action: "restart", confirmation: restart.confirmation });
    await expect.poll(stateOf).toBe("started");
  });

  test("not with a confirmation that was used, is for something else, or was made up", async () => {
    const tried = (args: object) => refused("change_machine", { app: "shop", machine: "web", ...args }, changer);
    const { confirmation } = await power({ action: "restart" });
    const before = writes();
    expect(await tried({ action: "stop", confirmation })).toMatch(
      /^confirmation: it is for another action: restart, not stop; nothing was changed/,
    );
    expect(await tried({ action: "restart", confirmation })).toMatch(
      /^confirmation: it was never given, or was used before/,
    );
    expect(await tried({ action: "restart", confirmation: "yes" })).toMatch(/never given/);
    expect(await tried({ action: "start" })).toMatch(
      /^action: Machine shop\/web \(\w+\) is started, and start needs stopped or/,
    );
    expect(writes()).toBe(before);
  });

  test("not after others have changed it since it was shown", async () => {
    const { confirmation } = await power({ action: "restart" });
    const path = `/v1/apps/shop/machines/${machine}`;
    const { config } = await send<{ config: object }>(service, "GET", path);
    await send(service, "POST", path, { config: { ...config, image: "registry.example.com/shop:2" } });
    await expect.poll(stateOf).toBe("started");
    const before = writes();
    expect(
      await refused("change_machine", { action: "restart", app: "shop", machine: "web", confirmation }, changer),
    ).toMatch(/^confirmation: it is for another version: /);
    expect(writes()).toBe(before);
  });

  test("not while another client holds its lease, whose nonce no tool shows", async () => {
    const { confirmation } = await power({ action: "restart" });
    const path = `/v1/apps/shop/machines/${machine}/lease`;
    const lease = await send<{ data: { nonce: string } }>(service, "POST", path, { ttl: 600 });
    ({ nonce } = lease.data);
    await get("show", { kind: "machine", id: `shop/${machine}` });
    expect(
      await refused("change_machine", { action: "restart", app: "shop", machine: "web", confirmation }, changer),
    ).toMatch(/machines\.restart answered 409/);
    await send(service, "DELETE", path, undefined, { "fly-machine-lease-nonce": nonce });
  });
});

test("no tool shows a secret of a stack, wherever it turns up", async () => {
  const project = join(folder, "project");
  const bin = join(folder, "bin");
  mkdirSync(project);
  mkdirSync(bin);
  writeFileSync(join(project, "Pulumi.yaml"), "name: shop\nruntime: nodejs\n");
  writeFileSync(join(bin, "pulumi"), answeringCli);
  chmodSync(join(bin, "pulumi"), 0o755);
  const sealed = (value: unknown) => ({
    "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
    plaintext: JSON.stringify(value),
  });
  const state = JSON.parse(
    exportOf("plugin", [
      {
        type: "Secret",
        name: "token",
        id: "shop/TOKEN",
        inputs: { app: "shop", name: "TOKEN", value: sealed(canaries["the state"]) },
      },
      {
        type: "Secret",
        name: "key",
        id: "shop/KEY",
        inputs: { app: "shop", name: "KEY", value: sealed(`first\n${canaries["a line of the state"]}\nlast`) },
      },
    ]),
  ) as { deployment: { resources: object[] } };
  const other = { result: sealed(canaries["another resource of the state"]) };
  const type = "random:index/randomPassword:RandomPassword";
  state.deployment.resources.push({
    urn: `urn:pulumi:dev::shop::${type}::p`,
    type,
    custom: true,
    id: "none",
    outputs: other,
  });
  const config = {
    "machines:endpoint": { value: service.url, secret: false },
    "machines:token": { value: service.token, secret: true },
    "shop:key": { value: canaries["the configuration"], secret: true },
  };
  writeFileSync(join(bin, "stacks.json"), JSON.stringify({ dev: { config, "stack export": state } }));
  output.write(
    machine,
    Date.now(),
    `config has ${canaries["the configuration"]}, and the command ${canaries["the passphrase"]}`,
  );
  const env = {
    ...{
      MACHINES_ENDPOINT: undefined,
      MACHINES_TOKEN: undefined,
      PULUMI_CONFIG_PASSPHRASE: canaries["the passphrase"],
    },
    PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}`,
  };
  const within = await assistant({ env, cwd: folder });
  try {
    const place = { folder: "project", stack: "dev" };
    for (const [name, args] of [
      ["logs", { app: "shop" }],
      ["logs", { app: "shop", machine: "web" }],
      ["problems", {}],
      ["show", { kind: "machine", id: `shop/${machine}` }],
      ["show", { kind: "cluster", id: cluster }],
      ["show", { kind: "certificate", id: "shop/www.example.com" }],
      ["list", { kind: "machine" }],
      // Errors quote what they were given.
      ["show", { kind: "app", id: canaries["the configuration"] }],
      ["show", { kind: "machine", id: `shop/${canaries["the state"]}` }],
    ] as const) {
      const { text } = await within.ask(name, { ...args, ...place });
      seen.push({ what: `${name} ${JSON.stringify(args)} in a project`, text });
    }
    const lines = seen.find(({ what }) => what === 'logs {"app":"shop"} in a project')?.text ?? "";
    expect(lines).toContain("state has [secret], [secret]");
    expect(lines).toContain("config has [secret], and the command [secret]");
    seen.push({ what: "standard error", text: within.said() + reader.said() + changer.said() });
  } finally {
    await within.close();
  }
  expect(nonce).not.toBe("");
  const secrets = { ...canaries, nonce, password, "the private key": privateKey, "the token": service.token };
  expect(leaks(secrets, seen)).toEqual([]);
});
