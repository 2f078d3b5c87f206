// Drift of a stack, shown by the packed command with the real CLI, and repaired by a refresh and an update.
import { execFile } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { parse } from "yaml";
import { makeMachine, send } from "../support/around.ts";
import { leaks } from "../support/canaries.ts";
import { bindings, Stack } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";

const secrets = {
  token: "canary-env-token-81",
  apiKey: "canary-api-key-82",
  password: "canary-password-83",
  liveToken: "canary-live-token-84",
  liveKey: "canary-live-key-85",
};

const program = `
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const config = new pulumi.Config();
const app = new machines.App("shop", { name: "drift-shop" });
const data = new machines.Volume("data", { app: app.id, name: "data", region: "ams", sizeGb: 1, snapshotRetention: 5 });
new machines.Machine("web", {
  app: app.id,
  name: "web",
  region: "ams",
  config: {
    image: "registry.example.com/shop:1",
    env: { TOKEN: config.requireSecret("envToken"), PASSWORD: "${secrets.password}" },
    mounts: [{ volume: data.id, path: "/data" }],
  },
});
const plain = { image: "registry.example.com/shop:1", metadata: { team: "one" } };
const worker = new machines.Machine("worker", { app: app.id, name: "worker", region: "ams", config: plain });
new machines.MachineMetadata("labels", { app: app.id, machine: worker.id, values: { shift: "night" } });
new machines.AppSecrets("secrets", { app: app.id, values: { API_KEY: config.requireSecret("apiKey"), OTHER: "other" } });
new machines.AcmeCertificate("www", { app: app.id, hostname: "www.drift.example.com" });
new machines.Fleet("fleet", { app: app.id, name: "fleet", regions: { ams: 2 }, config: plain });
`;

interface Printed {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

interface Report {
  readonly resources: readonly {
    readonly name: string;
    readonly status: string;
    readonly differences: readonly { path: string; state: unknown; live: unknown; isSecret: boolean }[];
  }[];
}

interface Live {
  readonly id: string;
  readonly name: string;
  readonly config: Readonly<Record<string, unknown>>;
}

describe("drift", () => {
  for (const binding of bindings)
    describe(`of a stack on ${binding}`, () => {
      let service: TestService;
      let stack: Stack;

      beforeAll(async () => {
        service = await startService();
        stack = new Stack(inject("installed"), "drift", binding);
        stack.program(program);
        await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
        await stack.ok(
          "config",
          "set-all",
          "--secret",
          `envToken=${secrets.token}`,
          "--secret",
          `apiKey=${secrets.apiKey}`,
        );
        await stack.up();
      });
      afterAll(() => service.close());

      const bin = join(inject("installed"), "node_modules/.bin");

      /** Runs the command, which must not change service or state, and print no secret. */
      async function drift(...args: string[]): Promise<Printed> {
        const before = [service.requests.length, await stack.ok("stack", "export")] as const;
        const printed = await new Promise<Printed>((resolve) => {
          execFile(
            join(bin, "pulumi-machines"),
            ["drift", ...args],
            { cwd: stack.dir, env: stack.env },
            (error, out, err) => resolve({ code: error === null ? 0 : Number(error.code), out, err }),
          );
        });
        expect(service.requests.slice(before[0]).filter(isWrite), "it only reads").toEqual([]);
        expect(await stack.ok("stack", "export")).toBe(before[1]);
        const output = [{ what: "output", text: printed.out + printed.err }];
        expect(leaks({ ...secrets, serviceToken: service.token }, output)).toEqual([]);
        return printed;
      }

      const machines = () => send<Live[]>(service, "GET", "/v1/apps/drift-shop/machines");
      async function machine(name: string): Promise<Live> {
        const found = (await machines()).find((one) => one.name === name);
        if (found === undefined) throw new Error(`there is no Machine ${name}`);
        return found;
      }
      async function reconfigure(name: string, change: (config: Live["config"]) => object): Promise<void> {
        const { id, config } = await machine(name);
        await send(service, "POST", `/v1/apps/drift-shop/machines/${id}`, { config: change(config) });
      }

      /** Changes everything that the program declares, as another client does. */
      async function interfere(): Promise<void> {
        await reconfigure("web", (config) => ({
          ...config,
          env: { ...(config["env"] as object), TOKEN: secrets.liveToken },
        }));
        await reconfigure("worker", (config) => ({
          ...config,
          image: "registry.example.com/shop:2",
          metadata: { ...(config["metadata"] as object), team: "two" },
        }));
        const { id } = await machine("worker");
        await send(service, "POST", `/v1/apps/drift-shop/machines/${id}/metadata/shift`, { value: "day" });
        const [volume] = await send<{ id: string }[]>(service, "GET", "/v1/apps/drift-shop/volumes");
        await send(service, "PUT", `/v1/apps/drift-shop/volumes/${volume?.id ?? ""}`, { snapshot_retention: 44 });
        await send(service, "POST", "/v1/apps/drift-shop/secrets/API_KEY", { value: secrets.liveKey });
        await send(service, "DELETE", "/v1/apps/drift-shop/certificates/www.drift.example.com");
        const member = (await machines()).find(({ name }) => name.startsWith("fleet"));
        await send(service, "DELETE", `/v1/apps/drift-shop/machines/${member?.id ?? ""}?force=true`);
      }

      /** Runs the step of docs/drift.md as a runner does. */
      async function nightly(): Promise<{ code: number; output: string; summary: string }> {
        const page = readFileSync(join(__dirname, "../../docs/drift.md"), "utf8");
        const workflow = page.split("```yaml\n")[1]?.split("\n```\n")[0] ?? "";
        const { jobs } = parse(workflow) as { jobs: { drift: { steps: { run?: string }[] } } };
        const script = jobs.drift.steps.at(-1)?.run?.replaceAll("prod", "dev") ?? "";
        const summary = join(stack.dir, "summary.md");
        writeFileSync(summary, "");
        const env = { PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}`, GITHUB_STEP_SUMMARY: summary };
        const { code, output } = await stack.run(["-ec", script], { command: "bash", plain: true, env });
        return { code, output, summary: readFileSync(summary, "utf8") };
      }

      test("the drift report names every difference and no secret, and shows none after a refresh and an update", async () => {
        expect(await drift()).toEqual({ code: 0, err: "", out: "Stack dev of drift, 8 resources: no drift.\n" });
        expect(await nightly()).toMatchObject({ code: 0, output: "" });
        await interfere();
        const found = await drift("--json");
        expect([found.code, found.err]).toEqual([1, ""]);
        const paths = (JSON.parse(found.out) as Report).resources.flatMap(({ name, status, differences }) =>
          status === "unchanged"
            ? []
            : [
                [
                  name,
                  status,
                  ...differences.map(({ path, state, live, isSecret }) => (isSecret ? path : [path, state, live])),
                ],
              ],
        );
        expect(paths).toEqual(
          expect.arrayContaining([
            ["data", "changed", ["snapshotRetention", 5, 44]],
            ["web", "changed", "config.env.TOKEN"],
            [
              ...["worker", "changed"],
              ["config.image", "registry.example.com/shop:1", "registry.example.com/shop:2"],
              ["config.metadata.team", "one", "two"],
            ],
            ["labels", "changed", ["values.shift", "night", "day"]],
            ["secrets", "changed", "values.API_KEY"],
            ["www", "missing"],
            ["fleet", "changed", ["drift", [], ["Machines in ams: 1 instead of 2"]], ["regions.ams", 2, 1]],
          ]),
        );
        expect(paths).toHaveLength(7);
        const night = await nightly();
        expect([night.code, night.output]).toEqual([1, "::error::dev has drifted\n"]);
        expect(night.summary).toContain("8 resources: 6 changed, 1 missing.");

        await makeMachine(service, "drift-shop", { name: "by-hand", config: { image: "registry.example.com/shop:1" } });
        expect((await drift("--unmanaged", "--app", "drift-shop")).out).toContain("1 missing, 1 not managed.");

        // A refresh of the CLI finds the same.
        const refreshed = await stack.refresh();
        expect(refreshed).toMatch(/~ 6 updated/);
        expect(refreshed).toMatch(/- 1 deleted/);
        await stack.up();
        await stack.refresh();
        expect(await drift()).toMatchObject({ code: 0, err: "" });
        expect((await drift("--unmanaged")).code).toBe(1);
      });

      test("the drift report reads while an update holds the lock of the stack", async () => {
        const isLocked = (): boolean =>
          readdirSync(join(stack.dir, ".state"), { recursive: true }).some((path) =>
            /locks.*\.json$/.test(String(path)),
          );
        const running = stack.start(["up", "--yes", "--skip-preview"]);
        await expect.poll(isLocked).toBe(true);
        process.kill(running.pid, "SIGSTOP");
        try {
          expect((await drift()).code).toBe(0);
          expect(isLocked()).toBe(true);
        } finally {
          process.kill(running.pid, "SIGCONT");
        }
        expect(await running.ended).toMatchObject({ code: 0 });
      });

      test("the drift report says in one sentence what it could not check", async () => {
        await stack.ok("config", "set", "--secret", "machines:token", "wrong");
        const { code, err } = await drift();
        expect(code).toBe(2);
        expect(err.trim().split("\n")).toHaveLength(1);
        expect(err).toContain("401");
        expect((await nightly()).output).toContain("::error::dev could not be checked");
      });
    });
});
