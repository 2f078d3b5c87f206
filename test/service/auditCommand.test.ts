// audit: who changed what, or tried to.
import { expect, test } from "vitest";
import { startLocal } from "../../service/index.ts";
import { caller } from "./client.ts";
import { command, folder } from "./command.ts";

async function scene() {
  const data = folder();
  const { url, token } = await startLocal({ data, delays: "none" });
  const run = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await command([...args, "--data", data]);
    if (code !== 0) throw new Error(err);
    return out.trim();
  };
  const tokenOf = async (name: string, ...more: string[]): Promise<{ id: string; token: string }> =>
    JSON.parse(await run("token", "create", "--name", name, "--json", ...more));
  return { data, url, token, run, tokenOf };
}

test("it filters by actor, App, organization, time, operation and status, and never shows a secret", async () => {
  const { url, token, run, tokenOf } = await scene();
  const anna = await tokenOf('Anna, "ops"');
  const workflow = await tokenOf("acme/shop deploy.yml by bob");
  const reader = await tokenOf("=reader", "--role", "read");
  await run("org", "create", "team");
  const team = await tokenOf("tea", "--org", "team");
  const [first, ofAnna, ofWorkflow, ofReader, ofTeam] = [
    token,
    anna.token,
    workflow.token,
    reader.token,
    team.token,
  ].map((one) => caller(url, one));
  await first?.("POST", "/apps", { name: "web", org_slug: "personal" });
  // The other field that may name an App.
  await first?.("POST", "/apps", { app_name: "shop", org_slug: "personal" });
  await ofTeam?.("POST", "/apps", { name: "tea", org_slug: "team" });
  await ofAnna?.("POST", "/apps/web/secrets/KEY", { value: "hunter2" });
  const config = { image: "nginx", env: { PASSWORD: "hunter2" } };
  const { id } = (await ofWorkflow?.("POST", "/apps/shop/machines", { config }))?.body ?? {};
  await ofWorkflow?.("POST", `/apps/shop/machines/${id}/stop`);
  await ofReader?.("DELETE", "/apps/web");
  await ofReader?.("GET", "/apps/web");

  const operations = async (...args: string[]): Promise<string[]> =>
    (await run("audit", "--json", ...args))
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line).operation);
  expect(await operations()).toEqual([
    ...["apps.create", "apps.create", "secrets.set", "machines.create", "machines.stop", "apps.delete"],
    "apps.create",
  ]);
  expect(await operations("--actor", "ANNA")).toEqual(["secrets.set"]);
  expect(await operations("--actor", "by bob")).toEqual(["machines.create", "machines.stop"]);
  expect(await operations("--actor", workflow.id)).toEqual(["machines.create", "machines.stop"]);
  expect(await operations("--org", "team")).toEqual(["apps.create"]);
  expect(await operations("--app", "shop")).toEqual(["apps.create", "machines.create", "machines.stop"]);
  expect(await operations("--operation", "machines.*")).toEqual(["machines.create", "machines.stop"]);
  expect(await operations("--operation", "*.create", "--app", "shop")).toEqual(["apps.create", "machines.create"]);
  expect(await operations("--status", "failed")).toEqual(["apps.delete"]);
  expect(await operations("--status", "403")).toEqual(["apps.delete"]);
  expect(await operations("--status", "4xx", "--actor", "anna")).toEqual([]);
  expect(await operations("--status", "2xx", "--operation", "secrets.*")).toEqual(["secrets.set"]);
  expect(await operations("--until", "1h")).toEqual([]);
  expect(await operations("--since", "1h", "--operation", "apps.delete")).toEqual(["apps.delete"]);

  const table = await run("audit");
  const lines = table.split("\n");
  expect(lines[0]).toMatch(/^TIME +ORG +APP +ACTOR +OPERATION +STATUS +PATH$/);
  expect(lines).toHaveLength(8);
  expect(table).toMatch(/^\S+Z +personal +web +=reader +apps\.delete +403 +\/v1\/apps\/web$/m);
  expect(table).toMatch(/^\S+Z +team +tea +tea +apps\.create +201 +\/v1\/apps$/m);

  const csv = await run("audit", "--csv", "--app", "web");
  const [head, ...rows] = csv.split("\r\n");
  expect(head).toBe("time,org,app,actor,token,operation,status,method,path,about,update,urn,request");
  expect(rows[1]).toContain(`,personal,web,"Anna, ""ops""",${anna.id},secrets.set,201,POST,/v1/apps/web/secrets/KEY,`);
  // A spreadsheet must not take the name of a token for a formula.
  expect(rows[2]).toContain(`,'=reader,${reader.id},apps.delete,403,DELETE,`);

  const everything = [table, csv, await run("audit", "--json")].join("\n");
  for (const secret of ["hunter2", token, anna.token, workflow.token]) expect(everything).not.toContain(secret);

  await run("stop");
  expect(await operations("--actor", "bob", "--since", "1h")).toEqual(["machines.create", "machines.stop"]);
});

test.each([
  [["--status", "many"], "It must be a status such as 403, a class such as 4xx, or failed."],
  [["--operation", "machines create"], "It must be an operation such as machines.create"],
  [["--since", "yesterday"], "It must be a duration such as 10m, or a time."],
  [["--json", "--csv"], "cannot be used with option '--csv'"],
])("audit %j is refused, and says what to give", async (args, message) => {
  const { code, err } = await command(["audit", "--data", folder(), ...args]);
  expect(code).toBe(1);
  expect(err).toContain(message);
});
