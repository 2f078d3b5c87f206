// token and org: managing access to the service.
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { createService, startLocal } from "../../service/index.ts";
import { addToken, revokeTokens, Tokens } from "../../service/store/tokens.ts";
import { caller } from "./client.ts";
import { command, folder } from "./command.ts";
import { thoroughTest } from "../support/thorough.ts";

async function service() {
  const data = folder();
  const { url, token } = await startLocal({ data, delays: "none" });
  const call = caller(url, token);
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  await call("POST", "/apps", { name: "shop", org_slug: "personal" });
  const run = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await command([...args, "--data", data]);
    if (code !== 0) throw new Error(err);
    return out.trim();
  };
  const status = async (as: string, method: string, path: string, body?: object): Promise<number> =>
    (await caller(url, as)(method, path, body)).status;
  return { data, url, token, run, status };
}

test("a token is created, listed without its value, and refused once it is revoked", async () => {
  const { token, run, status } = await service();
  expect(await run("token")).toBe(token);
  const made = JSON.parse(await run("token", "create", "--name", "ci", "--role", "read", "--expires", "1h", "--json"));
  expect(await status(made.token, "GET", "/apps/web")).toBe(200);
  expect(await status(made.token, "DELETE", "/apps/web")).toBe(403);
  const text = await run("token", "list", "--json");
  expect(text).not.toContain(made.token);
  expect(text).not.toContain(token);
  const [first, ci, ...more] = JSON.parse(text);
  expect(more).toEqual([]);
  expect(first).toMatchObject({ name: "first", org: "personal", apps: null, role: "own", expires_at: null });
  expect(ci).toEqual({
    id: made.id,
    name: "ci",
    org: "personal",
    ...{ apps: null, network: null, role: "read", trust: null, used_at: null },
    created_at: expect.stringMatching(/Z$/),
    expires_at: expect.stringMatching(/Z$/),
  });
  expect(Date.parse(ci.expires_at) - Date.parse(ci.created_at)).toBe(3600_000);
  const table = (await run("token", "list")).split("\n");
  expect(table[0]).toMatch(/^ID +NAME +ORG +FOR +ROLE +CREATED +EXPIRES +LAST USE$/);
  expect(table[2]).toContain(`${made.id}  ci     personal  all  read  ${ci.created_at}  ${ci.expires_at}  never`);

  expect(await run("token", "revoke", made.id)).toBe(`token ${made.id} is revoked`);
  await expect.poll(() => status(made.token, "GET", "/apps/web")).toBe(401);
  await expect(run("token", "revoke", made.id)).rejects.toThrow(`there is no token ${made.id}`);
  expect(await status(token, "GET", "/apps/web")).toBe(200);
});

test("a cached token is at most a second old", () => {
  const { context, close } = createService();
  const { store } = context;
  const id = addToken(store, "short", { slug: "personal", expiresAt: null }, 0);
  const tokens = new Tokens(store);
  expect(tokens.find("short", 10_000)).toBeDefined();
  expect(revokeTokens(store, id)).toBe(1);
  expect([tokens.find("short", 10_999) !== undefined, tokens.find("short", 11_000)]).toEqual([true, undefined]);
  return close();
});

test("a script gets the token alone, and its user the ID to revoke it by", async () => {
  const { data, run } = await service();
  const { out, err } = await command(["token", "create", "--data", data]);
  expect(out).toMatch(/^\S+\n$/);
  const [, id = ""] = /^Its ID is (\S+)\./.exec(err) ?? [];
  expect(err).toBe(`Its ID is ${id}. To revoke it: npx machines-service token revoke ${id} --data ${data}\n`);
  expect(await run("token", "revoke", id)).toBe(`token ${id} is revoked`);
});

test("a token of one App is valid only for that App, an expired one for nothing", async () => {
  const { run, status } = await service();
  const ofApp = await run("token", "create", "--app", "web");
  expect([await status(ofApp, "GET", "/apps/web"), await status(ofApp, "GET", "/apps/shop")]).toEqual([200, 403]);
  expect(JSON.parse(await run("token", "list", "--json"))[1]).toMatchObject({
    apps: ["web"],
    role: "deploy",
    org: "personal",
  });
  await expect(run("token", "create", "--app", "none")).rejects.toThrow("there is no app none");
  const brief = await run("token", "create", "--expires", "1ms");
  expect(await status(brief, "GET", "/apps/web")).toBe(401);
  expect(await run("token", "list")).not.toContain("1ms");
});

test("a token of several Apps or of a network is valid for those alone, and ends with the last App", async () => {
  const { run, status, token } = await service();
  await status(token, "POST", "/apps", { name: "mail", org_slug: "personal", network: "inner" });
  const both = await run("token", "create", "--app", "web", "--app", "shop");
  const seenBy = async (as: string) =>
    Promise.all(["web", "shop", "mail"].map((name) => status(as, "GET", `/apps/${name}`)));
  expect(await seenBy(both)).toEqual([200, 200, 403]);
  const inner = await run("token", "create", "--network", "inner", "--name", "inner");
  expect(await seenBy(inner)).toEqual([403, 403, 200]);
  expect(JSON.parse(await run("token", "list", "--json"))).toMatchObject([
    { apps: null, network: null, role: "own" },
    { apps: ["shop", "web"], network: null, role: "deploy" },
    { apps: null, network: "inner", role: "deploy" },
  ]);
  expect(await run("token", "list")).toMatch(/personal  shop, web      deploy[^]*personal  network inner  deploy/);
  // It may create Apps in its network, and use them at once.
  const made = { org_slug: "personal", idempotency_key: "once" };
  expect(await status(inner, "POST", "/apps", { ...made, name: "post", network: "inner" })).toBe(201);
  expect(await status(inner, "GET", "/apps/post")).toBe(200);
  expect(await status(inner, "POST", "/apps", { ...made, name: "other", network: "outer" })).toBe(403);
  expect(await status(both, "POST", "/apps", { ...made, name: "other", network: "inner" })).toBe(403);
  expect(await status(token, "POST", "/apps", { org_slug: "personal", name: "key", idempotency_key: "key" })).toBe(201);
  const again = { org_slug: "personal", name: "key", idempotency_key: "key", network: "inner" };
  expect(await status(inner, "POST", "/apps", again)).toBe(403);

  await status(token, "DELETE", "/apps/web?force=true");
  await expect.poll(() => seenBy(both)).toEqual([404, 200, 403]);
  await status(token, "DELETE", "/apps/shop?force=true");
  await expect.poll(() => status(both, "GET", "/tokens/current")).toBe(401);
  await expect(run("token", "create", "--app", "mail", "--network", "inner")).rejects.toThrow(
    "give --app or --network, not both",
  );
});

test("an App's token with the role own reads its secret values, and one that deploys does not", async () => {
  const { run, status, token } = await service();
  await status(token, "POST", "/apps/web/secrets/KEY", { value: "canary" });
  const [own, deploy, operate] = await Promise.all(
    ["own", "deploy", "operate"].map((role) => run("token", "create", "--app", "web", "--role", role)),
  );
  const sees = (as = "") => status(as, "GET", "/apps/web/secrets/KEY?show_secrets=true");
  expect([await sees(own), await sees(deploy), await sees(operate)]).toEqual([200, 403, 403]);
  expect(await status(operate ?? "", "POST", "/apps/web/secrets/KEY", { value: "other" })).toBe(403);
  await expect(run("token", "create", "--role", "admin")).rejects.toThrow(
    "Allowed choices are read, operate, deploy, own",
  );
});

test("a token is rotated without a gap: the new one has its rights, and the old one ends later", async () => {
  const { run, status } = await service();
  const made = JSON.parse(
    await run(...["token", "create", "--app", "web", "--role", "operate", "--expires", "1h", "--name", "ci", "--json"]),
  );
  const next = JSON.parse(await run("token", "rotate", made.id, "--keep", "30m", "--json"));
  for (const { token } of [made, next]) expect(await status(token, "GET", "/apps/web")).toBe(200);
  const [, old, new_] = JSON.parse(await run("token", "list", "--json"));
  const { id: _, created_at: _at, expires_at, used_at: _used, ...rights } = new_;
  expect(old).toMatchObject({ ...rights, id: made.id });
  expect(Date.parse(expires_at) - Date.parse(old.expires_at)).toBeGreaterThan(29 * 60_000);
  expect(await status(next.token, "DELETE", "/apps/web")).toBe(403);
  expect(JSON.parse(await run("token", "rotate", next.id, "--keep", "1ms", "--json")).id).not.toBe(next.id);
  await expect.poll(() => status(next.token, "GET", "/apps/web")).toBe(401);
  await expect(run("token", "rotate", next.id)).rejects.toThrow(`there is no token ${next.id} to rotate`);
  await expect(run("token", "rotate", "none")).rejects.toThrow("there is no token none");
});

test("the first token is rotated with its file, and only a whole ID names a token", async () => {
  const { token, run, status } = await service();
  const [{ id }] = JSON.parse(await run("token", "list", "--json"));
  await expect(run("token", "rotate", id.slice(0, 6))).rejects.toThrow("there is no token");
  const next = JSON.parse(await run("token", "rotate", id, "--json"));
  expect([await run("token"), await status(next.token, "GET", "/apps/web")]).toEqual([next.token, 200]);
  expect(await status(token, "GET", "/apps/web")).toBe(200);
});

test("when a token was last used is stored at the latest when the service ends", async () => {
  const data = folder();
  const running = createService({ data, delays: "none" });
  const { out } = await command(["token", "create", "--name", "used", "--data", data]);
  await command(["token", "create", "--name", "unused", "--data", data]);
  for (const token of [out.trim(), running.token])
    await running.app.inject({
      method: "GET",
      url: "/v1/tokens/current",
      headers: { authorization: `Bearer ${token}` },
    });
  await running.close();
  const listed = JSON.parse((await command(["token", "list", "--json", "--data", data])).out);
  expect(listed.map(({ name, used_at }: { name: string; used_at: string | null }) => [name, used_at !== null])).toEqual(
    [
      ["first", true],
      ["used", true],
      ["unused", false],
    ],
  );
});

thoroughTest("organizations are created by name; each has its own Apps", async () => {
  const { data, run, status } = await service();
  await expect(run("token", "create", "--org", "team")).rejects.toThrow(
    `create it with \`npx machines-service org create team --data ${data}\``,
  );
  expect(await run("org", "create", "team", "--name", "The team")).toContain(
    `\`npx machines-service token create --org team --data ${data}\``,
  );
  await expect(run("org", "create", "team")).rejects.toThrow("organization team exists already");
  expect(JSON.parse(await run("org", "list", "--json"))).toEqual([
    { slug: "personal", name: "Personal" },
    { slug: "team", name: "The team" },
  ]);
  expect((await run("org", "list")).split("\n")).toEqual([
    "SLUG      NAME",
    "personal  Personal",
    "team      The team",
  ]);
  const token = await run("token", "create", "--org", "team");
  expect(await status(token, "POST", "/apps", { name: "theirs", org_slug: "team" })).toBe(201);
  expect([await status(token, "GET", "/apps/theirs"), await status(token, "GET", "/apps/web")]).toEqual([200, 403]);
  await expect(run("token", "create", "--org", "team", "--app", "web")).rejects.toThrow(
    "the app web belongs to organization personal, not to team",
  );
});

test.each([
  [["org", "create", "Not A Slug"], "It must be 1 to 62 of a-z, 0-9 and -."],
  [["token", "create", "--expires", "soon"], 'It must be a duration such as "1h" or "30m", at most 876000h.'],
  [["token", "create", "--expires", "0s"], 'It must be a duration such as "1h" or "30m", at most 876000h.'],
  [["token", "revoke"], "missing required argument 'id'"],
  [["token", "nonsense"], "there is no command token nonsense; there are create, list, rotate, revoke"],
])("%j is refused, and the error lists the allowed values", async (args, message) => {
  const data = folder();
  const { code, out, err } = await command([...args, "--data", data]);
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain(message);
  expect(existsSync(data)).toBe(false);
});

test("before the first start all of them say what to do", async () => {
  const data = folder();
  const all = ["token", "token create", "token list", "org list", "org create team"];
  const answers = await Promise.all(all.map((args) => command([...args.split(" "), "--data", data])));
  expect(answers).toEqual(
    all.map(() => ({
      code: 1,
      out: "",
      err: `machines-service: there is no service in ${data} yet; run \`npx machines-service start --detach --data ${data}\` first\n`,
    })),
  );
  expect(existsSync(data)).toBe(false);
});
