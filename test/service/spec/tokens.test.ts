// A token shows itself (the platform's published description, CurrentTokenResponse).
import { expect, test } from "vitest";
import { ManualClock } from "../../../service/index.ts";
import { ensureOrg, listTokens } from "../../../service/store/tokens.ts";
import { caller, callerWith, withApp, type Call } from "../client.ts";

const current = async (call: Call) => {
  const { status, body } = await call("GET", "/tokens/current");
  expect(status).toBe(200);
  return body;
};

test("a token of an organization shows its slug and name, and no Apps", async () => {
  const app = await withApp();
  const { store } = app.service.context;
  await store.write(() => ensureOrg(store, "acme", "The Acme Company"));
  const acme = callerWith(app, "acme-token", { slug: "acme" });
  expect(await current(app.call)).toEqual({
    tokens: [{ token_id: expect.stringMatching(/^[0-9a-f]{12}$/), org_slug: "personal", organization: "Personal" }],
  });
  expect(await current(acme)).toEqual({
    tokens: [{ token_id: expect.any(String), org_slug: "acme", organization: "The Acme Company" }],
  });
});

test("a deploy token shows only its App, which no other request reveals", async () => {
  const { call, url } = await withApp();
  await call("POST", "/apps", { name: "other", org_slug: "personal" });
  const { token } = (await call("POST", "/apps/web/deploy_token", {})).body;
  const deploy = caller(url, token);
  expect(await current(deploy)).toEqual({
    tokens: [{ token_id: expect.any(String), org_slug: "personal", organization: "Personal", apps: ["web"] }],
  });
  expect((await deploy("GET", "/apps?org_slug=personal")).status).toBe(403);
});

test("a read-only token gets the same answer, for an organization or one App", async () => {
  const app = await withApp();
  const { id } = (await app.call("GET", "/apps/web")).body;
  expect(await current(callerWith(app, "reader", { role: "read" }))).toMatchObject({
    tokens: [{ org_slug: "personal" }],
  });
  expect(await current(callerWith(app, "narrow", { role: "read", apps: [id] }))).toMatchObject({
    tokens: [{ org_slug: "personal", apps: ["web"] }],
  });
});

test("the id is the one in the list, and the token itself is never shown", async () => {
  const app = await withApp();
  const { store, clock } = app.service.context;
  const named = callerWith(app, "canary-token", { name: "for the canary" });
  const answer = await named("GET", "/tokens/current");
  const listed = listTokens(store, clock.now()).find(({ name }) => name === "for the canary");
  expect(answer.body.tokens[0].token_id).toBe(listed?.id);
  expect(answer.text).not.toContain("canary");
  expect((await app.call("GET", "/tokens/current")).text).not.toContain(app.token);
});

test("without a token, or with an unknown or expired one, it is 401", async () => {
  const app = await withApp({ clock: new ManualClock() });
  const brief = callerWith(app, "brief", { expiresAt: app.service.context.clock.now() + 60_000 });
  await current(brief);
  app.clock.advance(60_000);
  for (const call of [brief, caller(app.url, "nobody"), caller(app.url, "")]) {
    const { status, body } = await call("GET", "/tokens/current");
    expect([status, body]).toEqual([401, { error: "Authenticate: token validation error" }]);
  }
});

test("a deploy token is refused once its App is gone", async () => {
  const { call, url, clock } = await withApp({ clock: new ManualClock() });
  const { token } = (await call("POST", "/apps/web/deploy_token", {})).body;
  const deploy = caller(url, token);
  await current(deploy);
  await call("DELETE", "/apps/web?force=true");
  clock.advance(5000);
  expect((await deploy("GET", "/tokens/current")).status).toBe(401);
});
