// quota: limiting organizations and Apps from the command line.
import { expect, test } from "vitest";
import { startLocal } from "../../service/index.ts";
import { caller } from "./client.ts";
import { command, folder } from "./command.ts";

async function scene() {
  const data = folder();
  const { url, token } = await startLocal({ data, delays: "none" });
  const call = caller(url, token);
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const run = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await command([...args, "--data", data]);
    if (code !== 0) throw new Error(err);
    return out.trim();
  };
  const create = () => call("POST", "/apps/web/machines", { config: { image: "nginx" } });
  return { data, run, create, call };
}

test("limits are set, listed with what is used, hold at once while the service runs, and are removed", async () => {
  const { data, run, create, call } = await scene();
  await create();
  expect(await run("quota", "set", "--machines", "2", "--memory", "none", "--requests", "500")).toBe(
    "organization personal: machines 2, memory without a limit, requests 500",
  );
  expect(await run("quota", "set", "--app", "web", "--volume-gb", "10")).toBe("app web: volume-gb 10");
  expect((await create()).status).toBe(200);
  expect(await create()).toMatchObject({
    status: 422,
    body: { error: "quota exceeded: the limit of organization personal for machines is 2, it has 2, and this adds 1" },
  });
  expect((await run("quota", "list")).split("\n")).toEqual([
    "ORG       APP  RESOURCE   USED  LIMIT",
    "personal  -    machines   2     2",
    "personal  -    requests   -     500",
    "personal  web  volume-gb  0     10",
  ]);
  await call("POST", "/apps/web/volumes", { name: "data", region: "fra", size_gb: 4 });
  expect(JSON.parse(await run("quota", "list", "--app", "web", "--json"))).toEqual([
    { org: "personal", app: "web", resource: "volume-gb", limit: 10, used: 4 },
  ]);

  expect(await run("stop")).toContain("stopped");
  expect(await run("quota", "set", "--machines", "3")).toBe("organization personal: machines 3");
  expect(JSON.parse(await run("quota", "list", "--org", "personal", "--json"))[0]).toMatchObject({ used: 2, limit: 3 });
  expect(await run("quota", "remove", "--app", "web")).toBe("app web has no quota any more");
  expect(await run("quota", "remove", "--org", "personal")).toBe("organization personal has no quota any more");
  expect(await run("quota", "list", "--json")).toBe("[]");
  await expect(run("quota", "remove", "--app", "web")).rejects.toThrow(
    `app web has no quota; \`npx machines-service quota list --data ${data}\` shows them`,
  );
});

test.each([
  [["set"], "give at least one limit, such as --machines 20"],
  [["set", "--machines", "-1"], 'It must be a whole number, or "none".'],
  [["set", "--memory", "1.5"], 'It must be a whole number, or "none".'],
  [["set", "--requests", "0"], "It must be at least 1 request per second."],
  [["set", "--app", "web", "--clusters", "1"], "a Postgres cluster belongs to no app: give --clusters with --org"],
  [["set", "--app", "wbe", "--machines", "1"], "there is no app wbe; did you mean web?"],
  [["set", "--org", "persnal", "--machines", "1"], "there is no organization persnal; did you mean personal?"],
  [["list", "--org", "persnal"], "there is no organization persnal; did you mean personal?"],
  [["remove"], "say whose quotas to remove, with --org or --app"],
])("quota %j is refused, and says what to give", async (args, message) => {
  const { run } = await scene();
  await expect(run("quota", ...args)).rejects.toThrow(message);
});
