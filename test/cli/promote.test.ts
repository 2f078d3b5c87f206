// What `pulumi-machines promote` refuses before any preview, with a fake CLI; test/e2e uses the real one.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeApp, makeMachine, send } from "../support/around.ts";
import { startService, type TestService } from "../support/startService.ts";
import { command, commandHere, type Ran } from "./command.ts";
import { answeringCli } from "./answeringCli.ts";
import { exportOf } from "./exports.ts";

let service: TestService;
let folder = "";
let machine = "";
const app = "shop";
beforeEach(async () => {
  service = await startService();
  await makeApp(service, app);
  machine = await makeMachine(service, app, { config: { image: "registry.example.com/shop:1" } });
  await send(service, "GET", `/v1/apps/${app}/machines/${machine}/wait?state=started`);
  folder = mkdtempSync(join(tmpdir(), "machines-promote-"));
  writeFileSync(join(folder, "Pulumi.yaml"), "name: shop\nruntime: nodejs\n");
  writeFileSync(join(folder, "pulumi"), answeringCli);
  chmodSync(join(folder, "pulumi"), 0o755);
});
afterEach(async () => {
  rmSync(folder, { recursive: true });
  await service.close();
});

/** A stack that runs the release, with more answers of the CLI. */
async function running(more: object = {}) {
  const path = `/v1/apps/${app}/machines/${machine}`;
  const { image_ref } = await send<{ image_ref: { digest: string } }>(service, "GET", path);
  const { digest } = image_ref;
  const image = `registry.example.com/shop:1@${digest}`;
  const release = { image, digest, settings: {}, hash: "0", stack: "shop/dev", machines: [`${app}/${machine}`] };
  const state = exportOf("plugin", [{ type: "Machine", name: "web", id: `${app}/${machine}` }]);
  return { release, answers: { "stack output": { release }, "stack export": JSON.parse(state) as object, ...more } };
}

async function promote(
  from: string,
  to: string,
  stacks: object,
  ...options: readonly string[]
): Promise<Ran & { asked: string }> {
  writeFileSync(join(folder, "stacks.json"), JSON.stringify(stacks));
  const ran = await command(service, ["promote", from, to, "--yes", ...options], {
    cwd: folder,
    env: { PATH: `${folder}${delimiter}${process.env["PATH"] ?? ""}` },
  });
  const asked = readFileSync(join(folder, "asked"), "utf8");
  expect(asked).not.toMatch(/^(preview|up|config set)/m);
  return { ...ran, asked };
}

test("a stopped Machine of the source: says what starts it", async () => {
  const { answers } = await running();
  await send(service, "POST", `/v1/apps/${app}/machines/${machine}/stop`);
  await send(service, "GET", `/v1/apps/${app}/machines/${machine}/wait?state=stopped`);
  const { code, err } = await promote("dev", "staging", { dev: answers, staging: {} });
  expect([code, err]).toEqual([
    1,
    `Machine ${app}/${machine} is stopped\n` +
      "Not promoted: dev does not run its release in a healthy state. `pulumi up` alone does not start a Machine: " +
      'set `state: "started"` in the program and run `pulumi up --refresh --stack dev`, or start it through the service. ' +
      "Then promote again. Nothing has changed.\n",
  ]);
});

test("a stack that takes its releases from another one is not promoted to", async () => {
  const { answers } = await running();
  const prod = (before: string) => ({ config: { "shop:before": { value: before, secret: false } } });
  const refused = await promote("dev", "prod", { dev: answers, staging: {}, prod: prod("staging") });
  expect([refused.code, refused.out, refused.err]).toEqual([
    1,
    "",
    "Not promoted: prod takes its releases from staging, as `before` in its configuration says, and not from dev. Nothing has changed.\n",
  ]);
});

test("a promotion against the direction is refused before its plan is shown, with a command to go back as it was given", async () => {
  const { answers } = await running();
  const before = (stack: string) => ({ config: { "shop:before": { value: stack, secret: false } } });
  const stacks = { dev: {}, staging: before("dev"), prod: { ...answers, ...before("staging") } };
  const packs = ["--policy-pack", "packs/machines", "--policy-pack-config", "policy.{stack}.json"];
  const refused = await promote("prod", "dev", stacks, "-C", folder, ...packs);
  expect([refused.code, refused.out, refused.err]).toEqual([
    1,
    "",
    "Releases begin in dev, so nothing is promoted to it. To roll back: npx pulumi-machines promote prod --rollback " +
      `--cwd ${folder} --policy-pack packs/machines --policy-pack-config 'policy.{stack}.json'\n` +
      "Not promoted. Nothing has changed.\n",
  ]);
});

test("what the target runs already is said, and that the last update of the source has failed", async () => {
  const failed = [{ kind: "update", result: "failed", endTime: new Date(Date.now() - 3_600_000).toISOString() }];
  const { release, answers } = await running({ "stack history": failed });
  const staging = { "stack output": { release }, config: { "shop:releases": { value: JSON.stringify([release]) } } };
  expect(await promote("dev", "staging", { dev: answers, staging })).toMatchObject({
    code: 0,
    out:
      `staging runs the release of dev already: ${release.image}\n` +
      "dev: the last update failed 1 hour ago. `pulumi preview` shows what is left to do\n",
    err: "",
  });
  const { answers: fine } = await running({ "stack history": [] });
  expect((await promote("dev", "staging", { dev: fine, staging })).out).toBe(
    `staging runs the release of dev already: ${release.image}\n`,
  );
});

const released = (of: string, hash = of) => ({
  image: `registry.example.com/shop:${hash}`,
  digest: `sha256:${of.repeat(64)}`,
  ...{ hash, settings: {}, stack: "shop/staging", machines: ["shop/1"] },
});
const [a, b, c, otherSettings] = [released("a"), released("b"), released("c"), released("b", "b2")] as const;
/** What a computer writes into the tag of a stack before it changes the stack to a release. */
const to = (kind: "promotion" | "rollback", { digest, hash }: typeof a) => `${kind} ${digest} ${hash}`;

test.each([
  ["a promotion whose update has not ended", a, [a, c], to("promotion", b), a],
  ["a promotion whose update has ended", b, [a, c], to("promotion", b), a],
  ["a promotion of other settings whose update has not ended", b, [b, a], to("promotion", otherSettings), b],
  ["a promotion of other settings whose update has ended", otherSettings, [b, a], to("promotion", otherSettings), b],
  ["a promotion of an earlier release whose update has not ended", a, [a, b, c], to("promotion", b), a],
  ["a promotion of an earlier release whose update has ended", b, [a, b, c], to("promotion", b), a],
  ["a repeated promotion", b, [b, a, c], to("promotion", b), a],
  ["a rollback whose update has not ended", b, [b, a, c], to("rollback", a), a],
  ["a rollback whose update has ended", a, [b, a, c], to("rollback", a), a],
  ["a rollback to a release that the file does not have", b, [b, c], to("rollback", a), c],
  ["a promotion by an earlier version whose update has not ended", a, [a, c], b.digest, a],
  ["nothing", b, [b, a, c], undefined, a],
])("a rollback after another computer left unfinished: %s", async (_, runs, releases, tag, wanted) => {
  const prod = {
    "stack output": { release: runs },
    config: { "shop:releases": { value: JSON.stringify(releases) } },
    "stack tag ls": tag === undefined ? {} : { "pulumi-machines:promotion": tag },
  };
  writeFileSync(join(folder, "stacks.json"), JSON.stringify({ prod }));
  const { out } = await commandHere(service, ["promote", "prod", "--rollback", "--dry-run"], {
    cwd: folder,
    env: { PATH: `${folder}${delimiter}${process.env["PATH"] ?? ""}` },
  });
  expect(out).toContain(`prod goes back\n  image     ${runs.image}\n        ->  ${wanted.image}\n`);
});
