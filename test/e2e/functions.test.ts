// Functions in real programs: plain and Output form, before and after anything exists, with secrets and dependencies.
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { makeApp, send } from "../support/around.ts";
import { bindings, counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const canary = "c4n4ry-plaintext";
const base64 = (text: string): string => Buffer.from(text).toString("base64");

const program = (ciphertext: string): string => `
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";
const image = "registry.example.com/a:1";
const app = new machines.App("shop", { name: "fn-shop" });
const data = new machines.Volume("data", { app: app.id, region: "ams", sizeGb: 1 });
const web = new machines.Machine("web", {
  app: app.id,
  region: "ams",
  config: { image, env: { SNAKE_CASE: "1" }, metadata: { role: "web" }, guest: { cpus: 2, memoryMb: 512 } },
});
class Pair extends pulumi.ComponentResource {
  constructor(name: string) {
    super("test:index:Pair", name);
    for (const half of ["left", "right"])
      new machines.Machine(\`\${name}-\${half}\`, { app: app.id, config: { image, metadata: { half } } }, { parent: this });
  }
}
const pair = new Pair("pair");

export const regions = machines.getRegions().then((found) => found.regions.map(({ code }) => code));
// The name is known before the App exists.
export const status = machines.getAppOutput({ name: app.name }).apply(({ name, status }) => [name, status]);
const seen = machines.getMachineOutput({ app: app.id, machine: web.id });
export const machineId = seen.machineId;
export const waited = machines.waitForMachineOutput({ app: app.id, machine: web.id, timeoutSeconds: 60 }).state;
// Only dependsOn requires that the volume, or all Machines of the component, exist.
export const sizes = machines
  .getVolumesOutput({ app: "fn-shop" }, { dependsOn: data })
  .apply(({ volumes }) => volumes.map(({ sizeGb }) => sizeGb));
export const halves = machines
  .getMachinesOutput({ app: "fn-shop" }, { dependsOn: [pair] })
  .apply((found) => found.machines.flatMap(({ config }) => config?.metadata?.half ?? []).sort());
export const opened = machines.decryptOutput({ app: "vault", key: "box", ciphertext: "${ciphertext}" }).plaintext;
export const secretName = machines.getAppOutput({ name: pulumi.secret("vault") }).name;
new machines.Machine("twin", { app: app.id, config: seen.apply(({ config }) => config ?? { image }) });
`;

describe.each(bindings)("functions on %s", (binding) => {
  let service: TestService;
  let stack: Stack;
  const seen: string[] = [];
  const run = async (...args: string[]) => {
    const output = await stack.ok(...args);
    seen.push(output);
    return output;
  };

  beforeAll(async () => {
    service = await startService();
    await makeApp(service, "vault");
    const key = "/v1/apps/vault/secretkeys/box";
    await send(service, "POST", `${key}/generate`, { type: "nacl_secretbox" });
    const { ciphertext } = await send<{ ciphertext: string }>(service, "POST", `${key}/encrypt`, {
      plaintext: base64(canary),
    });
    stack = new Stack(inject("installed"), "functions", binding);
    stack.program(program(ciphertext));
    stack.checkTypes(); // results of functions
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
  });
  afterAll(() => service.close());

  test("a preview before anything exists succeeds and reads nothing that does not exist", async () => {
    const output = await run("preview");
    expect(output).toMatch(/regions +: \[\n/);
    for (const unknown of ["status", "machineId", "waited", "sizes", "halves"])
      expect(output).toMatch(new RegExp(`${unknown} *: (\\[unknown\\]|output<)`));
    expect(output).toMatch(/opened +: \[secret\]/);
    // Preview checks whether the name is taken, and reads nothing else of a missing App.
    const asked = service.requests.filter(({ path }) => path.includes("fn-shop")).map(({ operation }) => operation);
    expect(asked).toEqual(["apps.get"]);
  });

  test("an up knows all results; dependents of a result wait for the function's dependencies", async () => {
    await run("up", "--yes", "--skip-preview");
    const outputs = JSON.parse(await run("stack", "output", "--json")) as Record<string, unknown>;
    const { web, twin } = stack.state();
    expect(outputs).toMatchObject({
      machineId: web?.id.split("/")[1],
      status: ["fn-shop", expect.stringMatching(/pending|deployed/)],
      waited: "started",
      sizes: [1],
      halves: ["left", "right"],
      opened: "[secret]",
      secretName: "[secret]",
    });
    expect(outputs["regions"]).toContain("ams");
    const { dependencies } = twin as unknown as { dependencies: string[] };
    expect(dependencies.map((urn) => urn.slice(urn.lastIndexOf("::") + 2)).sort()).toEqual(["shop", "web"]);
  });

  test("the result of getMachine is valid input for a Machine", async () => {
    const { web, twin } = stack.state();
    expect(twin?.inputs["config"]).toEqual(web?.inputs["config"]);
  });

  test("the next preview knows the results of reads, and nothing changes", async () => {
    const before = service.requests.length;
    const output = await run("preview", "--diff");
    const asked = service.requests.slice(before).map(({ operation }) => operation);
    expect([asked.includes("secretKeys.decrypt"), asked.includes("machines.wait")]).toEqual([true, false]);
    expect(output).not.toMatch(/(machineId|sizes|halves) *:/);
    expect(counts(output)).toEqual({ unchanged: 8 });
    expect(counts(await run("up", "--yes", "--skip-preview"))).toEqual({ unchanged: 8 });
  });

  test("the result of decrypt is shown only on request", async () => {
    seen.push(await stack.ok("stack", "export"));
    for (const text of [canary, base64(canary)]) expect(seen.filter((output) => output.includes(text))).toEqual([]);
    expect(await stack.ok("stack", "output", "--show-secrets", "--json")).toContain(base64(canary));
  });

  test("destroy removes only what the program created", async () => {
    await run("destroy", "--yes", "--skip-preview");
    const { apps } = await send<{ apps: { name: string }[] }>(service, "GET", "/v1/apps?org_slug=personal");
    expect(apps.map(({ name }) => name)).toEqual(["vault"]);
  });
});
