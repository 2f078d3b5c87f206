// Whole organizations as programs, with the packed command and the real CLI: written, imported, compiled, previewed without a
// change, and destroyed.
import { execFile } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { makeOrganization, type Organization } from "../support/organizations.ts";
import { kill, family } from "../support/processes.ts";
import { findRuntime, nodejs, type Runtime } from "../support/runtimes.ts";
import { Stack, type Binding } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";

const plugin: Binding = "pulumi-machines-plugin";

/** The packed command. */
const command = (): string => join(inject("installed"), "node_modules/.bin/pulumi-machines");

interface Printed {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A stack with an organization, and the command in its project. */
class Round {
  readonly stack: Stack;
  readonly service: TestService;
  readonly organization: Organization;

  private constructor(stack: Stack, service: TestService, organization: Organization) {
    this.stack = stack;
    this.service = service;
    this.organization = organization;
  }

  /** A stack for an organization. */
  static async of(
    service: TestService,
    organization: Organization,
    name: string,
    { binding = plugin, runtime = nodejs }: { binding?: Binding; runtime?: Runtime } = {},
  ): Promise<Round> {
    const stack = new Stack(inject("installed"), `organization-${name}`, binding, runtime);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    return new Round(stack, service, organization);
  }

  /** A new organization. */
  static async begin(seed: string, size: number): Promise<Round> {
    const service = await startService();
    return Round.of(service, await makeOrganization(service, seed, size), seed);
  }

  /** Runs `npx pulumi-machines import`. */
  async write(...args: string[]): Promise<Printed> {
    const { stack, service, organization } = this;
    const before = service.requests.length;
    const printed = await new Promise<Printed>((resolve) => {
      execFile(command(), ["import", ...args], { cwd: stack.dir, env: stack.env }, (error, out, err) =>
        resolve({ code: error === null ? 0 : Number(error.code), out, err }),
      );
    });
    expect(service.requests.slice(before).filter(isWrite), "it only reads").toEqual([]);
    const files = ["import.json", stack.runtime.main].map((file) => this.file(file));
    for (const secret of [...organization.secrets, service.token])
      expect(files.join("") + printed.out + printed.err).not.toContain(secret);
    return printed;
  }

  file(name: string): string {
    const path = join(this.stack.dir, name);
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }

  /** Sets the secrets that the command asks for. Their values do not matter while the program ignores them. */
  async setSecrets({ out }: Printed): Promise<void> {
    const keys = [...out.matchAll(/config set --secret (\S+)/g)].map(([, key]) => key ?? "");
    if (keys.length > 0) await this.stack.ok("config", "set-all", ...keys.flatMap((key) => ["--secret", `${key}=x`]));
  }

  readonly importing = [
    "import",
    "--file",
    "import.json",
    "--generate-code=false",
    "--protect=false",
    "--yes",
  ] as const;

  /** Compiles a program in TypeScript, as its editor would. */
  compile(): Promise<string> {
    const tsc = join(inject("installed"), "node_modules/.bin/tsc");
    return new Promise((resolve, reject) => {
      execFile(tsc, ["--noEmit", "-p", "."], { cwd: this.stack.dir }, (error, out) =>
        error === null ? resolve(out) : reject(new Error(out)),
      );
    });
  }

  /** Destroys everything, and looks whether anything is left. */
  async destroy(): Promise<void> {
    const { stack, service } = this;
    const main = join(stack.dir, stack.runtime.main);
    // Clusters are protected by default, which only a run of the program can change.
    const text = this.file(stack.runtime.main)
      .replaceAll(/^( *)(plan: )/gm, `$1deletionProtection: false${stack.runtime.yaml === "yaml" ? "" : ","}\n$1$2`)
      .replaceAll(/^( *)(plan=)/gm, "$1deletion_protection=False,\n$1$2")
      .replaceAll(/^(\s*)(Plan: )/gm, "$1DeletionProtection: pulumi.Bool(false),\n$1$2");
    writeFileSync(main, text);
    await stack.up();
    await stack.destroy();
    expect((await send<{ apps: unknown[] }>(service, "GET", "/v1/apps?org_slug=personal")).apps).toEqual([]);
    const { data } = await send<{ data: { status: string }[] }>(service, "GET", "/v1/postgres?org_slug=personal");
    expect(data.filter(({ status }) => !["deleting", "deleted"].includes(status))).toEqual([]);
  }
}

test("an organization becomes a program without a change, also when the command and the import are killed", async () => {
  const round = await Round.begin("one", 50);
  const { stack, service } = round;
  const printed = await round.write("--org", "personal", "--snapshots");
  expect(printed).toMatchObject({
    code: 0,
    err: "",
    out: expect.stringContaining("Written: index.ts, import.json") as string,
  });
  const program = round.file("index.ts");
  await round.setSecrets(printed);
  const compiled = round.compile();

  // A killed import has imported some of it.
  const running = stack.start(round.importing, { ownGroup: true });
  await expect.poll(() => running.said()).toContain(" imported");
  kill(family(running.pid));
  await running.ended;
  await stack.run(["cancel", "--yes"]);
  expect(await round.write("--snapshots")).toMatchObject({ code: 0, err: "" });
  expect(round.file("index.ts")).toBe(program);
  await stack.ok(...round.importing);
  expect(await stack.preview()).toEqual({});

  const again = await round.write("--snapshots");
  expect(again.out).toContain("The stack holds all of them.");
  expect(round.file("index.ts")).toBe(program);
  expect(await compiled).toBe("");
  await round.destroy();
  await service.close();
});

test("a file of the backend that a killed run left empty is named, and the stack can be read without it", async () => {
  const stack = new Stack(inject("installed"), "damaged", plugin);
  stack.env["PULUMI_BACKEND_URL"] = stack.backend; // as users write it
  await stack.init({});
  const attributes = join(stack.dir, ".state/.pulumi/stacks/damaged/dev.json.attrs");
  expect(readFileSync(attributes, "utf8")).not.toBe("");
  writeFileSync(attributes, "");
  for (const args of ["import", "promote dev prod", "status"]) {
    expect(await stack.run(args.split(" "), { command: command(), plain: true })).toMatchObject({
      code: 2,
      output: expect.stringMatching(
        /^pulumi-machines: a killed run left an empty file beside the stack, .*\n$/,
      ) as string,
    });
  }
  const advice = ["-c", `find ${join(stack.dir, ".state")} -name '*.attrs' -empty -delete`];
  expect(await stack.run(advice, { command: "sh", plain: true })).toMatchObject({ code: 0 });
  expect(await stack.ok("stack", "ls")).toContain("dev");
});

/** The sizes of the organizations that the long run generates. */
const sizes = Array.from({ length: 20 }, (_, i) => 50 + Math.round((450 * i) / 19));

describe("generated organizations in every language", () => {
  for (const [i, size] of sizes.entries())
    test(`${size} objects preview without a change`, async () => {
      const service = await startService();
      const organization = await makeOrganization(service, `all-${i}`, size);
      for (const language of ["python", "go", "yaml", "typescript"]) {
        const yaml = language === "typescript" ? "nodejs" : language;
        const { runtime } = await findRuntime(`runtime: ${yaml}`, inject("installed"));
        if (runtime === undefined) continue;
        const round = await Round.of(service, organization, `${language}-${i}`, { runtime });
        const printed = await round.write("--language", language);
        expect(printed).toMatchObject({ code: 0 });
        await round.setSecrets(printed);
        await round.stack.ok(...round.importing);
        expect(await round.stack.preview()).toEqual({});
        if (language !== "typescript") continue;
        expect(await round.compile()).toBe("");
        await round.destroy();
      }
      await service.close();
    });
});

test("an organization becomes a program in YAML without a change", async () => {
  const { runtime } = await findRuntime("runtime: yaml", inject("installed"));
  if (runtime === undefined) return;
  const service = await startService();
  const round = await Round.of(service, await makeOrganization(service, "yaml", 50), "yaml", { runtime });
  const printed = await round.write("--language", "yaml", "--snapshots");
  expect(printed).toMatchObject({ code: 0, err: "" });
  await round.setSecrets(printed);
  await round.stack.ok(...round.importing);
  expect(await round.stack.preview()).toEqual({});
  await round.destroy();
  await service.close();
});

test("a dynamic program has no change after its first up, which sends nothing to the service", async () => {
  const round = await Round.begin("dynamic", 50);
  const printed = await round.write("--binding", "dynamic");
  await round.setSecrets(printed);
  await round.stack.ok(...round.importing);
  const before = round.service.requests.length;
  await round.stack.up();
  expect(round.service.requests.slice(before).filter(isWrite)).toEqual([]);
  expect(await round.stack.preview()).toEqual({});
  expect(await round.compile()).toBe("");
  await round.destroy();
  await round.service.close();
});
