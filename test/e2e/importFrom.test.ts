// `pulumi import --from machines`: the packed converter with the real CLI and the plugin.
import { delimiter, join } from "node:path";
import { expect, inject, test } from "vitest";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { makeOrganization } from "../support/organizations.ts";
import { family, kill } from "../support/processes.ts";
import { Stack, type Ran, type Running } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";

/** A stack for the service, and its imports. */
class Importing {
  readonly stack: Stack;
  readonly service: TestService;

  constructor(service: TestService, name: string) {
    this.service = service;
    this.stack = new Stack(inject("installed"), name, "pulumi-machines-plugin");
  }

  init(): Promise<void> {
    return this.stack.init({ "machines:endpoint": this.service.url, "machines:token": this.service.token });
  }

  start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
    const bin = join(inject("installed"), "node_modules/.bin");
    const own = { PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}`, ...env };
    const words = [
      "import",
      "--from",
      "machines",
      "--generate-code=false",
      "--yes",
      "--non-interactive",
      "--color",
      "never",
    ];
    return this.stack.start([...words, "--", ...args], { plain: true, ownGroup: true, env: own });
  }

  /** Runs the import, which must not write to the service, or print its token. */
  async run(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
    const before = this.service.requests.length;
    const ran = await this.start(args, env).ended;
    expect(this.service.requests.slice(before).filter(isWrite), "it only reads").toEqual([]);
    expect(ran.output).not.toContain(this.service.token);
    return ran;
  }

  /** What the state holds, as `Machine shop/3d8d413b29d089`. */
  async held(): Promise<readonly string[]> {
    const { deployment } = JSON.parse(await this.stack.ok("stack", "export")) as {
      deployment: { resources?: { type: string; id?: string }[] };
    };
    return (deployment.resources ?? [])
      .flatMap(({ type, id }) =>
        type.startsWith("machines:index:") ? [`${type.split(":")[2] ?? ""} ${id ?? ""}`] : [],
      )
      .sort();
  }

  /** A refresh, which must find that the state has what the service has. */
  async refreshed(): Promise<void> {
    await this.stack.ok("refresh", "--yes", "--expect-no-changes");
  }
}

test("everything of an App is imported, a refresh finds no change, and a second run imports nothing", async () => {
  const service = await startService();
  const importing = new Importing(service, "import-from");
  await importing.init();
  await makeApp(service, "shop");
  await makeApp(service, "blog");
  const volume = await makeVolume(service, "shop", "ams");
  const machine = await makeMachine(service, "shop", {
    name: "web",
    region: "ams",
    config: { image: "registry.example.com/shop:1", mounts: [{ volume, path: "/data" }] },
  });
  await send(service, "POST", "/v1/apps/shop/secrets/TOKEN", { value: "canary-4711" });

  const first = await importing.run(["--app", "shop"]);
  expect(first.code, first.output).toBe(0);
  expect(first.output).toContain("Not imported; Deploy tokens: the service does not list them.");
  expect(first.output).toContain("To be set in the program; Secret shop/TOKEN: the service does not show its value.");
  const all = ["App shop", `Machine shop/${machine}`, "Secret shop/TOKEN", `Volume shop/${volume}`];
  expect(await importing.held()).toEqual(all);
  await importing.refreshed();

  const second = await importing.run(["--app", "shop"]);
  expect(second.code, second.output).toBe(0);
  expect(second.output).not.toMatch(/\d+ imported/);
  expect(await importing.held()).toEqual(all);
  await service.close();
});

test("an import of an organization that was killed is completed by the same command", async () => {
  const service = await startService();
  const importing = new Importing(service, "import-killed");
  await importing.init();
  await makeOrganization(service, "killed", 40);
  const running = importing.start(["--snapshots"]);
  await expect.poll(() => running.said()).toContain(" imported");
  kill(family(running.pid));
  await running.ended;
  await importing.stack.run(["cancel", "--yes"]);
  const some = await importing.held();
  const next = await importing.run(["--snapshots"]);
  expect(next.code, next.output).toBe(0);
  const all = await importing.held();
  expect(all).toEqual(expect.arrayContaining([...some]));
  expect(new Set(all).size).toBe(all.length);
  await importing.refreshed();
  const again = await importing.run(["--snapshots"]);
  expect(again.code, again.output).toBe(0);
  expect(await importing.held()).toEqual(all);
  await service.close();
});

test("wrong arguments, a wrong token and an unknown organization give one sentence", async () => {
  const service = await startService();
  const importing = new Importing(service, "import-wrong");
  await importing.init();
  await makeApp(service, "shop");
  const refused = async (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> => {
    const { code, output } = await importing.run(args, env);
    expect(code).not.toBe(0);
    const [line = "", ...more] = output.split("\n").filter((one) => one.includes("error: "));
    expect(more).toEqual([]);
    return line;
  };
  expect(await refused(["--ogr", "personal"])).toBe(
    'error: converter "machines" failed: --ogr: there is no such option; did you mean --org?',
  );
  expect(await refused(["--org", "acme"])).toContain("failed: --org acme: machines:organization: ");
  expect(await refused(["--app", "shpo"])).toContain("there is no App shpo at http://");
  await importing.stack.ok("config", "set", "--secret", "machines:token", "wrong-token");
  expect(await refused([])).toContain("401");
  expect(await importing.held()).toEqual([]);
  await service.close();
});
