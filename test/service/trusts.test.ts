// Identity tokens of workflows are exchanged for tokens of the service, if a trust accepts them, and nothing else is.
import { createHmac } from "node:crypto";
import { expect, test, vi } from "vitest";
import { ManualClock } from "../../service/index.ts";
import { idOf, rotateToken } from "../../service/store/tokens.ts";
import { addTrust, removeTrust, type TrustGrant } from "../../service/store/trusts.ts";
import { startIssuer } from "../support/issuer.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { withApp } from "./client.ts";
import { command, folder, foreground } from "./command.ts";

const audience = "https://machines.example.com";
const workflow = { sub: "repo:acme/shop:ref:refs/heads/main", repository: "acme/shop", ref: "refs/heads/main" };

async function withTrust(more: Partial<TrustGrant> = {}) {
  const clock = new ManualClock();
  const app = await withApp({ clock, delays: "none" });
  const issuer = await startIssuer(() => clock.now());
  const { store } = app.service.context;
  let number = 0;
  const trust = async (grant: Partial<TrustGrant> = {}): Promise<string> => {
    const id = `trust-${++number}`;
    const usual = {
      slug: "personal",
      name: "shop",
      issuer: issuer.url,
      audience,
      role: "deploy",
      isReusable: false,
    } as const;
    await store.write(() =>
      addTrust(store, id, { ...usual, claims: { repository: "acme/shop" }, ...grant }, clock.now()),
    );
    return id;
  };
  await trust(more);
  const exchange = async (identity_token: unknown) => {
    const init = {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ identity_token }),
    };
    const answer = await fetch(`${app.url}/local/tokens/exchange`, init);
    const body = (await answer.json()) as any; // oxlint-disable-line typescript/no-explicit-any -- like answers
    return { status: answer.status, body };
  };
  const signed = (claims: object = {}, header: object = {}) =>
    issuer.sign({ aud: audience, ...workflow, ...claims }, header);
  const use = async (token: string, method: string, path: string, body?: object): Promise<number> => {
    const headers = { authorization: `Bearer ${token}`, ...(body ? { "content-type": "application/json" } : {}) };
    return (await fetch(`${app.url}/v1${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) }))
      .status;
  };
  return { ...app, clock, issuer, store, trust, exchange, signed, use };
}

test("an identity token that a trust accepts gives a token of 15 minutes with its rights, and its name is in the records", async () => {
  const { service, clock, exchange, signed, use, call } = await withTrust();
  const { status, body } = await exchange(await signed({ actor: "ada" }));
  const expires_at = new Date(clock.now() + 15 * 60_000).toISOString().replace(".000Z", "Z");
  expect([status, body]).toEqual([
    201,
    { token: expect.any(String), token_id: expect.any(String), organization: "personal", role: "deploy", expires_at },
  ]);
  expect(await use(body.token, "POST", "/apps/web/secrets/KEY", { value: "canary" })).toBe(201);
  expect(await use(body.token, "GET", "/apps/web/secrets/KEY?show_secrets=true")).toBe(403);
  const name = "repo:acme/shop:ref:refs/heads/main by ada";
  await expect
    .poll(async () => (await service.context.history.entries({ org: "personal", limit: 100 })).slice(-3))
    .toMatchObject([
      { operation: "tokens.exchange", status: 201, tokenName: name, about: `token ${body.token_id}` },
      { kind: "request", operation: "secrets.set", status: 201, tokenName: name },
      { kind: "request", operation: "secrets.get", status: 403, tokenName: name },
    ]);
  clock.advance(15 * 60_000);
  expect(await use(body.token, "GET", "/apps/web")).toBe(401);
  expect((await call("GET", "/apps/web")).status).toBe(200);
});

test("tokens are given for Apps and networks, and end with their trust", async () => {
  const { store, clock, call, trust, exchange, signed, use } = await withTrust({
    claims: { repository: "acme/other" },
  });
  await call("POST", "/apps", { name: "shop", org_slug: "personal" });
  const { id: app = "" } = store.get<{ id: string }>("SELECT id FROM apps WHERE name = 'shop'") ?? {};
  const id = await trust({ apps: [app] });
  const { body } = await exchange(await signed());
  expect([await use(body.token, "GET", "/apps/shop"), await use(body.token, "GET", "/apps/web")]).toEqual([200, 403]);
  // No other token may have its rights after its end.
  const rotated = { token: "rotated", oldEnds: clock.now(), now: clock.now() };
  expect(await store.write(() => rotateToken(store, body.token_id, rotated))).toBeUndefined();
  await store.write(() => removeTrust(store, id));
  clock.advance(1000);
  expect(await use(body.token, "GET", "/apps/shop")).toBe(401);
  expect((await exchange(await signed())).status).toBe(401);
  await trust({ apps: [app] });
  expect((await exchange(await signed())).status).toBe(201);
  await call("DELETE", "/apps/shop?force=true");
  clock.advance(1000);
  // A trust ends with its last App.
  expect((await exchange(await signed())).status).toBe(401);
});

test("a deploy token that a workflow has created ends with its trust, and the history has its id", async () => {
  const { store, service, url, clock, trust, exchange, signed, use } = await withTrust();
  const id = await trust({ role: "own" });
  const { body } = await exchange(await signed());
  const headers = { authorization: `Bearer ${body.token}` };
  const answer = await fetch(`${url}/v1/apps/web/deploy_token`, { method: "POST", headers, body: "{}" });
  const { token } = (await answer.json()) as { token: string };
  expect(await use(token, "GET", "/apps/web")).toBe(200);
  await expect
    .poll(async () => (await service.context.history.entries({ org: "personal", limit: 100 })).at(-1))
    .toMatchObject({ operation: "apps.createDeployToken", status: 200, about: `token ${idOf(token)}` });
  await store.write(() => removeTrust(store, id));
  clock.advance(1000);
  expect([await use(body.token, "GET", "/apps/web"), await use(token, "GET", "/apps/web")]).toEqual([401, 401]);
});

test("of several trusts, the one that asks for the most gives its role", async () => {
  const { trust, exchange, signed } = await withTrust({ role: "read" });
  await trust({ claims: { repository: "acme/shop", ref: "refs/heads/main" }, role: "deploy" });
  await trust({ claims: { repository: "acme/shop", ref: "refs/heads/main" }, role: "operate" });
  const roleFor = async (ref: string) => (await exchange(await signed({ ref }))).body.role;
  expect([await roleFor("refs/heads/main"), await roleFor("refs/heads/topic")]).toEqual(["deploy", "read"]);
});

test("an identity token is exchanged once, unless its trust says otherwise", async () => {
  const { trust, exchange, signed } = await withTrust();
  const token = await signed();
  const both = await Promise.all([exchange(token), exchange(token)]);
  expect(both.map(({ status }) => status).sort()).toEqual([201, 401]);
  expect((await exchange(token)).body.error).toContain("was exchanged before");
  const same = { iat: 1_700_000_000, jti: undefined };
  const [one, other] = [await signed(same), await signed({ ...same, sub: "other" })];
  expect([one, other].every((text) => text !== token)).toBe(true);
  await trust({ claims: { project_path: "acme/shop" }, isReusable: true });
  const ofJob = await signed({ repository: undefined, project_path: "acme/shop", sub: "project_path:acme/shop" });
  expect([(await exchange(ofJob)).status, (await exchange(ofJob)).status]).toEqual([201, 201]);
});

test("what is no identity token of a trusted workflow gets nothing, and learns nothing of others", async () => {
  const { clock, issuer, exchange, signed } = await withTrust({
    claims: { repository: "acme/shop", ref: "refs/heads/main" },
  });
  const seconds = Math.floor(clock.now() / 1000);
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = { iss: issuer.url, aud: audience, ...workflow, iat: seconds, exp: seconds + 300 };
  const [header = "", payload = "", signature = ""] = (await signed()).split(".");
  const forged = `${part({ alg: "HS256", kid: "key-1" })}.${part(claims)}`;
  const keys = JSON.stringify(await (await fetch(`${issuer.url}/keys`)).json());
  const stranger = await startIssuer(() => clock.now());
  const refused: readonly (readonly [string, unknown, string])[] = [
    ["no token", "nonsense", "is not one"],
    ["no signature", `${part({ alg: "none" })}.${part(claims)}.`, "is not valid"],
    [
      "a public key as a secret",
      `${forged}.${createHmac("sha256", keys).update(forged).digest("base64url")}`,
      "is not valid",
    ],
    ["other claims below a signature", `${header}.${part({ ...claims, sub: "x" })}.${signature}`, "was not signed by"],
    ["another key of the same name", await stranger.sign({ ...claims }, { kid: "key-1" }), "was not signed by"],
    ["a key that is not known", await signed({}, { kid: "key-9" }), "was not signed by"],
    ["another issuer", await stranger.sign({ aud: audience, ...workflow }), "no trust accepts identity tokens of"],
    ["another service", await signed({ aud: "https://other.example.com" }), 'unexpected "aud"'],
    ["no audience", await signed({ aud: undefined }), '"aud"'],
    ["expired", await signed({ iat: seconds - 700, exp: seconds - 400 }), "has expired"],
    ["without an end", await signed({ exp: undefined }), '"exp"'],
    ["not valid yet", await signed({ nbf: seconds + 400 }), '"nbf"'],
    ["issued later", await signed({ iat: seconds + 400, exp: seconds + 700 }), '"iat"'],
    ["issued long ago", await signed({ iat: seconds - 90_000, exp: seconds + 300 }), "has expired"],
    ["another repository", await signed({ repository: "acme/shop2" }), 'repository "acme/shop2"'],
    ["a repository in other letters", await signed({ repository: "Acme/Shop" }), "no trust accepts"],
    ["another branch", await signed({ ref: "refs/heads/topic" }), 'ref "refs/heads/topic"'],
    ["a list of branches", await signed({ ref: ["refs/heads/main"] }), "no trust accepts"],
    ["no branch", await signed({ ref: undefined }), "no trust accepts"],
  ];
  const before = stranger.asked.length;
  for (const [what, token, why] of refused) {
    const { status, body } = await exchange(token);
    expect([what, status, Object.keys(body)]).toEqual([what, 401, ["error"]]);
    expect(body.error, what).toContain(why);
    expect([payload, signature].some((secret) => body.error.includes(secret))).toBe(false);
  }
  // The keys of an issuer that no trust names are never read.
  expect(stranger.asked.length).toBe(before);
  for (const body of [undefined, "", 1, { a: 1 }, "x".repeat(17_000)]) {
    const { status, body: answer } = await exchange(body);
    expect([status, answer.error]).toEqual([400, expect.stringContaining("invalid body")]);
  }
  expect((await exchange(await signed())).status).toBe(201);
});

test("an issuer that describes another one, or keys without TLS, is not believed", async () => {
  for (const described of [
    { issuer: "https://other.example.com" },
    { jwks_uri: "http://192.0.2.1/keys" },
    { jwks_uri: 1 },
  ]) {
    const { issuer, exchange, signed } = await withTrust();
    Object.assign(issuer.described, described);
    const { status, body } = await exchange(await signed());
    expect([status, body.error]).toEqual([503, `the keys of ${issuer.url} cannot be read; try again`]);
    for (const name of Object.keys(described)) delete issuer.described[name];
    expect((await exchange(await signed())).status).toBe(201);
  }
});

test("when an issuer has a new key, tokens that it signed are accepted, and those of the old one no longer", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  afterThisTest(() => void vi.useRealTimers());
  const { issuer, exchange, signed } = await withTrust();
  expect((await exchange(await signed())).status).toBe(201);
  const old = await signed();
  await issuer.rotate();
  // Unknown keys are looked for at most every half minute, so that strangers cannot make the service ask all the time.
  vi.setSystemTime(Date.now() + 31_000);
  expect((await exchange(await signed())).status).toBe(201);
  expect((await exchange(old)).body.error).toContain("was not signed by");
});

test("trusts are added, listed and removed by a command, which refuses one that would trust everyone", async () => {
  const data = folder();
  await foreground(data);
  const trust = (...args: string[]) => command(["trust", ...args, "--data", data]);
  const github = ["add", "--issuer", "github"];
  expect((await trust(...github, "--branch", "main")).err).toContain("--branch needs --repository or --project");
  expect((await trust(...github)).err).toContain("otherwise everyone at the issuer is trusted");
  expect((await trust(...github, "--claim", "environment=prod")).err).toContain("otherwise everyone");
  expect((await trust("add", "--issuer", "http://example.com", "--claim", "sub=x")).err).toContain("https://");
  expect((await trust(...github, "--claim", "sub")).err).toContain("NAME=VALUE");
  expect((await trust(...github, "--repository", "a/b", "--project", "a/b")).err).toContain("not both");
  expect((await trust(...github, "--repository", "a/b", "--claim", "repository=c/d")).err).toContain("given twice");
  // Every computer has a service at a loopback address.
  expect((await trust(...github, "--repository", "a/b")).err).toContain("machines:endpoint with --audience");
  github.push("--audience", audience);
  const of = ["--repository", "acme/shop", "--branch", "main", "--environment", "prod"];
  const made = await trust(...github, ...of, "--json");
  const { id, ...added } = JSON.parse(made.out);
  const claims = { repository: "acme/shop", ref: "refs/heads/main", ref_type: "branch", environment: "prod" };
  expect(added).toEqual({
    issuer: "https://token.actions.githubusercontent.com",
    audience,
    claims,
    role: "deploy",
  });
  const gitlab = [
    "add",
    "--issuer",
    "gitlab",
    "--project",
    "acme/shop",
    "--branch",
    "main",
    "--reusable",
    "--role",
    "own",
  ];
  expect((await trust(...gitlab, "--audience", `${audience}/v1`)).out).toContain(
    `identity tokens of https://gitlab.com for ${audience} with project_path=acme/shop ref=main ref_type=branch get the role own`,
  );
  const esc = ["--claim", "https://pulumi.com/org=acme", "--claim", "https://pulumi.com/root_env=machines/production"];
  const ofEnvironment = await trust("add", "--issuer", "pulumi", ...esc, "--audience", audience, "--reusable");
  expect(ofEnvironment.out).toContain("of https://api.pulumi.com/oidc/v2 for");
  expect(JSON.parse((await trust("list", "--json")).out)).toMatchObject([
    { id, name: "acme/shop", org: "personal", apps: null, claims, is_reusable: false, used_at: null },
    { issuer: "https://gitlab.com", is_reusable: true, role: "own" },
    {
      name: "machines/production",
      claims: { "https://pulumi.com/org": "acme", "https://pulumi.com/root_env": "machines/production" },
    },
  ]);
  expect((await trust("list")).out).toMatch(/^ID +NAME +ORG +FOR +ROLE +ISSUER +AUDIENCE +CLAIMS +LAST USE\n/);
  expect((await trust("remove", id)).out).toBe(`trust ${id} is removed, and the tokens that it gave are revoked\n`);
  expect((await trust("remove", id)).err).toContain(`there is no trust ${id}`);
});
