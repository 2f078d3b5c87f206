// The configuration of a stack: misspelt keys, and a token or endpoint that changed since the last `up`.
import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { addToken, revokeTokens } from "../../service/store/tokens.ts";
import { send } from "../support/around.ts";
import { startFaultProxy } from "../support/faultProxy.ts";
import { bindings, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

describe.each(bindings)("the configuration of a stack of %s", (binding) => {
  let service: TestService;
  let stack: Stack;

  beforeEach(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "configured", binding);
    stack.program('import * as machines from "pulumi-machines";\nnew machines.App("shop");\n');
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
  });
  afterEach(() => service.close());

  const hint = /the last `pulumi up` stored.*run `pulumi up` first, or add --run-program/;
  const isPlugin = binding === "pulumi-machines-plugin";

  test("a misspelt key fails, and the message names the nearest one", async () => {
    await stack.set({ "machines:organisation": "team" });
    expect(await stack.fails("preview")).toMatch(
      /machines:organisation: there is no such configuration; did you mean machines:organization\?/,
    );
  });

  // In process for both: test/core/connection.test.ts.
  test("a preview without changes fails with an unknown organization, one of others, and a wrong token", async () => {
    stack.program('import * as machines from "pulumi-machines";\nnew machines.App("same");\n');
    await stack.up();
    const { store, clock } = service.service.context;
    const others = addToken(store, "token-of-others", { slug: "others", expiresAt: null }, clock.now());
    await stack.set({ "machines:organization": "nosuch" });
    expect(await stack.fails("preview")).toContain('machines:organization: there is no organization "nosuch"');
    await stack.set({ "machines:organization": "others" });
    expect(await stack.fails("preview")).toMatch(
      /machines:organization: the token from machines:token cannot use the org/,
    );
    await stack.ok("config", "rm", "machines:organization");
    await stack.set({ "machines:token": "no-such-token" });
    expect(await stack.fails("preview")).toMatch(/answered 401/);
    await stack.set({ "machines:token": service.token });
    expect(await stack.ok("preview")).toContain("2 unchanged");
    revokeTokens(store, others);
  });

  // The engine does not tell the plugin which values are secret.
  test.runIf(!isPlugin)("a token in plain text is one warning, and a secret one is none", async () => {
    stack.program('import * as machines from "pulumi-machines";\nnew machines.App("a");\nnew machines.App("b");\n');
    const warnings = async () => (await stack.ok("preview")).split("Diagnostics:")[1]?.match(/in plain text/g)?.length;
    expect(await warnings()).toBeUndefined();
    await stack.ok("config", "set", "--plaintext", "machines:token", service.token);
    expect(await warnings()).toBe(1);
  });

  // The plugin reads both again, and the other binding takes both from the state: one of them on each.
  test("a rotated token is used by refresh and destroy, or the message says how", async () => {
    const { store, clock } = service.service.context;
    const grant = { slug: "personal", expiresAt: null };
    const rotated = addToken(store, "first-token", grant, clock.now());
    await stack.set({ "machines:token": "first-token" });
    await stack.up();
    revokeTokens(store, rotated);
    await expect
      .poll(
        async () =>
          (
            await fetch(`${service.url}/v1/apps?org_slug=personal`, {
              headers: { authorization: "Bearer first-token" },
            })
          ).status,
      )
      .toBe(401);
    await stack.set({ "machines:token": service.token });
    if (isPlugin) await stack.refresh();
    else {
      expect(await stack.fails("refresh", "--yes", "--skip-preview")).toMatch(hint);
      expect(await stack.fails("destroy", "--yes", "--skip-preview")).toMatch(hint);
      await stack.ok("refresh", "--yes", "--skip-preview", "--run-program");
    }
    await stack.ok("destroy", "--yes", "--skip-preview", ...(isPlugin ? [] : ["--run-program"]));
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
  });

  test("so is a corrected endpoint", async () => {
    const former = await startFaultProxy(service.url);
    await stack.set({ "machines:endpoint": former.url, "machines:retries": "0" });
    await stack.up();
    await former.close();
    await stack.set({ "machines:endpoint": service.url });
    if (isPlugin) await stack.refresh();
    else {
      expect(await stack.fails("refresh", "--yes", "--skip-preview")).toMatch(hint);
      await stack.up();
    }
    await stack.destroy();
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
  });
});
