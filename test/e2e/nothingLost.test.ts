// F39 to F44: no data is lost over several runs of the engine, with the real CLI, in both bindings: failed runs, forced
// replacements, replaced parents, and a temporary other endpoint.
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { send } from "../support/around.ts";
import { allOr } from "../support/extent.mts";
import { bindingsOr, counts, Stack } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { thoroughDescribe, thoroughTest } from "../support/thorough.ts";

const image = "registry.example.com/web:1";

/** Environment variables control the programs, so that runs can differ. */
const renames = `
import * as machines from "pulumi-machines";
const name = process.env["NAME"] ?? "old";
const value = process.env["VALUE"] ?? "v";
const app = new machines.App("shop", { name: "shop", forceDestroy: true });
const web = new machines.Machine("web", { app: app.id, config: { image: "${image}" } });
const db = new machines.PostgresCluster("db", { region: "fra", plan: "basic", deletionProtection: false });
const parts = [
  new machines.Secret(name + "-secret", { app: app.id, name: "KEY", value }),
  new machines.AppSecrets(name + "-secrets", { app: app.id, values: { A: value, B: "2" } }),
  new machines.PostgresAttachment(name + "-attachment", { cluster: db.id, app: app.id, secretName: "DATABASE_URL" }),
  new machines.MachineMetadata(name + "-metadata", { app: app.id, machine: web.id, values: { team: value }, adopt: true }),
];
if (process.env["FAILS"]) new machines.Volume("sibling", { app: app.id, region: "nowhere" }, { dependsOn: parts });
export const machine = web.machineId;
export const cluster = db.id;
`;

const guarded = `
import * as machines from "pulumi-machines";
const allowDataLoss = process.env["LOSE"] ? true : undefined;
const app = new machines.App("shop", { name: process.env["APP"] ?? "shop" });
const name = process.env["NAME"];
const aliases = name === undefined ? undefined : [{ name: "data" }];
new machines.Volume(name ?? "data", { app: app.id, region: "ams", sizeGb: 1, allowDataLoss }, { aliases });
const db = new machines.PostgresCluster("db", { region: "fra", plan: "basic", deletionProtection: process.env["LOSE"] ? false : undefined });
const other = new machines.PostgresCluster("other", { name: "other", region: "fra", plan: process.env["PLAN"] ?? "basic", deletionProtection: false });
new machines.PostgresDatabase("orders", { cluster: other.id, name: "orders", allowDataLoss });
if (process.env["MORE"]) new machines.App("more", { name: "more" });
`;

const places = `
import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "shop" });
const web = new machines.Machine("web", {
  app: app.id,
  config: { image: "${image}", env: { LEVEL: process.env["LEVEL"] ?? "1" }, metadata: { role: "web" } },
});
const level = process.env["LEVEL"] ?? "1";
new machines.MachineMetadata("team", { app: app.id, machine: web.id, values: { team: "a", level } });
if (process.env["MORE"]) new machines.App("more", { name: "more" });
export const machine = web.machineId;
`;

/** All ids stay the same when the App and the database are replaced, so no resource changes by itself. */
const recreated = `
import * as machines from "pulumi-machines";
const app = new machines.App("shop", { name: "shop", network: process.env["NETWORK"] ?? "one" });
new machines.Secret("key", { app: app.id, name: "KEY", value: "v" });
new machines.AppSecrets("keys", { app: app.id, values: { A: "1" } });
const db = new machines.PostgresCluster("db", { region: "fra", plan: "basic", deletionProtection: false });
const orders = new machines.PostgresDatabase("orders", { cluster: db.id, name: "orders", allowDataLoss: true }, { deleteBeforeReplace: true });
new machines.PostgresExtension("vector", { cluster: db.id, database: orders.id, name: "vector" });
new machines.PostgresAttachment("attached", { cluster: db.id, app: app.id, secretName: "DATABASE_URL" });
`;

describe.each(bindingsOr("pulumi-machines-plugin"))("nothing is lost over several runs, %s", (binding) => {
  const homes = () => ({ PULUMI_HOME: mkdtempSync(join(inject("installed"), "home-")) });

  // test/faults/examples.test.ts plays this in process.
  thoroughDescribe("F39: an unfinished rename", () => {
    let service: TestService;
    let stack: Stack;
    let machine: string;
    let cluster: string;
    beforeAll(async () => {
      service = await startService();
      stack = new Stack(inject("installed"), "renames", binding);
      stack.program(renames);
      await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
      await stack.up();
      machine = (await stack.ok("stack", "output", "machine")).trim();
      cluster = (await stack.ok("stack", "output", "cluster")).trim();
    });
    afterAll(() => service.close());

    const there = async () => {
      const [{ secrets }, metadata, found] = await Promise.all([
        send<{ secrets: { name: string; digest: string }[] }>(service, "GET", "/v1/apps/shop/secrets"),
        send<{ team?: string }>(service, "GET", `/v1/apps/shop/machines/${machine}/metadata`),
        send<{ data: { attached_apps: { name: string }[] } }>(service, "GET", `/v1/postgres/${cluster}`),
      ]);
      return {
        secrets: Object.fromEntries(secrets.map(({ name, digest }) => [name, digest])),
        team: metadata.team,
        attached: found.data.attached_apps.map(({ name }) => name),
      };
    };
    let all: Awaited<ReturnType<typeof there>>;
    const up = (env: Readonly<Record<string, string>>, ...args: string[]) =>
      stack.run(["up", "--yes", "--skip-preview", ...args], { env });

    test("the later deletion of the old resources keeps what the new ones claim, also on another computer", async () => {
      all = await there();
      expect(Object.keys(all.secrets).sort()).toEqual(["A", "B", "DATABASE_URL", "KEY"]);
      expect(all).toMatchObject({ team: "v", attached: ["shop"] });
      const failed = await up({ NAME: "new", FAILS: "1" });
      expect(failed.code, failed.output).not.toBe(0);
      expect(Object.keys(stack.state())).toEqual(expect.arrayContaining(["old-secret", "new-secret"]));
      const repaired = await up({ NAME: "new", ...homes() }, "--stack", "dev");
      expect(repaired.code, repaired.output).toBe(0);
      expect(counts(repaired.output).deleted).toBe(4);
      expect(await there()).toEqual(all);
      const again = await up({ NAME: "new" }, "--refresh");
      expect(counts(again.output), again.output).toEqual({ unchanged: 8 });
    });

    test("a deletion by --target keeps it too, although the provider does not see the new ones", async () => {
      const failed = await up({ NAME: "third", FAILS: "1" });
      expect(failed.code, failed.output).not.toBe(0);
      const urns = [
        stack.urn("Secret", "new-secret"),
        stack.urn("AppSecrets", "new-secrets"),
        stack.urn("PostgresAttachment", "new-attachment"),
        stack.urn("MachineMetadata", "new-metadata"),
      ];
      const targeted = await up({ NAME: "third" }, ...urns.flatMap((urn) => ["--target", urn]));
      expect(targeted.code, targeted.output).toBe(0);
      expect(await there()).toEqual(all);
    });

    test("undoing a rename with changed values restores the values", async () => {
      const failed = await up({ NAME: "fourth", VALUE: "w", FAILS: "1" });
      expect(failed.code, failed.output).not.toBe(0);
      expect(await there()).toMatchObject({ team: "w" });
      const back = await up({ NAME: "third" });
      expect(back.code, back.output).toBe(0);
      expect(back.output).toMatch(
        /KEY of App shop stays set: "third-secret" of this program sets it, and gets its value back/,
      );
      expect(counts(back.output).deleted).toBe(4);
      expect(await there()).toEqual(all);
      const refreshed = await stack.run(["refresh", "--yes", "--skip-preview"], { env: { NAME: "third" } });
      expect(counts(refreshed.output), refreshed.output).toEqual({ unchanged: 8 });
      await stack.destroy();
      expect(stack.state()).toEqual({});
    });
  });

  describe("guarded resources", () => {
    let service: TestService;
    let stack: Stack;
    let first: Record<string, string>;
    beforeAll(async () => {
      service = await startService();
      stack = new Stack(inject("installed"), "guarded", binding);
      stack.program(guarded);
      await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
      await stack.up();
      first = ids();
      service.requests.length = 0;
    });
    afterAll(() => service.close());

    const ids = () => Object.fromEntries(Object.entries(stack.state()).map(([name, { id }]) => [name, id]));
    const originals = async () => {
      const [volume, cluster] = await Promise.all([
        send<{ state: string }>(service, "GET", `/v1/apps/shop/volumes/${first["data"]?.split("/")[1] ?? ""}`),
        send<{ data: { status: string } }>(service, "GET", `/v1/postgres/${first["db"] ?? ""}`),
      ]);
      return [volume.state, cluster.data.status];
    };
    const run = (env: Readonly<Record<string, string>>, ...args: string[]) => stack.run(args, { env });

    const [preview, update] = [["preview"], ["up", "--yes", "--skip-preview"]];

    test("F41: renaming an App with a volume is refused at preview, and the message names both", async () => {
      for (const args of allOr([preview, update], [preview])) {
        const { code, output } = await run({ APP: "renamed" }, ...args);
        expect(code, output).not.toBe(0);
        expect(output).toMatch(/replaces the App shop and destroys the data of its volumes: volume data \(shop\/vol_/);
        expect(service.requests.some(({ method, path }) => method === "POST" && path === "/v1/apps")).toBe(false);
      }
    });

    test("F41: replacing a cluster with a database is refused at preview, before anything is deleted", async () => {
      for (const args of allOr([preview, update], [update])) {
        const { code, output } = await run({ PLAN: "starter" }, ...args);
        expect(code, output).not.toBe(0);
        expect(output).toMatch(/cluster \w+ would be replaced, which would destroy this PostgresDatabase/);
      }
      const { data } = await send<{ data: { name: string }[] }>(
        service,
        "GET",
        `/v1/postgres/${first["other"] ?? ""}/databases`,
      );
      expect(data.map(({ name }) => name)).toContain("orders");
    });

    test("F40: stay guarded in every run after a forced replacement, also under another name, until the program allows the loss", async () => {
      const urns = [stack.urn("Volume", "data"), stack.urn("PostgresCluster", "db")];
      const renamed = { NAME: "renamed" };
      const runs = [
        { env: {}, args: urns.flatMap((urn) => ["--replace", urn]) },
        { env: {}, args: [] },
        { env: renamed, args: [] },
        { env: { ...renamed, ...homes() }, args: ["--stack", "dev"] },
      ];
      for (const { env, args } of allOr(runs, runs.slice(0, 2))) {
        const { code, output } = await run(env, "up", "--yes", "--skip-preview", ...args);
        expect(code, output).not.toBe(0);
        expect(output).toMatch(/is guarded: the program still declares it.*undo-replacement.*set allowDataLoss: true/);
        expect(await originals()).toEqual(["created", "ready"]);
      }
      const { code, output } = await run({ LOSE: "1", ...renamed }, "up", "--yes", "--skip-preview");
      expect(code, output).toBe(0);
      await expect(originals()).rejects.toThrow(/410.*has been deleted/);
    });
  });

  // In process, test/faults/wholeRuns.test.ts and the stories of another endpoint have F42, and the tests of metadata F44.
  // plugin.test.ts has a wrong endpoint with the CLI.
  thoroughDescribe("an endpoint and a Machine that change outside", () => {
    let [one, two]: TestService[] = [];
    let stack: Stack;
    let machine: string;
    const run = (env: Readonly<Record<string, string>>, ...args: string[]) => stack.run(args, { env });
    const at = (service: TestService | undefined, url = service?.url ?? "") =>
      stack.set({ "machines:endpoint": url, "machines:token": service?.token ?? "" });
    const written = (service: TestService | undefined) => (service?.requests ?? []).filter(isWrite);
    beforeAll(async () => {
      [one, two] = await Promise.all([startService(), startService()]);
      stack = new Stack(inject("installed"), "places", binding);
      stack.program(places);
      await stack.init({ "machines:endpoint": one.url, "machines:token": one.token });
      await stack.up();
      machine = (await stack.ok("stack", "output", "machine")).trim();
    });
    afterAll(() => Promise.all([one?.close(), two?.close()]));

    test("F42: with another service nothing is created or forgotten, and with the right one nothing is replaced", async () => {
      await at(two);
      const ids = () => Object.values(stack.state()).map(({ id }) => id);
      const before = ids();
      for (const args of [
        ["up", "--yes", "--skip-preview"],
        ["refresh", "--run-program", "--yes", "--skip-preview"],
      ]) {
        const { code, output } = await run({ MORE: "1" }, ...args);
        expect(code, output).not.toBe(0);
        expect(output).toMatch(/the service knows neither App shop nor any other App of this run/);
      }
      expect(written(two)).toEqual([]);
      expect(ids()).toEqual(before);
      // The same service at another address.
      await at(one, one?.url.replace("127.0.0.1", "localhost"));
      const { code, output } = await run({}, "up", "--yes", "--skip-preview");
      expect(code, output).toBe(0);
      expect(output).not.toMatch(/replace|creat/);
      // Only now, because a refresh uses the provider's configuration from the state.
      const refreshed = await stack.refresh();
      expect(counts(refreshed), refreshed).toEqual({ unchanged: 4 });
    });

    test("F44: a metadata key of ours that others changed is refused by name, like a setting", async () => {
      const set = (key: string, value: string) =>
        send(one as TestService, "POST", `/v1/apps/shop/machines/${machine}/metadata/${key}`, { value });
      await set("role", "theirs");
      await set("team", "theirs");
      const refused = await run({ LEVEL: "2" }, "up", "--yes", "--skip-preview", "--continue-on-error");
      expect(refused.code).not.toBe(0);
      expect(refused.output).toMatch(/was changed outside of this program \(config\.metadata\["role"\]\)/);
      const only = await run(
        { LEVEL: "2" },
        "up",
        "--yes",
        "--skip-preview",
        "--target",
        stack.urn("MachineMetadata", "team"),
      );
      expect(only.output).toMatch(/metadata of Machine .* was changed outside of this program \(values\["team"\]\)/);
      await stack.refresh();
      const repaired = await run({ LEVEL: "2" }, "up", "--yes", "--skip-preview");
      expect(counts(repaired.output), repaired.output).toEqual({ updated: 2, unchanged: 2 });
      await stack.destroy();
    });
  });

  // test/faults/wholeRuns.test.ts has this in process.
  thoroughTest("F41: children deleted with a replaced App or database of the same name are created again", async () => {
    const service = await startService();
    try {
      const stack = new Stack(inject("installed"), "recreated", binding);
      stack.program(recreated);
      await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
      await stack.up();
      const cluster = stack.state()["db"]?.id ?? "";
      const there = async () => {
        const [{ secrets }, { data }, found] = await Promise.all([
          send<{ secrets: { name: string }[] }>(service, "GET", "/v1/apps/shop/secrets"),
          send<{ data: { name: string }[] }>(service, "GET", `/v1/postgres/${cluster}/databases/orders/extensions`),
          send<{ data: { attached_apps: { name: string }[] } }>(service, "GET", `/v1/postgres/${cluster}`),
        ]);
        return [secrets, data, found.data.attached_apps].map((all) => all.map(({ name }) => name).sort());
      };
      const all = await there();
      expect(all).toEqual([["A", "DATABASE_URL", "KEY"], expect.arrayContaining(["vector"]), ["shop"]]);
      const replaced = ["--replace", stack.urn("PostgresDatabase", "orders")];
      const env = { NETWORK: "two" };
      const { code, output } = await stack.run(["up", "--yes", "--skip-preview", ...replaced], { env });
      expect(code, output).toBe(0);
      expect(await there()).toEqual(all);
      const again = await stack.run(["up", "--refresh", "--yes", "--skip-preview"], { env });
      expect(counts(again.output), again.output).toEqual({ unchanged: 8 });
      await stack.destroy();
    } finally {
      await service.close();
    }
  });
});
