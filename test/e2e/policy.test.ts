// The policy pack with the real CLI, on both bindings: a stack that violates every policy, the corrected stack,
// remediation, exceptions, unknown values at preview, and refused configurations.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { baselines } from "../../policy/baselines.ts";
import { send } from "../support/around.ts";
import { leaks } from "../support/canaries.ts";
import { currentCertificate } from "../support/certificates.ts";
import { packsFromFolders, runFromFolder } from "../support/policyFolder.ts";
import { allOr } from "../support/extent.mts";
import { bindingsOr, counts, Stack } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { thoroughDescribe, thoroughTest } from "../support/thorough.ts";

const installed = inject("installed");
const pack = join(installed, "node_modules/pulumi-machines-policy");
const executable = join(pack, "pulumi-analyzer-machines");
const digest = `sha256:${"0123456789abcdef".repeat(4)}`;
const hostname = "own.example.com";
const day = 86_400_000;
const canaries = {
  image: "c4n4ry-image/in-a-registry",
  env: "c4n4ry-Env-8f3kQz91LmW",
  metadata: "c4n4ry-metadata-value",
};

/** Violates every policy, and marks its secrets. */
const broken = `
import { readFileSync } from "node:fs";
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const secret: Record<string, string> = JSON.parse(readFileSync("canaries.json", "utf8"));
const app = new machines.App("shop", { forceDestroy: true });
new machines.Volume("data", { app: app.id, region: "syd", encrypted: false, snapshotRetention: 1, allowDataLoss: true });
new machines.Machine("web", {
  app: app.id,
  region: "syd",
  config: {
    image: pulumi.secret(secret.image),
    guest: { cpuKind: "performance", cpus: 8, memoryMb: 65536 },
    env: { API_TOKEN: pulumi.secret(secret.env) },
    metadata: { team: pulumi.secret(secret.metadata) },
    restart: { policy: "no" },
    services: [{ protocol: "tcp", internalPort: 8080, ports: [{ port: 80, handlers: ["http"] }, { port: 22, handlers: [] }] }],
  },
});
// Without Machines, so that the App has only the one above.
new machines.Fleet("batch", {
  app: app.id,
  regions: { ams: 0 },
  strategy: { type: "immediate" },
  config: {
    image: "registry.example.com/batch@sha256:${"0".repeat(64)}",
    metadata: { team: "shop" },
    checks: { alive: { type: "tcp", port: 8080, interval: "15s", timeout: "2s" } },
  },
});
new machines.IpAssignment("ipv4", { app: app.id, type: "v4" });
new machines.AcmeCertificate("www", { app: app.id, hostname: "www.example.com" });
new machines.CustomCertificate("own", {
  app: app.id, hostname: "${hostname}", fullchain: secret.fullchain, privateKey: secret.privateKey,
});
new machines.PostgresCluster("db", { region: "fra", plan: "basic", deletionProtection: false });
new machines.DeployToken("deploy", { app: app.id, expiry: "8760h" });
`;

/** The same, corrected as the messages say. */
const mended = `
import { readFileSync } from "node:fs";
import * as machines from "pulumi-machines";
const secret: Record<string, string> = JSON.parse(readFileSync("canaries.json", "utf8"));
const app = new machines.App("shop", {}, { protect: true });
new machines.Volume("data", { app: app.id, region: "ams", snapshotRetention: 14 }, { protect: true });
new machines.AppSecrets("secrets", { app: app.id, values: { API_TOKEN: secret.env } });
for (const [name, region] of [["web", "ams"], ["web2", "fra"]]) {
  new machines.Machine(name, {
    app: app.id,
    region,
    config: {
      image: "registry.example.com/shop@${digest}",
      metadata: { team: "shop" },
      stopConfig: { signal: "SIGTERM", timeout: "30s" },
      services: [{
        protocol: "tcp",
        internalPort: 8080,
        autostop: "stop",
        ports: [{ port: 80, handlers: ["http"], forceHttps: true }, { port: 443, handlers: ["tls", "http"] }],
        checks: [{ type: "http", path: "/healthz", interval: "15s", timeout: "2s" }],
      }],
    },
  });
}
new machines.IpAssignment("ipv6", { app: app.id, type: "v6" });
new machines.CustomCertificate("own", {
  app: app.id, hostname: "${hostname}", fullchain: secret.fullchain, privateKey: secret.privateKey,
});
const db = new machines.PostgresCluster("db", { region: "fra", plan: "launch" });
new machines.PostgresBackup("before-release", { cluster: db.id, type: "full" });
new machines.DeployToken("deploy", { app: app.id, expiry: "168h" });
`;

/** Every policy at its highest level, including those that need configuration. */
const strict = {
  ...baselines.strict,
  "allowed-registries": { registries: ["registry.example.com"] },
  "allowed-regions": { regions: ["ams", "fra"] },
  "allowed-machine-sizes": { sizes: ["shared-cpu-1x"], maxMemoryMb: 2048 },
  budget: { monthly: 400 },
  "required-metadata": { metadata: { team: "shop" } },
  autostop: "mandatory",
};

/** The expected violations: by policy, the resource and a characteristic part of the message. */
const expectedViolations: readonly (readonly [policy: string, resource: string, message: RegExp])[] = [
  ["images-pinned", "web", /config\.image has no digest.*Write it as name@sha256:…/],
  [
    "allowed-registries",
    "web",
    /config\.image comes from a registry that is not allowed\. Allowed .*registry\.example\.com/,
  ],
  ["allowed-regions", "web", /region is one that is not allowed\. Allowed are ams, fra/],
  ["allowed-regions", "data", /region is one that is not allowed/],
  ["allowed-machine-sizes", "web", /the size performance-8x, which is not allowed\. Allowed is shared-cpu-1x/],
  ["allowed-machine-sizes", "web", /memoryMb is 65536; 2048 MiB are allowed/],
  [
    "budget",
    "web",
    /By estimate it costs 488\.00 USD a month and takes the stack to [\d.]+ USD; 400\.00 USD are allowed/,
  ],
  ["no-secrets-in-env", "web", /config\.env\.API_TOKEN looks like a secret, by its name\. Put it into AppSecrets/],
  ["health-checks", "web", /config\.services\[0\] has no check\. Add checks/],
  ["safe-rollouts", "batch", /strategy\.type is "immediate", which interrupts all Machines at once/],
  ["redundancy", "shop", /It has 1 Machine; at least 2 are wanted/],
  ["redundancy", "shop", /Its Machines are in 1 region; at least 2 are wanted/],
  ["restart-policy", "web", /config\.restart\.policy is "no".*Set it to "on-failure" or "always"/],
  ["graceful-stop", "web", /config\.stopConfig\.timeout is left out.*timeout: "10s"/],
  ["no-public-ipv4", "ipv4", /type is "v4", a public IPv4 address\. Allowed are "v6" and "private_v6"/],
  ["https-forced", "web", /config\.services\[0\]\.ports\[0\] serves HTTP unencrypted\. Add forceHttps: true/],
  ["known-ports", "web", /config\.services\[0\]\.ports\[1\] makes port 22 public\. Known are 80, 443/],
  ["certificates-validated", "www", /Nothing waits until it is valid\. Add a CertificateValidation/],
  ["certificates-not-expiring", "own", /fullchain expires on .*, in \d days; at least 30 are wanted/],
  ["volumes-encrypted", "data", /encrypted is false\. Leave it out, or set it to true/],
  ["volume-snapshots", "data", /snapshotRetention is 1 days?; at least 14 are wanted: snapshotRetention: 14/],
  ["database-protection", "db", /deletionProtection is false\. Leave it out, or set it to true/],
  ["database-plan", "db", /plan is "basic"; "launch" is the smallest allowed/],
  ["database-backups", "db", /There is no backup of it\. Add a PostgresBackup/],
  ["production-protected", "shop", /It is not protected.*Add \{ protect: true \}/],
  ["production-protected", "data", /It is not protected/],
  ["production-protected", "db", /It is not protected/],
  ["no-data-loss-switches", "shop", /forceDestroy is true/],
  ["no-data-loss-switches", "data", /allowDataLoss is true/],
  ["required-metadata", "web", /config\.metadata\.team is not what is allowed: "shop"/],
  ["deploy-token-expiry", "deploy", /expiry is 8760 h; at most 168 h are allowed: expiry: "168h"/],
  ["autostop", "web", /config\.services\[0\] never stops\. Set autostop: "stop" and autostart: true/],
];

/** A violation printed by the CLI: level, policy, resource and message. */
interface Violation {
  readonly level: string;
  readonly policy: string;
  readonly resource: string;
  readonly message: string;
}

/** Violations in the output of a run. */
const violationsIn = (output: string): Violation[] =>
  [
    ...output.matchAll(
      /^ +- \[(advisory|mandatory|remediate)\](?: \[severity: \w+\])? +([\w-]+) +\(\S+: ([\w-]+)\)\n((?: {10}.*\n)+)/gm,
    ),
  ].map(([, level = "", policy = "", resource = "", message = ""]) => ({ level, policy, resource, message }));

describe.each(bindingsOr("pulumi-machines-plugin"))("policies on %s", (binding) => {
  let service: TestService;
  let stack: Stack;

  const set = (config: object): void => writeFileSync(join(stack.dir, "policy.json"), JSON.stringify(config));
  const run = (...args: string[]) =>
    stack.run([...args, "--policy-pack", executable, "--policy-pack-config", "policy.json"]);
  const apps = () => send<{ total_apps: number }>(service, "GET", "/v1/apps?org_slug=personal");
  const certificate = (days: number): void => {
    const { fullchain, private_key } = currentCertificate({
      hosts: [hostname],
      until: new Date(Date.now() + days * day),
    });
    writeFileSync(
      join(stack.dir, "canaries.json"),
      JSON.stringify({ ...canaries, fullchain, privateKey: private_key }),
    );
  };

  const newStack = async (name: string): Promise<void> => {
    stack = new Stack(installed, name, binding);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
  };

  beforeAll(async () => {
    service = await startService();
    await newStack("policies");
  });
  afterAll(() => service.close());

  test("a stack that violates every policy: each message says what to change, at preview, without secrets; nothing is created", async () => {
    stack.program(broken);
    certificate(5);
    set(strict);
    const from = service.requests.length;
    const { code, output } = await run("up", "--yes");
    expect(code).not.toBe(0);
    expect(service.requests.slice(from).filter((request) => isWrite(request))).toEqual([]);
    expect(await apps()).toMatchObject({ total_apps: 0 });
    const found = violationsIn(output);
    for (const [policy, resource, message] of expectedViolations)
      expect(found, `${policy} of ${resource}`).toContainEqual({
        level: "mandatory",
        policy,
        resource,
        message: expect.stringMatching(message),
      });
    const ours = new Set(expectedViolations.map(([policy]) => policy));
    expect([...ours, "exceptions"].sort()).toEqual(Object.keys(baselines.strict).sort());
    // The engine decides in which order resources exceed the budget.
    const others = ({ level, policy }: Violation) => level === "mandatory" && policy !== "budget";
    expect(found.filter(others)).toHaveLength(expectedViolations.filter(([policy]) => policy !== "budget").length);
    expect(leaks(canaries, [{ what: "the output", text: output }])).toEqual([]);
  });

  test("corrected, it passes", async () => {
    stack.program(mended);
    certificate(90);
    const made = await run("up", "--yes", ...allOr([], ["--skip-preview"]));
    expect([made.code, violationsIn(made.output)], made.output).toEqual([0, []]);
    expect(made.output).not.toContain("can't run policy");
  });

  thoroughTest("a corrected stack changes nothing the second time", async () => {
    const again = await run("up", "--yes", "--skip-preview", "--refresh");
    const { unchanged = 0, ...rest } = counts(again.output);
    expect([again.code, rest, violationsIn(again.output)]).toEqual([0, {}, []]);
    expect(unchanged).toBeGreaterThan(10);
  });

  thoroughTest("the resources in the state are also checked without a program", async () => {
    set({ ...strict, "required-metadata": { metadata: { team: "another" } } });
    const other = await run("policy", "analyze");
    expect(other.code).not.toBe(0);
    expect(violationsIn(other.output).map(({ policy, resource }) => `${policy} ${resource}`)).toEqual([
      "required-metadata web",
      "required-metadata web2",
    ]);
  });

  // test/policy/policies/ has each remedy, and test/policy/pack.test.ts asks the pack for them.
  thoroughTest("remediated values are applied and stay", async () => {
    await newStack("remediated");
    stack.program(`
import * as machines from "pulumi-machines";
const app = new machines.App("fixed", {}, { protect: true });
new machines.Volume("data", { app: app.id, region: "ams", autoBackupEnabled: false, snapshotRetention: 1 }, { protect: true });
new machines.Machine("web", {
  app: app.id,
  region: "ams",
  config: {
    image: "registry.example.com/shop@${digest}",
    restart: { policy: "no" },
    stopConfig: { timeout: "30s" },
    services: [{
      protocol: "tcp",
      internalPort: 8080,
      ports: [{ port: 80, handlers: ["http"] }, { port: 443, handlers: ["tls", "http"] }],
      checks: [{ type: "tcp", interval: "15s", timeout: "2s" }],
    }],
  },
});`);
    set(baselines.production);
    const made = await run("up", "--yes", "--skip-preview");
    expect(made.code, made.output).toBe(0);
    for (const policy of ["restart-policy", "https-forced", "volume-snapshots"])
      expect(made.output).toMatch(new RegExp(`\\[remediate\\]  ${policy}`));
    const { data, web } = stack.state();
    expect(data?.inputs).toMatchObject({ autoBackupEnabled: true, snapshotRetention: 7 });
    expect(web?.inputs["config"]).toMatchObject({
      restart: { policy: "on-failure" },
      services: [{ ports: [{ port: 80, handlers: ["http"], forceHttps: true }, { port: 443 }] }],
    });
    const again = await run("up", "--yes", "--skip-preview", "--refresh");
    expect(counts(again.output)).toEqual({ unchanged: 4 });
  });

  // In process: test/policy/core/exceptions.test.ts.
  thoroughTest("an exception is reported while it is needed, and expires on its date", async () => {
    await newStack("excepted");
    set({
      ...baselines.production,
      "production-protected": {
        enforcementLevel: "mandatory",
        exceptions: [{ resource: "free", reason: "moves next week", until: "2099-12-31" }],
      },
      "health-checks": {
        enforcementLevel: "mandatory",
        exceptions: [{ resource: "w*b", reason: "no path for it yet", until: "2020-01-31" }],
      },
    });
    stack.program(`
import * as machines from "pulumi-machines";
const app = new machines.App("free");
new machines.Machine("web", {
  app: app.id,
  region: "ams",
  config: {
    image: "registry.example.com/shop@${digest}",
    services: [{ protocol: "tcp", internalPort: 8080, ports: [{ port: 443, handlers: ["tls"] }] }],
  },
});`);
    const { code, output } = await run("preview");
    const found = violationsIn(output);
    expect(code).not.toBe(0);
    expect(found.filter(({ level }) => level === "mandatory")).toEqual([
      expect.objectContaining({
        policy: "health-checks",
        resource: "web",
        message: expect.stringContaining("Its exception (no path for it yet) has ended on 2020-01-31."),
      }),
    ]);
    expect(found).toContainEqual({
      level: "advisory",
      policy: "exceptions",
      resource: "free",
      message: expect.stringContaining("production-protected does not apply to it until 2099-12-31: moves next week"),
    });
  });

  thoroughTest(
    "unknown values are reported at preview, and the update checks them before it creates anything",
    async () => {
      await newStack("unknown");
      set(baselines.production);
      stack.program(`
import * as machines from "pulumi-machines";
const app = new machines.App("later", {}, { protect: true });
new machines.Machine("web", {
  app: app.id,
  region: "ams",
  config: { image: app.id.apply((id) => \`registry.example.com/\${id}:1.0.0\`) },
});`);
      const preview = await run("preview");
      expect(preview.code, preview.output).toBe(0);
      expect(violationsIn(preview.output)).toContainEqual({
        level: "advisory",
        policy: "images-pinned",
        resource: "web",
        message: expect.stringContaining(
          "config.image is known only at the update, and is checked then, before the Machine is created or changed",
        ),
      });
      const from = service.requests.length;
      const update = await run("up", "--yes", "--skip-preview");
      expect(update.code).not.toBe(0);
      expect(violationsIn(update.output)).toContainEqual(
        expect.objectContaining({ level: "mandatory", policy: "images-pinned", resource: "web" }),
      );
      const written = service.requests.slice(from).filter((request) => isWrite(request));
      expect(written.map(({ path }) => path).filter((path) => path.endsWith("/machines"))).toEqual([]);
    },
  );
});

// In process: test/policy/pack.test.ts and core/settings.test.ts.
thoroughDescribe("running the pack", () => {
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(installed, "running");
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    stack.program(`
import * as machines from "pulumi-machines";
const app = new machines.App("shop");
new machines.Machine("web", {
  app: app.id,
  region: "ams",
  config: { image: "registry.example.com/shop:1.0.0", env: { PASSWORD: "not-much-of-one" } },
});`);
  });
  afterAll(() => service.close());

  const preview = (env: Record<string, string>, ...args: string[]) => stack.run(["preview", ...args], { env });

  test("the default configuration is development", async () => {
    const { code, output } = await preview({}, "--policy-pack", executable);
    expect(code).not.toBe(0);
    expect(violationsIn(output).map(({ level, policy }) => `${level} ${policy}`)).toEqual([
      "mandatory no-secrets-in-env",
      "advisory images-pinned",
    ]);
  });

  test("the pack runs from its folder, as a current language host runs it", async () => {
    const folder = join(installed, "pack-in-folder");
    cpSync(pack, folder, { recursive: true });
    runFromFolder(folder);
    const { code, output } = await preview(packsFromFolders(stack, installed), "--policy-pack", folder);
    expect(code).not.toBe(0);
    expect(violationsIn(output).map(({ policy }) => policy)).toEqual(["no-secrets-in-env", "images-pinned"]);
  });

  test("the pack runs as in the package's README, with an additional policy", async () => {
    const [, program = ""] = /^```ts\n(.*?)^```/ms.exec(readFileSync("policy/README.md", "utf8")) ?? [];
    const folder = join(installed, "pack-of-the-readme");
    mkdirSync(folder);
    writeFileSync(join(folder, "PulumiPolicy.yaml"), "runtime: nodejs\n");
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "acme", version: "1.0.0", main: "index.ts" }));
    writeFileSync(join(folder, "index.ts"), program);
    runFromFolder(folder);
    stack.program(stack.read().replace("config: {", 'config: { guest: { gpuKind: "a10" },'));
    const { code, output } = await preview(packsFromFolders(stack, installed), "--policy-pack", folder);
    expect(code).not.toBe(0);
    expect(output).toContain("acme@v1.0.0");
    expect(violationsIn(output)).toContainEqual(
      expect.objectContaining({ level: "mandatory", policy: "no-gpus", message: expect.stringContaining("Take out") }),
    );
  });

  // One that the engine refuses by its schema, and one that the pack refuses; core/settings.test.ts has the others.
  test.each([
    [
      "an invalid value, and an exception without a date",
      { redundancy: { machines: 0 }, autostop: { exceptions: [{ resource: "web", reason: "later" }] } },
      [/redundancy: machines: Must be greater than or equal to 1/, /autostop: exceptions\.0: until is required/],
    ],
    [
      "an unknown policy",
      { "image-pinned": "mandatory" },
      [/the configuration of the pack has "image-pinned", which it does not know; did you mean "images-pinned"\?/],
    ],
  ])("configuration with %s is refused", async (_, config, messages) => {
    writeFileSync(join(stack.dir, "policy.json"), JSON.stringify(config));
    const { code, output } = await preview({}, "--policy-pack", executable, "--policy-pack-config", "policy.json");
    expect(code).not.toBe(0);
    for (const message of messages) expect(output).toMatch(message);
  });
});

// The checks compile the example, and the pack of the README runs from its folder, too.
thoroughDescribe("the example's pack", () => {
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(installed, "policy");
    stack.example("policy");
    runFromFolder(join(stack.dir, "policies"));
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    await stack.ok("stack", "init", "prod");
    await stack.set({ "machines:endpoint": service.url, "machines:token": service.token });
  });
  afterAll(() => service.close());

  // The configuration used by the example's workflow.
  const workflow = readFileSync("examples/policy/github-actions.yml", "utf8");
  const [, folder = "", configOfProd = ""] = /policyPacks: (\S+)\n +policyPackConfigs: (\S+)/.exec(workflow) ?? [];
  const run = (name: "dev" | "prod") => {
    const config = configOfProd.replace("prod", name);
    const packs = ["--policy-pack", folder, "--policy-pack-config", config];
    return stack.run(["preview", "--stack", name, ...packs], { env: packsFromFolders(stack, installed) });
  };

  test("each stack passes with its configuration, and its exception is reported", async () => {
    const [dev, prod] = [await run("dev"), await run("prod")];
    expect([dev.code, violationsIn(dev.output)], dev.output).toEqual([0, []]);
    expect([prod.code, violationsIn(prod.output)], prod.output).toEqual([
      0,
      [expect.objectContaining({ level: "advisory", policy: "exceptions", resource: "uploads" })],
    ]);
  });

  test("a pack with some of the policies accepts a complete baseline", async () => {
    const file = join(stack.dir, "policies/index.ts");
    const text = readFileSync(file, "utf8");
    writeFileSync(
      file,
      text.replace("...machinesPolicies()", '...machinesPolicies().filter(({ name }) => name !== "autostop")'),
    );
    const { code, output } = await stack.run(["preview", "--stack", "dev", "--policy-pack", folder], {
      env: packsFromFolders(stack, installed),
    });
    writeFileSync(file, text);
    expect(output).toContain("shop@v1.0.0");
    expect(violationsIn(output).map(({ policy }) => policy)).toContain("production-protected");
    expect(code).not.toBe(0);
  });

  test("its own policy applies, and mandatory policies in production are advisory in development", async () => {
    stack.program(
      stack
        .read()
        .replace("memoryMb: 512", "memoryMb: 256")
        .replace(/@sha256:\w+/, ""),
    );
    const [dev, prod] = [await run("dev"), await run("prod")];
    const reported = (level: string) =>
      ["web-ams", "web-fra"].flatMap((resource) =>
        ["images-pinned", "memory-for-caches"].map((policy) => expect.objectContaining({ level, policy, resource })),
      );
    expect(dev.code, dev.output).toBe(0);
    expect(violationsIn(dev.output)).toEqual(expect.arrayContaining(reported("advisory")));
    expect(prod.code).not.toBe(0);
    expect(violationsIn(prod.output)).toEqual(expect.arrayContaining(reported("mandatory")));
  });
});
