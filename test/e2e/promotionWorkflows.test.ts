// The promotion of a release by the example's workflows, on the plugin: the commands of each job, with only that job's
// secrets. Stacks are named in full where one refers to another.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Role } from "../../service/store/roles.ts";
import { addTrust } from "../../service/store/trusts.ts";
import { send } from "../support/around.ts";
import { startActions, startIssuer } from "../support/issuer.ts";
import { digest, done, image, prepare, refused, type Prepared } from "../support/promotion.ts";
import type { Ran, Stack } from "../support/stack.ts";
import { runJob, type Runner } from "../support/workflow.ts";

describe("promotion by the workflows", () => {
  let all: Prepared;
  const ends: (() => void)[] = [];
  let stack: Stack;
  /** The GitHub environment whose identity a job of one has. */
  let identityFor = (environment: string): string => environment;
  /** The output of all jobs of other environments than production. */
  let publicOutput = "";
  let run: (file: string, job: string, values: Runner["values"]) => Promise<Ran>;

  const whole = (name: string): string => `organization/machines-promotion/${name}`;
  const git = (...args: string[]): Promise<string> =>
    done(stack.run(args, { command: "git", plain: true })).then((text) => text.trim());

  beforeAll(async () => {
    all = await prepare("workflows", "pulumi-machines-plugin");
    ({ stack } = all);
    const environments = Object.keys(all.tokens);
    const secrets = Object.fromEntries(environments.map((key) => [key, { PULUMI_CONFIG_PASSPHRASE: "test" }]));
    const atEnd = (end: () => void): void => void ends.push(end);
    const issuer = await startIssuer(Date.now, atEnd);
    const { store } = all.service.service.context;
    for (const environment of environments) {
      const slug = `acme-${environment.replace("-read", "")}`;
      const role: Role = environment.endsWith("-read") ? "read" : "deploy";
      const claims = { repository: "acme/shop", environment };
      const trust = { ...{ slug, role, claims, name: environment }, issuer: issuer.url, isReusable: false } as const;
      await store.write(() => addTrust(store, environment, { ...trust, audience: all.service.url }, Date.now()));
    }
    const identity = async (of: string) => {
      const environment = identityFor(of);
      const claims = { sub: `repo:acme/shop:environment:${environment}`, repository: "acme/shop", environment };
      return (await startActions(issuer, { ...claims, actor: "alice" }, atEnd)).env;
    };
    run = async (file, job, values) => {
      const ran = await runJob(stack, file, job, { values, secrets, identity });
      if (ran.environment !== "prod") publicOutput += ran.output;
      return ran;
    };
    Object.assign(stack.env, { GITHUB_ACTOR: "alice" });
    await all.list("1.0.0", digest("a"));
    for (const name of ["dev", "staging", "prod"]) {
      await stack.ok("stack", "init", name);
      const sourceToken = all.tokens[name === "prod" ? "staging-read" : "dev-read"];
      await stack.set({
        "machines:endpoint": all.service.url,
        "machines:organization": `acme-${name}`,
        ...(name === "dev" ? {} : { sourceToken }),
      });
    }
    await stack.ok("config", "set", "before", whole("dev"), "--stack", "staging");
    // What exists besides a checkout.
    writeFileSync(join(stack.dir, ".gitignore"), "node_modules\nplan\n.*\n!.gitignore\n");
    await git("init", "--quiet", "--initial-branch=main");
    await git("init", "--quiet", "--bare", join(stack.dir, ".origin"));
    await git("add", ".");
    await git("config", "user.name", "alice");
    await git("config", "user.email", "alice@example.com");
    await git("commit", "--quiet", "--message", "Begin");
    await git("remote", "add", "origin", join(stack.dir, ".origin"));
    await git("push", "--quiet", "--set-upstream", "origin", "main");
  });
  afterAll(async () => {
    for (const end of ends) end();
    await all.close();
  });

  const onMain = { "github.ref_name": "main", "github.event.repository.default_branch": "main" };
  const promote = (to: "staging" | "prod", rollback = false): Promise<Ran> =>
    run("promote.yml", "promote", { ...onMain, "inputs.to": to, "inputs.rollback": String(rollback) });
  /** The events of pull request 7, from a branch of the repository or of a fork. */
  const pullRequest = (action: string, from = "acme/shop") => ({
    "github.event_name": "pull_request",
    "github.event.action": action,
    "github.event.number": "7",
    "github.repository": "acme/shop",
    "github.event.pull_request.head.repo.full_name": from,
  });
  const update = (): Promise<string> =>
    done(stack.run(["up", "--yes", "--skip-preview", "--stack", "dev"], { env: { MACHINES_TOKEN: all.tokens.dev } }));

  test("a release is promoted from dev to prod and rolled back, and every promotion is committed", async () => {
    await update();
    await done(promote("staging"));
    await all.list("1.1.0", digest("b"));
    expect(await done(promote("prod"))).toContain(`prod runs ${image("1.0.0")}@${digest("a")} on 2 healthy Machines.`);
    await stack.ok("config", "set", "image", image("1.1.0"), "--stack", "dev");
    await update();
    await git("commit", "--quiet", "--all", "--message", "Take 1.1.0");
    await git("push", "--quiet");
    await done(promote("staging"));
    await done(promote("prod"));
    expect(await all.releaseOf("prod")).toMatchObject({ digest: digest("b"), promotedBy: "alice" });
    await done(promote("prod", true));
    expect(await all.releaseOf("prod")).toMatchObject({ digest: digest("a") });
    expect((await git("log", "--format=%s", "origin/main")).split("\n")).toEqual([
      "Promote to prod",
      "Promote to prod",
      "Promote to staging",
      "Take 1.1.0",
      "Promote to prod",
      "Promote to staging",
      "Begin",
    ]);
  });

  test("a read-only token is sufficient for preview and drift detection", async () => {
    const values = { "matrix.stack": "prod" };
    expect(await done(run("preview.yml", "staging", pullRequest("opened")))).toMatch(/Resources:\n +\d+ unchanged/);
    const [id = ""] = (await all.releaseOf("prod")).machines;
    const [app = "", machine = ""] = id.split("/");
    const caller = { url: all.service.url, token: all.tokens.prod };
    await send(caller, "POST", `/v1/apps/${app}/machines/${machine}/cordon`);
    expect(await refused(run("drift.yml", "drift", values))).toMatch(/^prod .* 2 healthy +1$/m);
    await send(caller, "POST", `/v1/apps/${app}/machines/${machine}/uncordon`);
  });

  test("a merge runs exactly the plan of its pull request, or stops when others have changed what it changes", async () => {
    await stack.ok("config", "set", "memoryMb", "1024", "--stack", "staging");
    await git("commit", "--quiet", "--all", "--message", "Give staging more memory");
    await git("push", "--quiet");
    await done(run("preview.yml", "staging", pullRequest("opened")));
    expect(readFileSync(join(stack.dir, "plan/review.md"), "utf8")).toMatch(
      /^\*\*Cost of staging:\*\* [\d.]+ USD a month by estimate, change \+2\.50\n[^]*\nMerging this runs exactly:\n/,
    );
    const [id = ""] = (await all.releaseOf("staging")).machines;
    const [app = "", machine = ""] = id.split("/");
    const caller = { url: all.service.url, token: all.tokens.staging };
    const path = `/v1/apps/${app}/machines/${machine}`;
    const { config } = await send<{ config: { env?: object } }>(caller, "GET", path);
    await send(caller, "POST", path, { config: { ...config, env: { ...config.env, CHECKOUT: "theirs" } } });
    expect(await refused(run("apply.yml", "staging", {}))).toMatch(
      /Fleet \S+\/web has changed since the preview of this plan/,
    );
    await done(run("preview.yml", "staging", pullRequest("synchronize")));
    expect(await done(run("apply.yml", "staging", {}))).toMatch(/~ 1 updated/);
    expect(await send(caller, "GET", path)).toMatchObject({
      config: { guest: { memory_mb: 1024 }, env: { CHECKOUT: "classic" } },
    });
  });

  test("an environment is created and destroyed, and unexpired ones are kept", async () => {
    const nightly = { "github.event_name": "schedule" };
    expect((await run("environments.yml", "create", pullRequest("opened", "other-user/shop"))).output).toBe("");
    await done(run("environments.yml", "create", pullRequest("opened")));
    expect(readFileSync(join(stack.dir, "summary.md"), "utf8")).toMatch(/^### Environment pr-7\n[^]*- create Fleet/);
    await done(run("environments.yml", "sweep", nightly));
    expect(await all.apps("dev")).toBe(2);
    const own = (...args: string[]) => stack.run(args, { command: "node_modules/.bin/pulumi-machines", plain: true });
    expect(await done(own("environment", "list"))).toMatch(
      /^NAME +STACK +LIKE +CREATED +UPDATED +EXPIRES +EXISTS\npr-7 +machines-promotion\/pr-7 +dev +(just now|\d+ minutes? ago) +(just now|\d+ minutes? ago) +in \d+ \w+ +\d resources\n$/,
    );
    const { environments } = JSON.parse(await done(own("environment", "list", "--json"))) as {
      environments: readonly Record<string, unknown>[];
    };
    expect(environments).toMatchObject([{ name: "pr-7", stack: "machines-promotion/pr-7", isExpired: false }]);
    const times = ["createdAt", "updatedAt", "expiresAt"].map((key) => Date.parse(String(environments[0]?.[key])));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect((await own("status")).stdout).toMatch(
      /\nEnvironments: pr-7; `npx pulumi-machines environment list` shows more\n$/,
    );
    expect(await done(run("environments.yml", "destroy", pullRequest("closed")))).toContain(
      "Environment pr-7 is deleted, with everything it created.",
    );
    expect(await all.apps("dev")).toBe(1);
    expect(await done(own("environment", "list"))).toBe("The project machines-promotion has no environments.\n");
  });

  test("an environment whose creation was interrupted is removed from another computer", async () => {
    const service = all.service;
    const refusals = (): number => service.requests.filter(({ status }) => status === 422).length;
    service.fail({ operation: "machines.create", status: 422, times: 1 });
    expect((await run("environments.yml", "create", pullRequest("opened"))).code).not.toBe(0);
    expect(refusals()).toBe(1);
    expect(await all.apps("dev")).toBe(2);
    await done(run("environments.yml", "destroy", pullRequest("closed")));
    expect(await all.apps("dev")).toBe(1);
  });

  test("a promotion interrupted on another computer is reported, and rolled back from there", async () => {
    await stack.ok("stack", "tag", "set", "pulumi-machines:promotion", `promotion ${digest("b")} 0`, "--stack", "prod");
    expect(await refused(run("drift.yml", "drift", { "matrix.stack": "prod" }))).toContain(
      "prod: a promotion to it was interrupted",
    );
    expect(await done(promote("prod", true))).toContain(`prod runs ${image("1.0.0")}@${digest("a")}`);
    expect(await done(run("drift.yml", "drift", { "matrix.stack": "prod" }))).toMatch(/^prod .* 2 healthy +none$/m);
  });

  test("no job has a stored token, and the identity of another environment changes nothing in production", async () => {
    expect(publicOutput).toContain("Environment pr-7 is deleted");
    // A token of two JSON texts: random base64, as in an encrypted value, may have the begin of one.
    const token = String.raw`eyJ[A-Za-z0-9_-]{10,}\.eyJ`;
    expect(publicOutput).not.toMatch(new RegExp(token));
    const files = await stack.run(["-rlE", "--exclude-dir=node_modules", token, "."], {
      ...{ command: "grep", plain: true },
    });
    expect(files.stdout).toBe("");
    const before = await all.releaseOf("prod");
    identityFor = () => "staging";
    expect(await refused(promote("prod"))).toMatch(/organization|may not/);
    identityFor = (environment) => environment;
    expect(await all.releaseOf("prod")).toEqual(before);
  });

  test("Machines of an explicit provider are read at its endpoint", async () => {
    const provided = stack
      .read()
      .replace(
        "const app = ",
        `const elsewhere = new machines.Provider("elsewhere", {
  endpoint: settings.require("endpoint"),
  organization: "acme-dev",
  token: settings.requireSecret("key"),
});
const app = `,
      )
      .replace("protect: production", "provider: elsewhere")
      .replace('type: "v6" }', "$&, { provider: elsewhere }")
      .replace('onFailure: "rollback",\n});', 'onFailure: "rollback",\n}, { provider: elsewhere });');
    expect(provided.match(/provider: elsewhere/g)).toHaveLength(3);
    stack.program(provided);
    await stack.ok("stack", "init", "elsewhere");
    await stack.set({ "machines:endpoint": "http://127.0.0.1:9", endpoint: all.service.url });
    await stack.ok("config", "set", "--secret", "key", all.tokens.dev);
    await stack.up();
    expect(await done(all.npm("status", "elsewhere"))).toMatch(/^elsewhere .* 1 healthy$/m);
  });
});
