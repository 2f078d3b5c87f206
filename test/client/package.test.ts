// The built package in its own script, which needs only Node.js.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeApp, makeMachine, send } from "../support/around.ts";
import { hang } from "../support/patience.mts";
import { startService, type TestService } from "../support/startService.ts";

let service: TestService;
let folder: string;

beforeAll(async () => {
  service = await startService();
  folder = mkdtempSync(join(tmpdir(), "machines-script-"));
  symlinkSync(join(__dirname, "../../node_modules"), join(folder, "node_modules"));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await service.close();
});

/** Runs a script until it exits by itself. */
function run(
  text: string,
  read: (out: string) => unknown = JSON.parse,
): Promise<{ code: number | null; out: unknown; err: string }> {
  const file = join(folder, "script.mjs");
  writeFileSync(file, text);
  const env = { ...process.env, MACHINES_ENDPOINT: service.url, MACHINES_TOKEN: service.token, PULUMI_HOME: folder };
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [file], { cwd: folder, env, timeout: hang });
    let [out, err] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => (out += chunk));
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => (err += chunk));
    child.on("error", reject).on("close", (code) => {
      resolve({ code, out: out === "" ? undefined : read(out), err });
    });
  });
}

test.each(["await client.close();", ""])("a script does its work and exits by itself: %j", async (end) => {
  const { code, out, err } = await run(`
    import { createClient, waitUntil, withLease } from "pulumi-machines/client";
    const client = createClient();
    const app = "script-${end.length}";
    await client.apps.create({ body: { name: app, orgSlug: client.organization } });
    const { id } = await client.machines.create({ appName: app, body: { config: { image: "registry.example.com/a:1" } } });
    const machine = { app, machine: id };
    const { state } = await waitUntil(client, machine, "started");
    await withLease(client, machine, { description: "script" }, (lease) =>
      client.machines.stop({ appName: app, machineId: id, leaseNonce: lease.nonce() }),
    );
    const after = await waitUntil(client, machine, "stopped");
    console.log(JSON.stringify([state, after.state]));
    ${end}
    // A kept-alive connection would keep the process for half a minute. This timer shows that without keeping it alive
    // itself.
    setTimeout(() => console.error("still there"), 15_000).unref();
  `);
  expect([code, out, err]).toEqual([0, ["started", "stopped"], ""]);
});

test.each(["pulumi-machines", "pulumi-machines/dynamic", "pulumi-machines/client"])(
  "an unsupported Node is refused before anything else: %s",
  async (name) => {
    const { code, err } = await run(`
      import { createRequire } from "node:module";
      Object.defineProperty(process, "versions", { value: { ...process.versions, node: "22.18.0" } });
      try {
        createRequire(import.meta.url)("${name}");
      } catch (error) {
        // Pulumi prints such an error without its stack.
        process.exitCode = error.__pulumiRunError ? 3 : 4;
        console.error(error.message);
      }
    `);
    expect([code, err]).toEqual([3, "pulumi-machines needs Node 22.19 or later; this is 22.18.0.\n"]);
  },
);

test("undici is loaded only with the first request", async () => {
  const { out, err } = await run(`
    import { createRequire } from "node:module";
    import { createClient } from "pulumi-machines/client";
    const { cache } = createRequire(import.meta.url);
    const isLoaded = () => Object.keys(cache).some((file) => /[\\\\/]undici[\\\\/]/.test(file));
    const client = createClient();
    const before = isLoaded();
    await client.platform.regions({});
    console.log(JSON.stringify([before, isLoaded()]));
  `);
  expect([out, err]).toEqual([[false, true], ""]);
});

test("a failure ends the script with an error that says what failed and what to do", async () => {
  const { code, err } = await run(`
    import { createClient } from "pulumi-machines/client";
    await createClient({ token: "wr0ng" }).apps.get({ appName: "none" });
  `);
  expect(code).toBe(1);
  expect(err).toMatch(
    /ApiError: apps.get answered 401: .*The token from createClient is not known to the service, or has expired/,
  );
  expect(err).not.toContain("wr0ng");
});

test("the client and the dynamic binding share code, error classes and connections", async () => {
  const { out, err } = await run(`
    import { createRequire } from "node:module";
    import { createClient, isNotFound } from "pulumi-machines/client";
    const { invoke } = createRequire(import.meta.url)("pulumi-machines/dynamic");
    const options = { isPreview: false, say: () => undefined };
    const get = () => undefined;
    const failure = await invoke("getApp", { name: "none" }, get, options).catch((error) => error);
    const { answer } = await invoke("getRegions", {}, get, options);
    const client = createClient();
    console.log(JSON.stringify([isNotFound(failure), answer.regions.length > 0]));
    await client.close();
  `);
  expect([out, err]).toEqual([[true, true], ""]);
});

test("the examples of docs/client.md run", async () => {
  const text = readFileSync(join(__dirname, "../../docs/client.md"), "utf8");
  const [restart = "", changes = ""] = [...text.matchAll(/```js\n(.*?)```/gs)].map(([, code = ""]) => code);
  await makeApp(service, "shop");
  const config = { image: "registry.example.com/a:1" };
  const ids = [await makeMachine(service, "shop", { config }), await makeMachine(service, "shop", { config })].sort();
  for (const id of ids) await send(service, "GET", `/v1/apps/shop/machines/${id}/wait`);
  const lines = (out: string) => out.trim().split("\n").sort();
  expect(await run(restart, lines)).toMatchObject({ code: 0, out: ids.map((id) => `${id} is started`), err: "" });
  const restarts = service.requests.filter(({ operation }) => operation === "machines.restart");
  expect(restarts.map(({ status }) => status)).toEqual([200, 200]);
  const expected = ids.map((id) => `shop/${id} is started`);
  expect(await run(changes, lines)).toMatchObject({
    code: 0,
    out: expect.arrayContaining(expected) as unknown,
    err: "",
  });
  expect(await run(changes, lines)).toMatchObject({ code: 0, out: undefined, err: "" });
});
