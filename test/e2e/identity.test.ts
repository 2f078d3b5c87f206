// `pulumi up` with the real CLI in a workflow without a stored secret.
import { readFileSync } from "node:fs";
import { expect, inject, test } from "vitest";
import { addTrust } from "../../service/store/trusts.ts";
import { startActions, startIssuer } from "../support/issuer.ts";
import { bindingsOr, counts, Stack } from "../support/stack.ts";
import { startService } from "../support/startService.ts";
import { afterThisTest } from "../support/leftovers.ts";

const program = `import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "signed-shop" });
new machines.Machine("web", { app: app.name, region: "ams", config: { image: "registry.example.com/web:1" } });
`;

test.each(bindingsOr("pulumi-machines"))(
  "%s signs in with the identity of its workflow: up, refresh, destroy, and no token is in the state",
  async (sdk) => {
    const service = await startService();
    afterThisTest(() => service.close());
    const issuer = await startIssuer(Date.now);
    const actions = await startActions(issuer, { sub: "repo:acme/shop", repository: "acme/shop" });
    const { store } = service.service.context;
    const trust = {
      slug: "personal",
      name: "shop",
      issuer: issuer.url,
      audience: service.url,
      role: "deploy",
    } as const;
    const claims = { repository: "acme/shop" };
    await store.write(() => addTrust(store, "trust", { ...trust, claims, isReusable: false }, Date.now()));
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
    expect(state).not.toMatch(/of-the-runner|eyJ[\w-]{20}/);
    expect(readFileSync(`${stack.dir}/Pulumi.dev.yaml`, "utf8")).not.toContain("token");
    const down = await run("destroy");
    expect(down.code, down.output).toBe(0);
    expect(store.all("SELECT name FROM apps WHERE deleting < 2")).toEqual([]);
  },
);
