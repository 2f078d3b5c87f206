// Plans and updates by an assistant, with the real CLI and the installed package: `plan`, `cost` and `apply_plan` of
// `pulumi-machines mcp`. test/cli/mcp.test.ts has the other tools.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { leaks, type Readable } from "../support/canaries.ts";
import { assistant, type Assistant } from "../support/mcp.ts";
import { hang } from "../support/patience.mts";
import { bindingsOr, Stack } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { thoroughTest } from "../support/thorough.ts";

const canaries = {
  "a variable": "canary-variable-5701",
  "a later value of it": "canary-variable-5702",
  "a secret of the App": "canary-secret-5703",
  "a command": "canary-command-5704",
  "the configuration": "canary-config-5705",
};

interface Plan {
  readonly plan: string;
  readonly summary: string;
  readonly steps: readonly {
    readonly action: string;
    readonly type: string;
    readonly name: string;
    readonly changes: readonly {
      readonly path: string;
      readonly from?: unknown;
      readonly to?: unknown;
      readonly isSecret?: true;
    }[];
  }[];
  readonly losesData: readonly string[];
  readonly cost: { readonly before: number; readonly after: number; readonly change: number } | null;
}

interface Applied {
  readonly succeeded: boolean;
  readonly summary: string;
  readonly steps: readonly string[];
  readonly errors: readonly string[];
}

const image = (tag: number): string => `registry.example.com/shop:${tag}`;

describe.each(bindingsOr("pulumi-machines-plugin"))("an assistant plans and updates on %s", (binding) => {
  let service: TestService;
  let stack: Stack;
  let user: Assistant;
  const seen: Readable[] = [];
  /** The folder for temporary files of the servers: others make plans, too. */
  let temporary = "";
  /** Folders with the files of plans. */
  const planFolders = (): string[] => readdirSync(temporary).filter((name) => name.startsWith("pulumi-machines-plan-"));

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "assistant", binding);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    await program({ tag: 1 });
    await stack.ok("config", "set", "--secret", "assistant:key", canaries["the configuration"]);
    temporary = mkdtempSync(join(tmpdir(), "machines-plans-"));
    user = await assistant(options());
  });
  afterAll(async () => {
    await user.close();
    await service.close();
    rmSync(temporary, { recursive: true, force: true });
  });

  const options = () => ({
    args: ["--allow-changes"],
    env: { ...stack.env, TMPDIR: temporary },
    cwd: stack.dir,
    main: join(inject("installed"), "node_modules/pulumi-machines/dist/cli/main.js"),
  });

  async function program({
    tag,
    value = canaries["a variable"],
    region = "ams",
    has = "",
    failing = "",
  }: Options): Promise<void> {
    stack.program(`
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "shop" });
const config = { image: "${image(tag)}", env: { TOKEN: pulumi.secret("${value}"), PLAIN_PASSWORD: "${value}" },
  init: { cmd: ["serve", pulumi.secret("${canaries["a command"]}")] } };
new machines.Machine("web", { app: app.id, region: "ams", config });
new machines.Secret("token", { app: app.id, name: "TOKEN", value: "${canaries["a secret of the App"]}" });
new machines.Volume("data", { app: app.id, region: "${region}", sizeGb: 10, allowDataLoss: true });
${has}
${failing}
`);
    // A run of the test's own compiles it.
    await stack.ok("stack", "--show-name");
  }
  interface Options {
    readonly tag: number;
    readonly value?: string;
    readonly region?: string;
    readonly has?: string;
    readonly failing?: string;
  }

  const ask = async <T>(name: string, args: Record<string, unknown> = {}) => {
    const answer = await user.ask<T>(name, args);
    seen.push({ what: `${name} ${JSON.stringify(args)}`, text: answer.text });
    return answer;
  };
  const get = async <T>(name: string, args: Record<string, unknown> = {}): Promise<T> => {
    const { text, isError, found } = await ask<T>(name, args);
    expect(isError, text).toBe(false);
    return found;
  };
  const plan = () => get<Plan>("plan");
  const apply = (id: string) => get<Applied>("apply_plan", { plan: id });
  const writes = () => service.requests.filter(isWrite);
  const machineOf = async () => {
    const [found] = await send<{ id: string; config: { image: string } }[]>(service, "GET", "/v1/apps/shop/machines");
    return found;
  };

  test("a plan shows what would be created and what it costs, and creates nothing; applied, it does exactly that", async () => {
    const planned = await plan();
    expect(planned.steps.map(({ action, type, name }) => `${action} ${type} ${name}`).toSorted()).toEqual([
      ...["create App shop", "create Machine web", "create Secret token", "create Volume data"],
    ]);
    expect(planned).toMatchObject({ summary: "4 to create", losesData: [], cost: { before: 0 } });
    expect(planned.cost?.after).toBeGreaterThan(0);
    expect(writes()).toEqual([]);
    const asked = service.requests.length;
    expect(await get("cost", { plan: planned.plan })).toMatchObject({ cost: planned.cost });
    expect(service.requests.length).toBe(asked);
    const done = await apply(planned.plan);
    expect(done).toMatchObject({ succeeded: true, summary: "4 created", errors: [] });
    expect(done.steps).toContainEqual(expect.stringMatching(/^created +Machine web$/));
    expect((await machineOf())?.config.image).toBe(image(1));
    // Nothing is left to do.
    const next = await plan();
    expect(next).toMatchObject({ steps: [], summary: "4 unchanged", cost: { change: 0 } });
    expect((await ask("apply_plan", { plan: next.plan })).text).toContain(
      "changes nothing, so there is nothing to apply",
    );
  });

  test("a changed property is shown with its values, unless these may be secret, and a loss of data is named", async () => {
    await program({ tag: 2, value: canaries["a later value of it"], region: "fra" });
    const planned = await plan();
    const web = planned.steps.find(({ name }) => name === "web");
    expect(web).toMatchObject({ action: "update", type: "Machine" });
    expect(web?.changes).toContainEqual({ path: "config.image", from: image(1), to: image(2) });
    expect(web?.changes.filter(({ path }) => path.startsWith("config.env"))).not.toEqual([]);
    for (const { path, isSecret } of web?.changes ?? [])
      if (path.startsWith("config.env")) expect([path, isSecret]).toEqual([path, true]);
    expect(planned.steps.find(({ name }) => name === "data")).toMatchObject({ action: "replace" });
    expect(planned.losesData).toEqual(["Volume data"]);
  });

  test("what others have changed since the plan stops it, and an update is never run twice", async () => {
    await program({ tag: 3 });
    const planned = await plan();
    const { id = "", config } = (await machineOf()) ?? {};
    await send(service, "POST", `/v1/apps/shop/machines/${id}`, { config: { ...config, image: image(9) } });
    const from = writes().length;
    const stopped = await apply(planned.plan);
    expect(stopped).toMatchObject({ succeeded: false });
    expect(stopped.errors.join("\n")).toMatch(/Machine shop\/\w+ has changed since the preview of this plan/);
    expect(writes()).toHaveLength(from);
    expect(await apply(planned.plan)).toEqual(stopped);
    expect(writes()).toHaveLength(from);
    await stack.refresh();
    const again = await plan();
    const messages: string[] = [];
    const watched = user.client.callTool(
      { name: "apply_plan", arguments: { plan: again.plan } },
      { timeout: hang, onprogress: ({ message = "" }) => void messages.push(message) },
    );
    const [{ structuredContent: first }, second] = await Promise.all([watched, apply(again.plan)]);
    expect(first).toMatchObject({ succeeded: true });
    expect(messages).toContainEqual(expect.stringMatching(/^updated +Machine web$/));
    expect(second).toEqual(first);
    expect(
      writes()
        .slice(from)
        .filter(({ operation }) => operation === "machines.update"),
    ).toHaveLength(1);
    expect((await machineOf())?.config.image).toBe(image(3));
  });

  thoroughTest("an update ends its work when the server is killed meanwhile", async () => {
    const chain = ["a", "b", "c", "d"].map((name, i, all) => {
      const after = i === 0 ? "" : `, { dependsOn: ${all[i - 1]} }`;
      return `const ${name} = new machines.Machine("${name}", { app: app.id, region: "ams", config }${after});`;
    });
    await program({ tag: 3, has: chain.join("\n") });
    const own = planFolders();
    const other = await assistant(options());
    const { plan: id } = await other.get<Plan>("plan");
    const from = writes().length;
    const ended = other.ask("apply_plan", { plan: id }).catch(() => "the connection was closed");
    await expect
      .poll(() =>
        writes()
          .slice(from)
          .some(({ operation }) => operation === "machines.create"),
      )
      .toBe(true);
    process.kill(other.pid, "SIGKILL");
    expect(await ended).toBe("the connection was closed");
    await expect
      .poll(async () => (await stack.run(["preview", "--expect-no-changes"])).code, { interval: 1000 })
      .toBe(0);
    expect(await send<unknown[]>(service, "GET", "/v1/apps/shop/machines")).toHaveLength(5);
    // It has also unlocked the stack.
    await expect.poll(async () => (await stack.run(["up", "--yes"])).code, { interval: 1000 }).toBe(0);
    // The killed server could not remove its files.
    for (const left of planFolders().filter((name) => !own.includes(name)))
      rmSync(join(temporary, left), { recursive: true });
  });

  thoroughTest("the plan of a program that has changed since then is not applied to what it is now", async () => {
    await program({ tag: 4 });
    const planned = await plan();
    await program({ tag: 5 });
    const done = await apply(planned.plan);
    expect(done).toMatchObject({ succeeded: false });
    expect((await machineOf())?.config.image).toBe(image(3));
  });

  thoroughTest("a program that fails is an error with its reason, without the secrets in it", async () => {
    await program({
      tag: 3,
      failing: `throw new Error("cannot use " + new pulumi.Config("assistant").require("key"));`,
    });
    const { isError, text } = await ask("plan");
    expect(isError).toBe(true);
    expect(text).toMatch(/the preview of dev failed: .*cannot use \[secret\]/s);
    await program({ tag: 3 });
  });

  test("no tool has shown a secret, and no file of a plan is left", async () => {
    await get("show", { kind: "machine", id: "web", app: "shop" }).catch(() => undefined);
    expect(seen.length).toBeGreaterThan(6);
    expect(
      leaks({ ...canaries, "the token": service.token }, [...seen, { what: "standard error", text: user.said() }]),
    ).toEqual([]);
    expect(planFolders()).not.toEqual([]);
    await user.close();
    await expect.poll(planFolders).toEqual([]);
  });
});
