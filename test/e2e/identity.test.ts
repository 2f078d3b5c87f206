// `pulumi up` with the real CLI in a workflow without a stored secret.
import { readFileSync } from "node:fs";
import { expect, inject, test } from "vitest";
import { addTrust, type TrustGrant } from "../../service/store/trusts.ts";
import { startActions, startIssuer, type Issuer } from "../support/issuer.ts";
import { bindingsOr, counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";
import { afterThisTest } from "../support/leftovers.ts";

const program = `import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "signed-shop" });
new machines.Machine("web", { app: app.name, region: "ams", config: { image: "registry.example.com/web:1" } });
`;

const trusted = (service: TestService, issuer: Issuer, grant: Pick<TrustGrant, "claims" | "isReusable">) => {
  const { store } = service.service.context;
  const role = "deploy";
  const trust = { slug: "personal", name: "shop", issuer: issuer.url, audience: service.url, role, ...grant } as const;
  return store.write(() => addTrust(store, "trust", trust, Date.now()));
};

test.each(bindingsOr("pulumi-machines"))(
  "%s signs in with the identity of its workflow: up, refresh, destroy, and no token is in the state",
  async (sdk) => {
    const service = await startService();
    afterThisTest(() => service.close());
    const issuer = await startIssuer(Date.now);
    const actions = await startActions(issuer, { sub: "repo:acme/shop", repository: "acme/shop" });
    const { store } = service.service.context;
    await trusted(service, issuer, { claims: { repository: "acme/shop" }, isReusable: false });
    const stack = new Stack(inject("installed"), `signed-${sdk}`, sdk);
    stack.program(program);
    await stack.init({ "machines:endpoint": service.url });
    const run = (...args: string[]) => stack.run([...args, "--yes", "--skip-preview"], { env: actions.env });
    const up = await run("up");
    expect([up.code, counts(up.output)], up.output).toEqual([0, { created: 3 }]);
    const again = await run("up", "--refresh");
    expect([again.code, counts(again.output)], again.output).toEqual([0, { unchanged: 3 }]);
    const { stdout: state } = await stack.run(["stack", "export"]);
    const entries = await service.service.context.history.entries({ limit: 100 });
    expect(entries.some((entry) => entry.kind === "request" && entry.tokenName === "repo:acme/shop")).toBe(true);
    expect(state).not.toMatch(/of-the-runner|eyJ[\w-]{10,}\.eyJ/);
    expect(readFileSync(`${stack.dir}/Pulumi.dev.yaml`, "utf8")).not.toContain("token");
    const down = await run("destroy");
    expect(down.code, down.output).toBe(0);
    expect(store.all("SELECT name FROM apps WHERE deleting < 2")).toEqual([]);
  },
);

// What an environment of Pulumi Cloud gives to a command: `pulumi env` itself works only with Pulumi Cloud.
test("an update signs in with the identity token of an ESC environment, and is named after who opened it", async () => {
  const service = await startService();
  afterThisTest(() => service.close());
  const issuer = await startIssuer(Date.now, afterThisTest, "/oidc/v2");
  const claims = { "https://pulumi.com/org": "acme", "https://pulumi.com/root_env": "machines/production" };
  await trusted(service, issuer, { claims, isReusable: true });
  const stack = new Stack(inject("installed"), "signed-esc", "pulumi-machines-plugin");
  stack.program(program);
  await stack.init({});
  const token = (more: object) =>
    issuer.sign({ aud: service.url, sub: "an environment", ...claims, "https://pulumi.com/actor": "ada", ...more });
  const up = async (more: object = {}) =>
    stack.run(["up", "--yes"], { env: { MACHINES_ENDPOINT: service.url, MACHINES_ID_TOKEN: await token(more) } });
  // The preview and the update sign in by themselves.
  const made = await up();
  expect([made.code, counts(made.output)], made.output).toEqual([0, { created: 3 }]);
  const entries = await service.service.context.history.entries({ limit: 100 });
  const names = entries.flatMap((entry) => (entry.kind === "request" ? [entry.tokenName] : []));
  expect(names).toContain("an environment by ada");
  const other = await up({ "https://pulumi.com/root_env": "machines/other" });
  expect([other.code, other.output]).toEqual([1, expect.stringContaining("no trust")]);
});
