// A run of CI signs in with the identity token of its workflow, and renews its token in time.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test, vi } from "vitest";
import { identityTokens, type IdentitySource } from "../../provider/client/identity.ts";
import { createClient } from "../../provider/client/index.ts";
import { apiOf } from "../../provider/client/publicClient.ts";
import { httpTransport, type Outcome, type Sent } from "../../provider/client/transport.ts";
import { ManualClock } from "../../service/index.ts";
import { addTrust, type TrustGrant } from "../../service/store/trusts.ts";
import { withApp } from "../service/client.ts";
import { startActions, startIssuer } from "../support/issuer.ts";
import { afterThisTest } from "../support/leftovers.ts";

const workflow = { sub: "repo:acme/shop:ref:refs/heads/main", repository: "acme/shop" };

async function withWorkflow(grant: Partial<TrustGrant> = {}) {
  const serviceClock = new ManualClock();
  const app = await withApp({ clock: serviceClock, delays: "none" });
  const issuer = await startIssuer(() => serviceClock.now());
  const actions = await startActions(issuer, workflow);
  const { store } = app.service.context;
  const usual = {
    slug: "personal",
    name: "shop",
    issuer: issuer.url,
    audience: app.url,
    role: "deploy",
    isReusable: false,
  } as const;
  await store.write(() => addTrust(store, "trust", { ...usual, claims: { repository: "acme/shop" }, ...grant }, 0));
  const slept: number[] = [];
  const real = httpTransport();
  afterThisTest(() => real.close());
  const send = { now: (sent: Sent): Promise<Outcome> => real(sent) };
  const clock = { now: () => serviceClock.now(), sleep: async (ms: number) => void slept.push(ms) };
  const tokens = (source: IdentitySource = "github", env: Readonly<Record<string, string>> = actions.env) =>
    identityTokens({
      ...{ endpoint: app.url, source, env, clock },
      transport: Object.assign((sent: Sent) => send.now(sent), { close: () => real.close() }),
    });
  const use = async (token: string) =>
    (await fetch(`${app.url}/v1/apps/web`, { headers: { authorization: `Bearer ${token}` } })).status;
  return { ...app, ...{ serviceClock, issuer, actions, slept, tokens, use, send, real } };
}

test("a token is shared by all requests, and another one is there before it ends", async () => {
  const { url, serviceClock, actions, tokens, use } = await withWorkflow();
  const current = tokens();
  const [first, same] = await Promise.all([current(), current()]);
  expect([first === same, actions.audiences]).toEqual([true, [url]]);
  serviceClock.advance(10 * 60_000 - 1);
  expect(await current()).toBe(first);
  serviceClock.advance(1);
  const next = await current();
  expect([next === first, await use(first), await use(next)]).toEqual([false, 200, 200]);
  serviceClock.advance(5 * 60_000 + 1000);
  expect([await use(first), await use(next)]).toEqual([401, 200]);
});

test("a variable with an identity token is enough, and a trust may accept it again", async () => {
  const { url, issuer, serviceClock, tokens, use } = await withWorkflow({ isReusable: true });
  const end = Math.floor(serviceClock.now() / 1000) + 3600;
  const current = tokens("variable", { MACHINES_ID_TOKEN: await issuer.sign({ aud: url, ...workflow, exp: end }) });
  const first = await current();
  serviceClock.advance(11 * 60_000);
  const next = await current();
  expect([next === first, await use(next)]).toEqual([false, 200]);
});

test("the token of a variable is shown only to the service that it names", async () => {
  const { issuer, url, tokens } = await withWorkflow();
  const elsewhere = await issuer.sign({ aud: "https://machines.example.com", ...workflow });
  for (const [token, why] of [
    [elsewhere, `its audience must be ${url}`],
    ["nonsense", "it must be a JWT"],
  ] as const)
    await expect(tokens("variable", { MACHINES_ID_TOKEN: token })()).rejects.toThrow(why);
});

test("while no other token can be had, the one before is used until a minute before its end", async () => {
  const { serviceClock, tokens, send, real, use } = await withWorkflow();
  const current = tokens();
  const first = await current();
  send.now = () => Promise.resolve({ kind: "lost", cause: new Error("lost"), lasting: false, proxied: false });
  serviceClock.advance(12 * 60_000);
  expect(await current()).toBe(first);
  serviceClock.advance(2 * 60_000);
  await expect(current()).rejects.toThrow("cannot sign in");
  send.now = (sent) => real(sent);
  expect(await use(await current())).toBe(200);
});

test("a refusal says why and is not repeated, and no message has the token", async () => {
  const { issuer, url, tokens, slept } = await withWorkflow();
  const other = await issuer.sign({ aud: url, sub: "repo:acme/other", repository: "acme/other" });
  const error = await tokens("variable", { MACHINES_ID_TOKEN: other })().catch((error: unknown) => error);
  expect(String(error)).toContain(
    `${url} refuses the identity token of this workflow: no trust accepts this identity token: sub "repo:acme/other"`,
  );
  expect([String(error).includes(other), slept]).toEqual([false, []]);
  const { actions } = await withWorkflow();
  const refused = tokens("github", { ...actions.env, ACTIONS_ID_TOKEN_REQUEST_TOKEN: "another" });
  await expect(refused()).rejects.toThrow("GitHub Actions gave no identity token: it answered 401");
});

test("what fails on the way is tried again with another identity token, and then the run ends with the reason", async () => {
  const { tokens, actions, slept, use, send, real } = await withWorkflow();
  const lost = { kind: "lost", cause: new Error("the line broke"), lasting: false, proxied: false } as const;
  let failures = 2;
  send.now = async (sent) => {
    const answer = await real(sent);
    // The service has exchanged it, and the answer is lost.
    return sent.url.endsWith("/exchange") && failures-- > 0 ? lost : answer;
  };
  const current = tokens();
  expect(await use(await current())).toBe(200);
  expect([slept, actions.audiences.length]).toEqual([[1000, 3000], 3]);
  send.now = () => Promise.resolve(lost);
  await expect(tokens()()).rejects.toThrow(/cannot sign in at http.* with its identity token: the line broke/);
});

test("a client without a token signs in by itself in a workflow", async () => {
  const { url, actions } = await withWorkflow();
  for (const [name, value] of Object.entries(actions.env)) vi.stubEnv(name, value);
  afterThisTest(() => void vi.unstubAllEnvs());
  const client = createClient({ endpoint: url });
  expect(await client.apps.get({ appName: "web" })).toMatchObject({ name: "web" });
  vi.stubEnv("MACHINES_IDENTITY", "off");
  expect(() => createClient({ endpoint: url })).toThrow("no access token");
});

/** A client that signs in by the variables of GitHub Actions. */
function clientOf(url: string, env: Readonly<Record<string, string>>) {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  afterThisTest(() => void vi.unstubAllEnvs());
  return createClient({ endpoint: url });
}

test("a token that the service no longer knows is replaced, and no request is doubled or lost", async () => {
  const { url, actions, service, serviceClock, call } = await withWorkflow();
  const client = clientOf(url, actions.env);
  await client.apps.get({ appName: "web" });
  const { store } = service.context;
  await store.write(() => store.run("DELETE FROM tokens WHERE trust IS NOT NULL"));
  // The service looks a token up again after a second.
  serviceClock.advance(1000);
  const [made] = await Promise.all([
    client.machines.create({ appName: "web", body: { config: { image: "nginx" } } }),
    client.apps.get({ appName: "web" }),
    client.apps.get({ appName: "web" }),
  ]);
  expect((await call("GET", "/apps/web/machines")).body).toMatchObject([{ id: made.id }]);
  // One for all of them.
  expect(actions.audiences).toEqual([url, url]);
  await store.write(() => store.run("DELETE FROM trusts"));
  serviceClock.advance(1000);
  await expect(client.apps.get({ appName: "web" })).rejects.toThrow(/refuses the identity token of this workflow/);
});

test("a sign-in without an answer ends with the time limit of the request", async () => {
  const { url, actions } = await withWorkflow();
  const silent = createServer(() => {});
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  afterThisTest(() => (silent.closeAllConnections(), void silent.close()));
  const to = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/?api-version=2.0`;
  const client = clientOf(url, { ...actions.env, ACTIONS_ID_TOKEN_REQUEST_URL: to });
  const limited = apiOf(client).within({ at: Date.now() + 100, allowed: "100ms" });
  await expect(limited.apps.get({ appName: "web" })).rejects.toThrow(
    `the time limit of 100ms ended before this workflow was signed in at ${url}. The next up continues from here.`,
  );
});
