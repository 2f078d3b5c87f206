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
  const made = JSON.parse(await run("token", "create", "--name", "ci", "--read-only", "--expires", "1h", "--json"));
  expect(await status(made.token, "GET", "/apps/web")).toBe(200);
  expect(await status(made.token, "DELETE", "/apps/web")).toBe(403);
  const text = await run("token", "list", "--json");
  expect(text).not.toContain(made.token);
  expect(text).not.toContain(token);
  const [first, ci, ...more] = JSON.parse(text);
  expect(more).toEqual([]);
  expect(first).toMatchObject({ name: "first", org: "personal", app: null, read_only: false, expires_at: null });
  expect(ci).toEqual({
    id: made.id,
    name: "ci",
    org: "personal",
    app: null,
    read_only: true,
    created_at: expect.stringMatching(/Z$/),
    expires_at: expect.stringMatching(/Z$/),
  });
  expect(Date.parse(ci.expires_at) - Date.parse(ci.created_at)).toBe(3600_000);
  const table = (await run("token", "list")).split("\n");
  expect(table[0]).toMatch(/^ID +NAME +ORG +APP +READ-ONLY +CREATED +EXPIRES$/);
  expect(table[2]).toContain(`${made.id}  ci     personal  -    yes        ${ci.created_at}  ${ci.expires_at}`);

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
  expect(JSON.parse(await run("token", "list", "--json"))[1]).toMatchObject({ app: "web", org: "personal" });
  await expect(run("token", "create", "--app", "none")).rejects.toThrow("there is no app none");
  const brief = await run("token", "create", "--expires", "1ms");
  expect(await status(brief, "GET", "/apps/web")).toBe(401);
  expect(await run("token", "list")).not.toContain("1ms");
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
  [["token", "nonsense"], "there is no command token nonsense; there are create, list, revoke"],
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
