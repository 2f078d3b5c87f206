// `pulumi new` with the templates, by the real CLI: each language installs the packages of this clone, and its program runs.
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { serveClone } from "../support/gitServer.ts";
import { installReleased } from "../support/released.ts";
import { findRuntime } from "../support/runtimes.ts";
import { counts, Stack, type Ran, type RunOptions } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";
import { vault } from "../support/vault.ts";

/** The templates as `npm run package` writes them, until the packages are published. */
const templates = join(process.cwd(), "packages/templates");

/** What every template creates. */
const created = {
  volume: { region: "fra", size_gb: 1 },
  machine: {
    region: "fra",
    config: {
      image: "registry.example.com/other:2.0.0",
      env: { GREETING: "hello" },
      mounts: [{ path: "/data" }],
      checks: { alive: { type: "tcp", port: 8080, interval: "15s", timeout: "2s" } },
    },
  },
};

describe.each(["typescript", "python", "go", "java", "csharp", "yaml"])("the template in %s", async (language) => {
  const name = { typescript: "nodejs", csharp: "dotnet" }[language] ?? language;
  const { runtime, reason } = await findRuntime(`runtime: ${name}`, inject("installed"));
  if (runtime === undefined) {
    test.skip(`the template is not used: ${reason}`);
    return;
  }
  let service: TestService;
  let stack: Stack;
  let secretsProvider = "";

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), `template-${language}`, "pulumi-machines-plugin", runtime);
    await installReleased(stack);
    const { provider, env } = await vault();
    Object.assign(stack.env, env, { npm_config_prefer_offline: "true" });
    secretsProvider = provider;
  });
  afterAll(() => service.close());

  /** `pulumi new` in an empty folder. */
  const create = (folder: string, args: readonly string[] = [], options?: RunOptions): Promise<Ran> => {
    mkdirSync(join(stack.dir, folder));
    const given = args.some((arg) => arg.includes(".git/")) ? [] : [join(templates, language)];
    const secrets = args.includes("--generate-only") ? [] : ["--stack", "dev", "--secrets-provider", secretsProvider];
    return stack.run(
      ["new", ...given, "--yes", "--dir", folder, "--name", `${folder}-${language}`, ...secrets, ...args],
      options,
    );
  };
  const inProject = async (folder: string, ...args: string[]): Promise<string> => {
    const { code, output } = await stack.run(["-C", folder, ...args]);
    expect(code, output).toBe(0);
    return output;
  };

  test("pulumi new creates the project and its stack, and installs the packages", async () => {
    const { code, output } = await create("project", ["--config", "region=fra"]);
    expect(code, output).toBe(0);
    expect(output).toContain("Your new project is ready to go!");
    expect(output, "the quickstart").toContain("creates an App, a volume, and a Machine that mounts it");
    const project = readFileSync(join(stack.dir, "project/Pulumi.yaml"), "utf8");
    expect(project).toContain(`name: project-${language}\n`);
    expect(project).not.toMatch(/\$\{|^template:/m);
    const config = JSON.parse(await inProject("project", "config", "--json")) as Record<string, { value: string }>;
    expect(Object.fromEntries(Object.entries(config).map(([key, { value }]) => [key, value]))).toEqual({
      "machines:endpoint": "local",
      "pulumi:tags": expect.stringContaining("pulumi:template"),
      [`project-${language}:image`]: "registry.example.com/hello:1.0.0",
      [`project-${language}:region`]: "fra",
    });
  });

  test("the project previews, creates an App, a volume and a Machine, and deletes them", async () => {
    const settings = [`machines:endpoint=${service.url}`, "image=registry.example.com/other:2.0.0"];
    const plain = settings.flatMap((setting) => ["--plaintext", setting]);
    await inProject("project", "config", "set-all", ...plain, "--secret", `machines:token=${service.token}`);
    expect(await inProject("project", "preview")).toMatch(/\+ 4 to create/);
    expect(counts(await inProject("project", "up", "--yes", "--skip-preview"))).toEqual({ created: 4 });
    // The plugin, or in TypeScript the package; never a value of the configuration. In C#, only packages of NuGet are listed. The host of
    // Java asks Maven, and lists none where Maven fails.
    const about = await inProject("project", "about");
    if (!["csharp", "java"].includes(language))
      expect(about).toMatch(language === "typescript" ? /^pulumi-machines +\d/m : /^resource +machines /m);
    expect(about).not.toContain(service.token);
    const outputs = JSON.parse(await inProject("project", "stack", "output", "--json")) as Record<string, string>;
    expect(outputs).toEqual({
      appName: expect.stringMatching(/^app-\w+$/),
      machine: expect.stringMatching(new RegExp(`^${outputs["appName"]}/\\w+$`)),
      version: expect.any(String),
    });
    const app = `/v1/apps/${outputs["appName"]}`;
    expect(await send(service, "GET", `${app}/volumes`)).toMatchObject([created.volume]);
    expect(await send(service, "GET", `${app}/machines`)).toMatchObject([created.machine]);
    await inProject("project", "destroy", "--yes", "--skip-preview");
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
  });

  // Programs in TypeScript need no plugin, so their `pulumi new` has nothing to ask. The language makes no other difference.
  describe.skipIf(language !== "yaml")("the check of an interactive run", () => {
    let folders = 0;
    /** What `pulumi new` says in a terminal, with an endpoint in the stack and variables in the environment. */
    const said = async (endpoint: string, env: Readonly<Record<string, string>> = {}): Promise<string> => {
      const { code, output } = await create(
        `interactive${folders++}`,
        ["--stack", `check${folders}`, "--config", `machines:endpoint=${endpoint}`],
        {
          env: { PULUMI_TEST_INTERACTIVE: "1", ...env },
        },
      );
      expect(code, output).toBe(0);
      return output;
    };

    test("a token that works, or none that the provider can see, gives no warning", async () => {
      expect(await said(service.url, { MACHINES_TOKEN: service.token })).not.toContain("credentials");
      expect(service.requests.length).toBeGreaterThan(0);
      const asked = service.requests.length;
      expect(await said(service.url)).not.toContain("credentials");
      expect(await said("local")).not.toContain("credentials");
      expect(service.requests.length).toBe(asked);
    });

    test("a refused token and a wrong endpoint are warnings with the reason and the page about the configuration", async () => {
      const refused = await said(service.url, { MACHINES_TOKEN: "wrong-token-canary" });
      expect(refused).toMatch(/warning: Could not validate your Machines credentials:\n.*token/);
      expect(refused).toContain("docs/installation-configuration.md");
      expect(refused).not.toContain("wrong-token-canary");
      expect(await said("ftp://x", { MACHINES_TOKEN: "t" })).toMatch(
        /warning: The Machines provider reported problems .*\n.*machines:endpoint: got "ftp:\/\/x"/,
      );
      const missing = await said("http://127.0.0.1:9", { MACHINES_TOKEN: "t", MACHINES_RETRIES: "0" });
      expect(missing).toMatch(/the service cannot be asked: /);
    });
  });

  test.skipIf(!["typescript", "yaml"].includes(language))(
    "pulumi new takes the template from a Git repository",
    async () => {
      const server = await serveClone(process.cwd(), "v0.0.0");
      try {
        const url = `${server.url}/templates/${language}`;
        const { code, output } = await create("git", [url, "--generate-only"], {
          env: { SSL_CERT_FILE: server.certificate },
        });
        expect(code, output).toBe(0);
        expect(readdirSync(join(stack.dir, "git"))).toEqual(
          expect.arrayContaining(readdirSync(`templates/${language}`).filter((file) => file !== "node_modules")),
        );
      } finally {
        await server.close();
      }
    },
  );
});
