// Resources that the program declares as another type, with the packed command and the real CLI: `pulumi-machines migrate` changes only
// the state.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { bindings, counts, Stack, type Ran } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";

const image = (tag: string): string => `registry.example.com/shop:${tag}`;

const head = (tag: string, more: string): string => `
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "migrate-shop" });
const config = { image: "${image(tag)}", env: { LEVEL: "info", KEY: pulumi.secret("not-for-eyes") }, services: [{ protocol: "tcp", internalPort: 8080, ports: [{ port: 443, handlers: ["tls", "http"] }] }] };
${more}
`;

const loose = (): string =>
  head(
    "1",
    `
const token = new machines.Secret("token", { app: app.id, name: "TOKEN", value: pulumi.secret("hidden-value") });
const other = new machines.Secret("other", { app: app.id, name: "OTHER", value: pulumi.secret("hidden-other") });
const minSecretsVersion = pulumi.output([token.version, other.version]).apply((all) => Math.max(...all));
const one = new machines.Machine("web-1", { app: app.id, region: "ams", config, minSecretsVersion });
new machines.Machine("web-2", { app: app.id, region: "iad", config, minSecretsVersion }, { dependsOn: one });
new machines.Volume("data", { app: app.id, region: "ams", sizeGb: 1 }, { dependsOn: one });
`,
  );

const together = ({ tag = "1", key = "", regions = "{ ams: 1, iad: 1 }", values = "hidden-value" } = {}): string =>
  head(
    tag,
    `
${key}
const secrets = new machines.AppSecrets("secrets", { app: app.id, values: { TOKEN: pulumi.secret("${values}"), OTHER: pulumi.secret("hidden-other") } });
const group = new pulumi.ComponentResource("shop:index:Group", "group");
const web = new machines.Fleet("web", { app: app.id, regions: ${regions}, config, minSecretsVersion: secrets.version }, { parent: group });
new machines.Volume("data", { app: app.id, region: "ams", sizeGb: 1 }, { dependsOn: web });
`,
  );

describe.each(bindings)(
  "Machines and secrets that the program declares as a fleet and an AppSecrets, %s",
  (binding) => {
    let service: TestService;
    let stack: Stack;
    let ids: string[];

    beforeAll(async () => {
      service = await startService();
      stack = new Stack(inject("installed"), "migrate", binding);
      stack.program(loose());
      await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
      await stack.up();
      ids = await machineIds();
    });
    afterAll(() => service.close());

    const machines = () =>
      send<{ id: string; instance_id: string; config: { image: string; metadata?: Record<string, string> } }[]>(
        service,
        "GET",
        "/v1/apps/migrate-shop/machines",
      );
    const machineIds = async () => (await machines()).map(({ id }) => id).sort();
    /** Runs the command like `npx pulumi-machines`. It changes nothing on the service, whatever happens. */
    const migrate = async (...args: string[]): Promise<Ran> => {
      const before = service.requests.length;
      const command = join(inject("installed"), "node_modules/.bin/pulumi-machines");
      const ran = await stack.run(["migrate", ...args], { command, plain: true });
      expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
      for (const secret of [service.token, "not-for-eyes", "hidden-value", "hidden-other"])
        expect(ran.output).not.toContain(secret);
      return ran;
    };
    const refused = async (reason: string | RegExp, ...args: string[]): Promise<void> => {
      const before = await stack.ok("stack", "export");
      const { code, output } = await migrate(...args);
      expect(output).toMatch(reason);
      expect(code, output).not.toBe(0);
      expect(resourcesIn(await stack.ok("stack", "export"))).toEqual(resourcesIn(before));
    };
    const resourcesIn = (text: string): unknown =>
      (JSON.parse(text) as { deployment: { resources: { urn: string; id: string }[] } }).deployment.resources.map(
        ({ urn, id }) => [urn, id],
      );

    test("without such a change there is nothing to migrate", async () => {
      const { code, output } = await migrate("--yes");
      expect([code, output]).toEqual([0, expect.stringContaining("There is nothing to migrate")]);
    });

    test("other configurations, numbers and values are refused, and the state stays as it is", async () => {
      stack.program(together({ tag: "2" }));
      await refused(/Fleet web: none of web-1, web-2, .* has its configuration/, "--dry-run");
      stack.program(together({ regions: "{ ams: 3 }" }));
      await refused(/it wants 3 in ams, and 1 in ams and 1 in iad have its configuration/, "--dry-run");
      stack.program(together({ values: "another" }));
      await refused(
        /AppSecrets secrets: the next update would update it, because the program has another values/,
        "--yes",
      );
      stack.program(together());
      await refused(/no one can answer here: add --yes/);
    });

    test("a migration changes only the state, and a preview after it shows no change", async () => {
      const { code, output } = await migrate("--yes");
      expect(code, output).toBe(0);
      expect(output).toMatch(
        /Fleet web .*\n {2}takes over Machine web-1 \(migrate-shop\/\w+\)\n {2}takes over Machine web-2/,
      );
      expect(output).toContain("  takes over Secret other (migrate-shop/OTHER)\n");
      expect(output).toContain("  takes over Secret token (migrate-shop/TOKEN)\n");
      const file = /The previous state is in (dev-before-migration-\w+\.json)\./.exec(output)?.[1];
      expect(readdirSync(stack.dir)).toContain(file);
      expect(await stack.preview()).toEqual({});
      const before = service.requests.length;
      expect(Object.keys(counts(await stack.up()))).toEqual(["unchanged"]);
      expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
      expect(await machineIds()).toEqual(ids);
      expect(await stack.ok("stack", "export")).not.toMatch(/not-for-eyes|hidden-/);
    });

    test("the command finds no orphans among what the fleet took over", async () => {
      const command = join(inject("installed"), "node_modules/.bin/pulumi-machines");
      const { code, output } = await stack.run(["orphans"], { command, plain: true });
      expect([code, output]).toEqual([0, expect.stringContaining(": no orphans.")]);
      expect(output).not.toContain("missing");
    });

    test("the next up with a refresh tags the Machines, without a new version", async () => {
      const before = (await machines()).map(({ instance_id }) => instance_id);
      await stack.ok("up", "--yes", "--refresh", "--skip-preview");
      const after = await machines();
      expect(after.map(({ instance_id }) => instance_id)).toEqual(before);
      for (const { config } of after) expect(config.metadata).toMatchObject({ "pulumi-fleet": "web" });
      expect(await stack.preview()).toEqual({});
      expect(Object.keys(counts(await stack.refresh()))).toEqual(["unchanged"]);
    });

    test("a new image reaches the Machines that exist, and destroy leaves nothing", async () => {
      stack.program(together({ tag: "2" }));
      await stack.up();
      const after = await machines();
      expect(after.map(({ id }) => id).sort()).toEqual(ids);
      expect(new Set(after.map(({ config }) => config.image))).toEqual(new Set([image("2")]));
      await stack.ok("destroy", "--yes", "--skip-preview");
      expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ apps: [] });
    });
  },
);

describe("the engine's own state migrations", () => {
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "engine", "pulumi-machines-plugin");
    stack.program(
      within("", "new machines.Secret('token', { app: app.id, name: 'TOKEN', value: 'x' }, { parent: tier });"),
    );
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    await stack.up();
  });
  afterAll(() => service.close());

  /** A component whose children a migration rewrites. */
  const within = (options: string, children: string): string => `
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "engine-shop" });
const tier = new pulumi.ComponentResource("shop:index:Tier", "tier", {}, { ${options} });
${children}
`;

  test("cannot make a Secret part of an AppSecrets, because it would get another id", async () => {
    const migration = `stateMigrations: [({ oldState }) => {
      const [root, secret] = oldState;
      if (secret === undefined || !secret.type.endsWith(":Secret")) return undefined;
      const urn = secret.urn.replace(":Secret::token", ":AppSecrets::all");
      const all = { ...secret, urn, type: secret.type.replace("Secret", "AppSecrets"), id: "engine-shop", inputs: { app: "engine-shop" } };
      return { newState: [root, all], successors: { [secret.urn]: urn } };
    }]`;
    stack.program(
      within(migration, "new machines.AppSecrets('all', { app: app.id, values: { TOKEN: 'x' } }, { parent: tier });"),
    );
    expect(await stack.fails("preview")).toMatch(
      /does not support state migrations|changes the physical ID of managed custom resource .* from "engine-shop\/TOKEN" to "engine-shop" .* must preserve managed resource identity/s,
    );
  });
});
