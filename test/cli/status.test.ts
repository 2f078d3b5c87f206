// `pulumi-machines status`, and what all commands make of a stack's configuration, with a fake CLI; test/e2e has the real one.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeApp, makeMachine, send } from "../support/around.ts";
import { startService, type TestService } from "../support/startService.ts";
import { answeringCli } from "./answeringCli.ts";
import { commandHere, type Ran } from "./command.ts";
import { exportOf } from "./exports.ts";

let service: TestService;
let folder = "";
let ids: readonly string[] = [];
beforeEach(async () => {
  service = await startService();
  await makeApp(service, "shop");
  const made = [1, 2].map(() => makeMachine(service, "shop", { config: { image: "registry.example.com/shop:1" } }));
  ids = (await Promise.all(made)).sort();
  for (const id of ids) await send(service, "GET", `/v1/apps/shop/machines/${id}/wait?state=started`);
  folder = mkdtempSync(join(tmpdir(), "machines-status-"));
  writeFileSync(join(folder, "Pulumi.yaml"), "name: shop\nruntime: nodejs\n");
  writeFileSync(join(folder, "pulumi"), answeringCli);
  chmodSync(join(folder, "pulumi"), 0o755);
});
afterEach(async () => {
  rmSync(folder, { recursive: true });
  await service.close();
});

/** Runs the command in a project with stack `dev`, which runs a release on two Machines. */
async function run(args: readonly string[], settings: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const path = `/v1/apps/shop/machines/${ids[0] ?? ""}`;
  const { image_ref } = await send<{ image_ref: { digest: string } }>(service, "GET", path);
  const { digest } = image_ref;
  const machines = ids.map((id) => `shop/${id}`);
  const image = `registry.example.com/shop:1@${digest}`;
  const release = { image, digest, settings: {}, hash: "0a1b", stack: "shop/dev", machines };
  const config = Object.fromEntries(
    Object.entries({ endpoint: service.url, ...settings }).map(([key, value]) => [`machines:${key}`, { value }]),
  );
  const state = JSON.parse(exportOf("plugin", [{ type: "App", name: "shop", id: "shop" }])) as object;
  const dev = { "stack output": { release }, "stack export": state, "stack history": [], config };
  writeFileSync(join(folder, "stacks.json"), JSON.stringify({ dev }));
  const env = { PATH: `${folder}${delimiter}${process.env["PATH"] ?? ""}` };
  return commandHere(service, args, { cwd: folder, env });
}

const cells = ({ out }: Ran): string[] => (out.split("\n")[1] ?? "").split(/ {2,}/);

test("a stack whose service refuses the token is unknown, and not unhealthy", async () => {
  expect(cells(await run(["status"])).at(-1)).toBe("2 healthy");
  const refused = await run(["status"], { token: "another" });
  expect(refused.code).toBe(1);
  expect([cells(refused)[1], cells(refused).at(-1)]).toEqual(["shop:1", "unknown"]);
  expect(refused.out).toMatch(
    new RegExp(`^dev: Machine shop/${ids[0] ?? ""} cannot be read: machines\\.get answered 401: .*`, "m"),
  );
  expect(refused.out).toMatch(/^dev: 1 more cannot be read$/m);
  const { stacks } = JSON.parse((await run(["status", "--json"], { token: "another" })).out) as { stacks: object[] };
  expect(stacks).toMatchObject([{ problems: [], unseen: [{}, {}].map(() => expect.any(String) as string) }]);
});

test("a Machine that is known to be stopped is not healthy", async () => {
  await send(service, "POST", `/v1/apps/shop/machines/${ids[0] ?? ""}/stop`);
  await send(service, "GET", `/v1/apps/shop/machines/${ids[0] ?? ""}/wait?state=stopped`);
  const stopped = await run(["status"]);
  expect([stopped.code, cells(stopped).at(-1)]).toEqual([1, "not healthy"]);
});

test("F52: a Machine whose program ended is not healthy, and the reason is shown", async () => {
  const id = await makeMachine(service, "shop", {
    config: { image: "registry.example.com/shop:1", restart: { policy: "no" }, init: { cmd: ["sh", "-c", "exit 3"] } },
  });
  await send(service, "GET", `/v1/apps/shop/machines/${id}/wait?state=stopped,failed`);
  ids = [id];
  const failed = await run(["status"]);
  expect([failed.code, cells(failed).at(-1)]).toEqual([1, "not healthy"]);
  expect(failed.out).toMatch(/^dev: Machine shop\/\w+ is \w+: its main process exited \(code 3\)$/m);
});

test("a stack without a release says why, and what to do", async () => {
  const none = (...history: object[]) => ({ "stack output": {}, "stack history": history, config: {} });
  const up = { kind: "update", result: "succeeded", endTime: "2026-01-01T00:00:00.000Z" };
  const stacks = { new: none(), plain: none(up), gone: none({ ...up, kind: "destroy" }) };
  const env = { PATH: `${folder}${delimiter}${process.env["PATH"] ?? ""}` };
  const ask = (...args: string[]) => commandHere(service, ["status", ...args], { cwd: folder, env });

  writeFileSync(join(folder, "stacks.json"), JSON.stringify(stacks));
  const { code, out } = await ask();
  expect(code).toBe(0);
  const [, fresh, , , ...notes] = out.trim().split("\n");
  // The backend has a time for it, although nothing was deployed.
  expect(fresh?.trim().split(/ {2,}/)).toEqual(["new", "none"]);
  expect(notes).toEqual([
    "new: it was never deployed. `npx pulumi-machines promote <other stack> new` deploys the release of another stack to it; `pulumi up --stack new` deploys it if its releases begin there",
    expect.stringMatching(
      /^plain: it is deployed, and reports no release: its program has no output "release" \(https:.*promotion\.md#a-release\)$/,
    ),
    expect.stringMatching(/^gone: it was destroyed\. `npx pulumi-machines promote <other stack> gone` /),
  ]);
  expect(JSON.parse((await ask("new", "--json")).out)).toEqual({
    stacks: [{ stack: "new", pending: false, withoutRelease: "undeployed" }],
    environments: [],
  });

  writeFileSync(join(folder, "stacks.json"), "{}");
  expect((await ask()).out).toMatch(
    /^The project has no stacks\. `pulumi stack init <name>` creates the first one; https:/,
  );
});

const misspelt = "machines:organisation: there is no such configuration; did you mean machines:organization?";

test("a misspelt key of the configuration is an error, and not replaced by the default", async () => {
  const settings = { organisation: "acme" };
  for (const more of [[], ["--all-apps"]])
    expect(await run(["orphans", "--stack", "dev", ...more], settings)).toEqual({
      code: 2,
      out: "",
      err: `pulumi-machines: ${misspelt}\n`,
    });
  const shown = await run(["status"], settings);
  expect([shown.code, cells(shown).at(-1)]).toEqual([1, "unknown"]);
  expect(shown.out).toContain(`\ndev: ${misspelt}\n`);
});
