// Interrupted promotions, the way back, and environments, with the real CLI: the example's program in two organizations.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { family, kill } from "../support/processes.ts";
import { digest, done, image, prepare, refused, type Prepared } from "../support/promotion.ts";
import type { Stack } from "../support/stack.ts";
import type { TestService } from "../support/startService.ts";

describe("promotion and back", () => {
  let all: Prepared;
  let service: TestService;
  let stack: Stack;
  let npm: Prepared["npm"];
  let releaseOf: Prepared["releaseOf"];

  const configuration = (name: string): string => readFileSync(join(stack.dir, `Pulumi.${name}.yaml`), "utf8");
  const upOfDev = (): Promise<string> => stack.ok("up", "--yes", "--skip-preview", "--stack", "dev");

  /** Staging runs one release, and dev the next one. */
  beforeAll(async () => {
    all = await prepare("back", "pulumi-machines-plugin");
    ({ service, stack, npm, releaseOf } = all);
    for (const name of ["staging", "prod"]) rmSync(join(stack.dir, `Pulumi.${name}.yaml`));
    const settings = (name: "dev" | "staging") => ({
      "machines:endpoint": service.url,
      "machines:organization": `acme-${name}`,
      "machines:token": all.tokens[name],
    });
    await all.list("1.0.0", digest("a"));
    await stack.init(settings("dev"));
    await upOfDev();
    await stack.ok("stack", "init", "staging");
    await stack.set({ ...settings("staging"), before: "dev", sourceToken: all.tokens["dev-read"] });
    await done(npm("promote", "dev", "staging", "--yes", "--by", "bob"));
    await all.list("1.1.0", digest("c"));
    await stack.ok("config", "set", "image", image("1.1.0"), "--stack", "dev");
    await upOfDev();
  });
  afterAll(() => all.close());

  const stateOf = (name: string): string =>
    readFileSync(join(stack.dir, `.state/.pulumi/stacks/machines-promotion/${name}.json`), "utf8");

  /** Starts a promotion, and stops it while it changes a Machine. */
  const stopped = async (args: readonly string[], stop: (pid: number) => unknown): Promise<string> => {
    let goOn: () => void = () => undefined;
    const over = new Promise<void>((resolve) => (goOn = resolve));
    const reached = new Promise<void>((resolve) => {
      const until = (): Promise<void> => {
        resolve();
        return over;
      };
      service.fail({ operation: "machines.update", when: "after", until, times: 1 });
    });
    const started = stack.start(["run", "-s", "promote", "--", ...args], {
      command: "npm",
      plain: true,
      ownGroup: true,
    });
    await reached;
    await stop(started.pid);
    goOn();
    return (await started.ended).output;
  };

  test("an interrupted promotion is reported, and the same command continues it", async () => {
    const args = ["dev", "staging", "--yes", "--by", "dave"];
    // Like ^C.
    expect(await stopped(args, (pid) => process.kill(-pid, "SIGINT"))).toContain(
      "Run the same command again to continue; --rollback restores the previous release.",
    );
    expect(await refused(npm("status", "staging"))).toContain("staging: a promotion to it was interrupted");
    const output = await done(npm("promote", "dev", "staging", "--yes", "--by", "erin"));
    expect(output).toContain("Continuing the promotion from dev to staging");
    expect(output).toMatch(
      /^To roll back to .*: npx pulumi-machines promote staging --rollback --policy-pack \S+ --policy-pack-config 'policy\.\{stack\}\.json'$/m,
    );
    expect(await releaseOf("staging")).toMatchObject({ digest: digest("c"), promotedBy: "dave" });
  });

  // The next test continues it. The one above continues a promotion, and test/cli/plan.test.ts has the reason for a lock.
  test("a rollback that was killed is reported, and continues after the stack is unlocked", async () => {
    const file = configuration("staging");
    await stopped(["staging", "--rollback", "--yes"], async (pid) => {
      // While the CLI waits for the service, it writes no state, which a kill would leave truncated.
      let before = "";
      const isStill = (): boolean => {
        const now = stateOf("staging");
        const is = now === before;
        before = now;
        return is;
      };
      await expect.poll(isStill, { interval: 500 }).toBe(true);
      kill(family(pid));
    });
    expect(await refused(npm("status", "staging"))).toContain("staging: a promotion to it was interrupted");
    expect(await refused(npm("promote", "staging", "--rollback", "--yes"))).toMatch(
      /When none is running, `pulumi cancel --stack staging` unlocks it\.\nRun the same command again to continue; a promotion/,
    );
    await stack.ok("cancel", "--yes", "--stack", "staging");
    // As on another computer, whose file does not know of the rollback.
    writeFileSync(join(stack.dir, "Pulumi.staging.yaml"), file);
  });

  test("a stack goes back to the release before", async () => {
    const output = await done(npm("promote", "staging", "--rollback", "--yes", "--by", "carol"));
    expect(output).toContain(`${image("1.1.0")}@${digest("c")}\n        ->  ${image("1.0.0")}@${digest("a")}`);
    expect(await releaseOf("staging")).toMatchObject({ digest: digest("a"), promotedBy: "carol" });
    expect(await done(npm("status", "staging"))).toMatch(
      /^staging .* rolled back (just now|\d+ minutes? ago) by carol +1 healthy$/m,
    );
  });

  test("an environment is created like dev, reported, and deleted in time with everything it created", async () => {
    const apps = () => all.apps("dev");
    const before = await apps();
    const create = ["create", "pr-7", "--template", "dev", "--expires", "1h", "--summary", "summary.md"];
    const set = ["--set", `image=${image("1.0.0")}`, "--set-secret", "key=KEY", "--allow-new-keys"];
    // The output includes the commands that npm prints.
    const make = () =>
      stack.run(["run", "environment", "--", ...create, ...set], {
        command: "npm",
        plain: true,
        env: { KEY: "c4n4ry-key" },
      });
    service.fail({ operation: "machines.create", status: 422, times: 1 });
    const { code, output } = await make();
    expect([code, output]).toEqual([2, expect.stringMatching(/environment pr-7 is not finished: .*machines\.create/)]);
    expect(output).not.toContain("c4n4ry");
    expect(await done(make())).not.toContain("c4n4ry");
    expect(await stack.ok("config", "get", "key", "--stack", "pr-7")).toBe("c4n4ry-key\n");
    expect(configuration("pr-7")).not.toContain("c4n4ry");
    expect(await apps()).toBe(before + 1);
    expect(await releaseOf("pr-7")).toMatchObject({
      image: expect.stringMatching(/^registry\.example\.com\/shop:1\.0\.0@/),
    });
    const summary = readFileSync(join(stack.dir, "summary.md"), "utf8");
    expect(summary).toMatch(/^### Environment pr-7\n\nUntil \d{4}-.*Z, about 3\.\d+ USD a month\./);
    expect(summary).toMatch(/^Addresses:\n\n- `[0-9a-f:]+`, which is the v6 of shop-\w+$/m);
    // The plugin finds that the fleet has no Machine yet.
    expect(summary).toMatch(/^- (create|update) Fleet `web`$/m);
    expect(summary).toContain(image("1.0.0"));
    expect((await npm("environment", "destroy", "dev")).output).toContain("stack dev is no environment");
    expect((await npm("environment", "create", "dev", "--template", "staging", "--expires", "1h")).output).toContain(
      "stack dev is no environment",
    );
    // A separate CI job has another checkout, without the stack's configuration.
    rmSync(join(stack.dir, "Pulumi.pr-7.yaml"));
    expect(await done(npm("environment", "create", "pr-7", "--template", "dev", "--expires", "1ms"))).toContain(
      "### Environment pr-7",
    );
    rmSync(join(stack.dir, "Pulumi.pr-7.yaml"));
    expect(await done(npm("environment", "sweep"))).toContain(
      "Environment pr-7 is deleted, with everything it created.",
    );
    expect(await apps()).toBe(before);
    expect(await stack.ok("stack", "ls")).not.toContain("pr-7");
    expect(await stack.ok("stack", "--show-name"), "the selected stack is still selected").toBe("staging\n");
    expect(await done(npm("environment", "destroy", "pr-7"))).toContain("There is no environment pr-7.");
  });

  test("mistakes are reported, and secrets are not copied", async () => {
    expect((await npm("promote", "dev", "staging")).output).toContain("no one can answer here: add --yes");
    const program = stack.read();
    stack.program(program.replace('settings.get("checkout") ?? "classic"', 'pulumi.secret("c4n4ry-checkout")'));
    await stack.ok("up", "--yes", "--skip-preview", "--stack", "dev");
    const { code, output } = await npm("promote", "dev", "staging", "--yes");
    expect([code, output]).toEqual([2, expect.stringContaining("the release of stack dev contains a secret")]);
    expect(output + configuration("staging")).not.toContain("c4n4ry");
    stack.program(program);
    expect((await npm("promote", "nowhere", "staging")).output).toContain(
      "there is no stack nowhere; the project machines-promotion has dev, staging",
    );
    await stack.ok("stack", "init", "empty");
    expect((await npm("promote", "empty", "staging")).output).toContain("stack empty runs no release");
  });
});
