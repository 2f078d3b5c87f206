// people: who may sign in to the console with a provider, and the options of the provider.
import { expect, test } from "vitest";
import { trustId } from "../../service/commands/trusts.ts";
import { command, folder, foreground } from "./command.ts";

test("the id of people and of a trust is never read as an option of a command", () => {
  const ids = Array.from({ length: 1000 }, trustId);
  expect(ids.filter((id) => !/^[0-9a-f]{12}$/.test(id))).toEqual([]);
  expect(new Set(ids).size).toBe(1000);
});

test("people are added, listed and removed, also without a running service", async () => {
  const data = folder();
  const run = (...args: string[]) => command([...args, "--data", data]);
  const { pid, end } = await foreground(data);
  process.kill(pid, "SIGTERM");
  await end;
  expect((await run("org", "create", "team")).code).toBe(0);
  const made = await run("people", "add", "--group", "platform", "--role", "own", "--json");
  const { id } = JSON.parse(made.out) as { id: string };
  expect((await run("people", "add", "--everyone", "--org", "team", "--role", "read")).out).toMatch(
    /^people \w{12}: everyone may sign in to the console with the role read\n$/,
  );
  const listed = JSON.parse((await run("people", "list", "--json")).out) as object[];
  expect(listed).toMatchObject([
    { id, group: "platform", org: "personal", apps: null, network: null, role: "own", used_at: null },
    { group: null, org: "team", role: "read" },
  ]);
  // They are no trusts of workflows.
  expect((await run("trust", "list", "--json")).out).toBe("[]\n");
  expect((await run("trust", "remove", id)).code).toBe(1);
  expect((await run("people", "remove", id)).out).toBe(`people ${id} are removed, and their sessions have ended\n`);
  expect(await run("people", "remove", id)).toMatchObject({
    code: 1,
    err: expect.stringContaining(`there are no people ${id};`),
  });
  expect(JSON.parse((await run("people", "list", "--json")).out)).toHaveLength(1);
});

test.each([
  [["people", "add", "--role", "read"], "say who may sign in: --group NAME"],
  [["people", "add", "--everyone", "--group", "a", "--role", "read"], "say who may sign in: --group NAME"],
  [["start", "--oidc-client", "a"], "--oidc-client needs --oidc-issuer"],
  [["start", "--oidc-issuer", "https://id.example.com"], "--oidc-issuer needs --oidc-client"],
  [
    ["start", "--oidc-issuer", "http://id.example.com", "--oidc-client", "a"],
    "--oidc-issuer takes the https address of a provider",
  ],
  [
    ["start", "--oidc-issuer", "https://id.example.com", "--oidc-client", "a", "--oidc-scope", "email"],
    "with openid among them",
  ],
  [["start", "--oidc-issuer", "https://id.example.com", "--oidc-client", "a", "--console", "off"], "needs a console"],
])("%j is refused", async (args, message) => {
  const { code, err } = await command([...args, "--data", folder()]);
  expect([code, err]).toEqual([1, expect.stringContaining(message)]);
});

test("status --ready tells a service that is ready from one that does not run", async () => {
  const data = folder();
  expect((await command(["status", "--ready", "--data", data])).code).toBe(3);
  await foreground(data);
  expect((await command(["status", "--ready", "--data", data])).code).toBe(0);
});
