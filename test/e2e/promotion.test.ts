// The promotion of a release through three stacks in three organizations, with the real CLI: the example's program, its npm
// scripts and the steps of the guide. promotionBack.test.ts has interrupted promotions, the way back and environments.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { send } from "../support/around.ts";
import { isThorough } from "../support/extent.mts";
import { thoroughTest } from "../support/thorough.ts";
import { digest, done, image, prepare, refused, type Prepared } from "../support/promotion.ts";
import type { Stack } from "../support/stack.ts";
import type { TestService } from "../support/startService.ts";
import { vault } from "../support/vault.ts";

/** The guide's steps for the stacks after the first: the commands that configure one, and the one that promotes to it. */
const guide = [...readFileSync("docs/promotion.md", "utf8").matchAll(/^```sh\n(pulumi stack init .*?)^```/gms)].map(
  ([, block = ""]) => {
    const [configure = "", promote = ""] = block.split(/^(?=npx pulumi-machines promote)/m);
    return { configure, promote };
  },
);

describe("promotion", () => {
  let all: Prepared;
  let service: TestService;
  let stack: Stack;
  let npm: Prepared["npm"];
  let list: Prepared["list"];
  let releaseOf: Prepared["releaseOf"];

  const power = async (name: "staging", to: "stop" | "start" | "cordon" | "uncordon"): Promise<string> => {
    const [id = ""] = (await releaseOf(name)).machines;
    const [app = "", machine = ""] = id.split("/");
    const caller = { url: service.url, token: all.tokens[name] };
    await send(caller, "POST", `/v1/apps/${app}/machines/${machine}/${to}`);
    const state = { stop: "stopped", start: "started", cordon: undefined, uncordon: undefined }[to];
    const at = `/v1/apps/${app}/machines/${machine}`;
    if (state) await send(caller, "GET", `${at}/wait?state=${state}&timeout=10`);
    const statuses = async () =>
      (await send<{ checks: { status: string }[] }>(caller, "GET", at)).checks.map(({ status }) => status);
    if (to === "start") await expect.poll(statuses).toEqual(["passing"]);
    return id;
  };
  const configuration = (name: string): string => readFileSync(join(stack.dir, `Pulumi.${name}.yaml`), "utf8");

  beforeAll(async () => {
    all = await prepare("promotion", "pulumi-machines-plugin");
    ({ service, stack, npm, list, releaseOf } = all);
    await list("1.0.0", digest("a"));
    const { tokens } = all;
    await stack.init({
      "machines:endpoint": service.url,
      "machines:organization": "acme-dev",
      "machines:token": tokens.dev,
    });
    await stack.ok("up", "--yes", "--skip-preview", "--stack", "dev");
    const env = {
      STAGING_TOKEN: tokens.staging,
      DEV_READ_TOKEN: tokens["dev-read"],
      PROD_TOKEN: tokens.prod,
      STAGING_READ_TOKEN: tokens["staging-read"],
    };
    expect(guide.map(({ promote }) => promote.trim())).toEqual([
      "npx pulumi-machines promote dev staging",
      expect.stringMatching(/^npx pulumi-machines promote staging prod \\\n {2}--policy-pack /),
    ]);
    for (const name of ["staging", "prod"]) rmSync(join(stack.dir, `Pulumi.${name}.yaml`));
    const { provider } = await vault();
    for (const { configure } of guide) {
      const script = configure
        .replaceAll("https://machines.example.com", service.url)
        // With the passphrase of the guide, each of these commands and of those of a promotion would compute for half a second.
        .replace("pulumi stack init ", isThorough ? "$&" : `$&--secrets-provider ${provider} `);
      await done(stack.run(["-euc", script], { command: "bash", plain: true, env }));
    }
    await stack.ok("config", "set", "memoryMb", "1024", "--stack", "prod");
  });
  afterAll(() => all.close());

  thoroughTest("a dry run shows the changes, and changes nothing", async () => {
    const before = configuration("staging");
    const output = await done(npm("promote", "dev", "staging", "--dry-run", "--verbose"));
    expect(output).toContain(`image     none\n        ->  ${image("1.0.0")}@${digest("a")}`);
    expect(output).toMatch(/cost {6}about 0\.00 -> 3\.\d+ USD a month/);
    expect(output).toContain("This was a dry run: nothing has changed.");
    expect(output).toContain("Previewing update");
    expect(output).toMatch(/^ {2}policy {4}passed/m);
    expect(configuration("staging")).toBe(before);
    expect(await stack.ok("stack", "output", "--json", "--stack", "staging")).toBe("{}\n");
  });

  // test/cli/promote.test.ts has releases whose last update has failed.
  thoroughTest("an update that failed and was rolled back is reported", async () => {
    const program = stack.read();
    stack.program(program.replace('LOG_FORMAT: "json"', 'LOG_FORMAT: "json", MACHINES_SIMULATE: "crash"'));
    expect(await stack.fails("up", "--yes", "--skip-preview", "--stack", "dev")).toContain(
      "failed, and was rolled back.",
    );
    stack.program(program);
    const [id = ""] = (await releaseOf("dev")).machines;
    expect(await refused(npm("status", "dev"))).toMatch(
      new RegExp(
        `^dev .* 1 healthy\ndev: the last update failed (just now|\\d+ minutes? ago)\\. .*\ndev: the rollout of \\S+/web was rolled back: .*Machine ${id} is failed`,
        "m",
      ),
    );
  });

  thoroughTest("an update that succeeds afterwards ends that", async () => {
    await stack.ok("up", "--yes", "--skip-preview", "--stack", "dev");
    expect(await done(npm("status", "dev"))).toMatch(/^dev .* 1 healthy\n$/m);
  });

  test("a release goes from dev to staging by its digest", async () => {
    const first = await done(npm("promote", "dev", "staging", "--yes", "--by", "alice"));
    expect(first).toMatch(/^ {2}created {3}Fleet web$[^]*^staging has no previous release to roll back to\.$/m);
    expect(first, "without --verbose").not.toContain("Previewing update");
  });

  // In process: test/cli/promote.test.ts.
  thoroughTest("what staging does not run healthy now is not promoted, and nothing is changed", async () => {
    const id = await power("staging", "stop");
    const before = configuration("prod");
    const output = await refused(npm("promote", "staging", "prod", "--yes"));
    // Before the preview, which would print what changes.
    expect(output).toBe(
      `Machine web-ams-1 (${id}) of a fleet is stopped\n` +
        "Not promoted: staging does not run its release in a healthy state. " +
        "Repair it, for example with `pulumi up --refresh --stack staging`. Then promote again. Nothing has changed.\n",
    );
    expect(configuration("prod")).toBe(before);
    expect(await stack.ok("stack", "output", "--json", "--stack", "prod")).toBe("{}\n");
    await power("staging", "start");
  });

  test("a violated policy prevents the promotion", async () => {
    const file = join(stack.dir, "policy.prod.json");
    const text = readFileSync(file, "utf8");
    if (isThorough) {
      writeFileSync(file, text.replace('"images-pinned": "mandatory"', '"images-pinned": "mandatroy"'));
      expect(await refused(npm("promote", "staging", "prod", "--yes"))).toMatch(
        /"mandatroy" is not a valid enforcement level; the levels are advisory, mandatory, remediate and disabled\nNot promoted/,
      );
    }
    writeFileSync(file, text.replace('"maxMemoryMb": 2048', '"maxMemoryMb": 512'));
    const output = await refused(npm("promote", "staging", "prod", "--yes"));
    writeFileSync(file, text);
    expect(output).toMatch(
      /^allowed-machine-sizes, Fleet web: [^]*config\.guest\.memoryMb is 1024; 512 MiB are allowed/m,
    );
    expect(output).toMatch(/\nNot promoted: a policy is violated\. Nothing has changed\.\n$/);
  });

  thoroughTest("a release goes from staging to prod by its digest, also when its tag is moved", async () => {
    await list("1.0.0", digest("b"));
    const output = await done(npm("promote", "staging", "prod", "--yes", "--by", "bob"));
    // What changes, the judgement of the policies, the steps, and what it came to: nothing else of the engine's output.
    const words = output
      .trimEnd()
      .split("\n")
      .map((line) => line.trim().split(/ {2,}/)[0]?.split(" ")[0]);
    expect(words.filter((word, i) => word !== words[i - 1])).toEqual([
      "Promotion",
      "image",
      "->",
      "settings",
      "Machines",
      "cost",
      "policy",
      "created",
      "result",
      "prod",
    ]);
    expect(output, "nothing is advised that a promotion forbids").toMatch(/^ {2}policy {4}passed$/m);
    expect(output).toMatch(/^ {2}result {4}4 created$/m);
    expect(output).toContain(`prod runs ${image("1.0.0")}@${digest("a")} on 2 healthy Machines.`);
    expect(await releaseOf("prod")).toMatchObject({ digest: digest("a"), promotedBy: "bob" });
  });

  // In process: test/cli/status.test.ts.
  thoroughTest("the three stacks are shown side by side, with their problems", async () => {
    const output = await done(npm("status"));
    expect(output).toMatch(/^dev +shop:1\.0\.0 +a{12} +\w{12} +\(updated (just now|\d+ minutes? ago)\) +1 healthy$/m);
    expect(output).toMatch(/^dev [^]*^staging [^]*^prod /m);
    expect(output).toMatch(/^prod +shop:1\.0\.0 +a{12} +\w{12} +(just now|\d+ minutes? ago) by bob +2 healthy$/m);
    // Whoever works on a stack continues with it.
    expect(await stack.ok("stack", "--show-name")).toBe("prod\n");
    const id = await power("staging", "stop");
    await power("staging", "cordon");
    const drifted = await refused(npm("status", "staging", "--drift"));
    expect(drifted).toMatch(/^staging .* not healthy +1$/m);
    expect(drifted).toContain(`staging: Machine web-ams-1 (${id}) of a fleet is stopped`);
    await power("staging", "uncordon");
    await power("staging", "start");
  });

  // In process: test/cli/main.test.ts.
  thoroughTest("without the passphrase, promote prints one sentence and no table", async () => {
    const args = ["-u", "PULUMI_CONFIG_PASSPHRASE", "npm", "run", "-s", "status"];
    expect(await stack.run(args, { command: "env", plain: true })).toMatchObject({
      code: 2,
      output: expect.stringMatching(
        /^pulumi-machines: the stack's secrets are encrypted with a passphrase: .*\n$/,
      ) as string,
    });
  });

  // In process: test/cli/promote.test.ts.
  thoroughTest("nothing is promoted to the stack where releases begin", async () => {
    const toDev = { command: "node_modules/.bin/pulumi-machines", plain: true };
    expect(await refused(stack.run(["promote", "staging", "dev", "--yes"], toDev))).toContain(
      "Releases begin in dev, so nothing is promoted to it. To roll back: npx pulumi-machines promote staging --rollback\n",
    );
  });

  // test/cli/plan.test.ts has every type that contains data.
  thoroughTest("it deletes or replaces nothing that contains data", async () => {
    const program = stack.read();
    // Staging already runs the release of dev: another one is needed to promote anything.
    await stack.ok("config", "set", "checkout", "modern", "--stack", "dev");
    await stack.ok("up", "--yes", "--skip-preview", "--stack", "dev");
    stack.program(program.replace('App("shop", {}', 'App("shop", { name: "another-shop" }'));
    const output = await refused(npm("promote", "dev", "staging", "--yes"));
    expect(output).toContain("settings  CHECKOUT");
    expect(output).toContain("Not promoted: it would delete or replace the App shop.");
    stack.program(program);
    // A refresh of staging reads dev's new release, which is no drift of staging.
    expect(await done(npm("status", "staging", "--drift"))).toMatch(/^staging .* 1 healthy +none$/m);
  });
});
