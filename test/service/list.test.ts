// ls: what the running service holds.
import { expect, test } from "vitest";
import { startLocal } from "../../service/index.ts";
import { Store, storeFile } from "../../service/store/database.ts";
import { caller } from "./client.ts";
import { command, folder } from "./command.ts";
import { thoroughTest } from "../support/thorough.ts";

/** A running service, and the command with its data folder. */
async function service() {
  const data = folder();
  const { url, token } = await startLocal({ data, delays: "none" });
  const call = caller(url, token);
  const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
    command(["ls", ...args, "--data", data], { ...process.env, NO_COLOR: undefined, FORCE_COLOR: undefined, ...env });
  const lines = async (...args: string[]): Promise<string[]> => {
    const { code, out, err } = await run(args);
    expect(code).toBe(0);
    expect(err).toMatch(args.length > 0 ? /^$/ : /^\nFor one kind /);
    return out.trimEnd().split("\n");
  };
  const json = async (...args: string[]) => JSON.parse((await run([...args, "--json"])).out);
  const app = async (name: string): Promise<void> =>
    expect((await call("POST", "/apps", { name, org_slug: "personal" })).status).toBe(201);
  const machine = async (of: string, name: string, more: object = {}): Promise<{ id: string }> =>
    (await call("POST", `/apps/${of}/machines`, { name, region: "ams", config: { image: "nginx" }, ...more })).body;
  const team = async (): Promise<void> => {
    await command(["org", "create", "team", "--data", data]);
    const own = (await command(["token", "create", "--org", "team", "--data", data])).out.trim();
    await caller(url, own)("POST", "/apps", { name: "theirs", org_slug: "team" });
  };
  return { data, url, token, call, run, lines, json, app, machine, team };
}

test("without a kind it counts by App, in all organizations, and names the next command", async () => {
  const { call, run, json, app, machine, team, url, data } = await service();
  expect(await run([])).toEqual({
    code: 0,
    out: "",
    err: `There are no Apps yet; create them with Pulumi, with \`npx machines-service seed FILE --data ${data}\`, or with curl:\n${url}/docs\n`,
  });
  await app("web");
  await machine("web", "one");
  await machine("web", "two");
  await machine("web", "three", { skip_launch: true });
  await call("POST", "/apps/web/volumes", { name: "data" });
  await team();
  const { body } = await call("POST", "/postgres", { org_slug: "personal", name: "db", region: "ams", plan: "basic" });
  const { out, err } = await run([]);
  expect(out.trimEnd().split("\n")).toEqual([
    "APP     ORG       STATUS    MACHINES              VOLUMES",
    "theirs  team      pending   0                     0",
    "web     personal  deployed  2 started, 1 stopped  1",
    "",
    "CLUSTER  ORG       STATUS",
    "db       personal  ready",
  ]);
  expect(err, "a script that reads the list does not get it").toBe(
    `\nFor one kind (apps, machines, volumes, clusters): npx machines-service ls machines --data ${data}\nFor every operation: ${url}/docs\n`,
  );
  const web = {
    ...{ name: "web", org: "personal", status: "deployed" },
    machines: { started: 2, stopped: 1 },
    volumes: { created: 1 },
  };
  const theirs = { name: "theirs", org: "team", status: "pending", machines: {}, volumes: {} };
  expect(await json()).toEqual({
    apps: [theirs, web],
    clusters: [{ name: "db", org: "personal", status: "ready" }],
  });
  expect(await json("--org", "team")).toEqual({ apps: [theirs], clusters: [] });
  expect(await json("--app", "web")).toEqual({ apps: [web], clusters: [] });
  await call("POST", `/postgres/${body.data.id}/attachments`, { app_name: "web" });
  expect((await json("--app", "web")).clusters).toHaveLength(1);
});

test("each kind has its columns, ordered by App and name", async () => {
  const { call, lines, json, app, machine, team } = await service();
  await app("web");
  await app("shop");
  const { body: volume } = await call("POST", "/apps/web/volumes", { name: "data", region: "ams", size_gb: 4 });
  const mounts = [{ volume: volume.id, path: "/d" }];
  const two = await machine("web", "two", { config: { image: "example.com/web:v3", mounts } });
  const one = await machine("web", "one", { skip_launch: true });
  const shop = await machine("shop", "zzz");
  await team();
  expect(await lines("apps")).toEqual([
    "NAME    ORG       STATUS    MACHINES  VOLUMES  NETWORK",
    "shop    personal  deployed  1         0        default",
    "theirs  team      pending   0         0        default",
    "web     personal  deployed  2         1        default",
  ]);
  expect(await lines("machines")).toEqual([
    "APP   NAME  ID              STATE    REGION  IMAGE               CHANGED",
    `shop  zzz   ${shop.id}  started  ams     nginx               just now`,
    `web   one   ${one.id}  stopped  ams     nginx               just now`,
    `web   two   ${two.id}  started  ams     example.com/web:v3  just now`,
  ]);
  expect(await lines("volumes")).toEqual([
    `APP  NAME  ${"ID".padEnd(volume.id.length)}  STATE    REGION  SIZE  MACHINE`,
    `web  data  ${volume.id}  created  ams     4 GB  ${two.id}`,
  ]);
  await call("POST", "/postgres", { org_slug: "personal", name: "db", region: "ams", plan: "basic" });
  expect(await lines("clusters")).toEqual([
    expect.stringMatching(/^NAME +ORG +ID +STATUS +REGION +PLAN +CREATED$/),
    expect.stringMatching(/^db +personal +\w+ +ready +ams +basic +just now$/),
  ]);
  const found = await json("machines", "--app", "web");
  expect(found.map(({ name }: { name: string }) => name)).toEqual(["one", "two"]);
  expect(found[1]).toMatchObject({ id: two.id, org: "personal", app_name: "web", state: "started" });
  expect(await json("machines", "--org", "team")).toEqual([]);
});

thoroughTest("it lists every page, once", async () => {
  const { data, lines, json, app, machine } = await service();
  await app("web");
  const { id } = await machine("web", "first");
  const store = new Store(storeFile(data));
  const columns = store
    .all<{ name: string }>("SELECT name FROM pragma_table_info('machines')")
    .map(({ name }) => name)
    .filter((name) => name !== "id" && name !== "name");
  await store.write(() =>
    store.run(
      `WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
       INSERT INTO machines (id, name, ${columns.join(", ")})
       SELECT printf('%014x', i), 'copy-' || i, ${columns.join(", ")} FROM machines JOIN n WHERE id = ?`,
      id,
    ),
  );
  store.close();
  const ids = (await json("machines")).map((machine: { id: string }) => machine.id);
  expect([ids.length, new Set(ids).size]).toEqual([2501, 2501]);
  expect((await lines())[1]).toContain("2501 started");
});

test("a terminal gets colours, and text of others does nothing to it", async () => {
  const { data, run, json, app, machine } = await service();
  await app("web");
  await machine("web", "one");
  const store = new Store(storeFile(data));
  const image = "evil\u001b[2J\u202e\n";
  await store.write(() => store.run("UPDATE machines SET brief = ?", JSON.stringify({ image })));
  store.close();
  const plain = (await run(["machines"])).out;
  expect(plain).toContain("evil\\u001b[2J\\u202e\\n");
  expect(plain.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  expect((await run(["machines", "--json"])).out.trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  expect((await json("machines"))[0].config.image).toBe(image);
  const coloured = (await run(["machines"], { FORCE_COLOR: "1" })).out;
  expect(coloured).toContain("\u001b[32mstarted\u001b[39m");
  expect(coloured).toContain("evil\\u001b[2J");
  expect(coloured.replaceAll(/\u001b\[\d+m/g, "")).toBe(plain);
});

thoroughTest("what is wrong is one sentence, with the nearest name", async () => {
  const { run, app, data } = await service();
  await app("web");
  const refused = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await run(args);
    expect([code, out]).toEqual([1, ""]);
    return err;
  };
  expect(await refused("machine")).toBe('machines-service: there is no kind "machine"; did you mean machines?\n');
  expect(await refused("x")).toBe(
    'machines-service: there is no kind "x"; the kinds are apps, machines, volumes, clusters\n',
  );
  expect(await refused("--app", "wep")).toBe("machines-service: there is no app wep; did you mean web?\n");
  expect(await refused("--org", "personl")).toBe(
    "machines-service: there is no organization personl; did you mean personal?\n",
  );
  expect(await run(["volumes"])).toEqual({ code: 0, out: "", err: "There are no volumes.\n" });
  await command(["stop", "--data", data]);
  expect(await refused()).toBe(
    `machines-service: no service is running for ${data}; start it with \`npx machines-service start --detach --data ${data}\`\n`,
  );
});

test("its tokens only read, and are revoked", async () => {
  const { data, call, json, app } = await service();
  await app("web");
  expect(await json("machines")).toEqual([]);
  const left = JSON.parse((await command(["token", "list", "--json", "--data", data])).out);
  expect(left).toHaveLength(1);
  expect((await call("GET", "/tokens/current")).body.tokens[0].token_id).toBe(left[0].id);
});
