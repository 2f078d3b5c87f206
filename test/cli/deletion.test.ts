// The other stacks of the project, and the deletion of orphans, with a CLI that answers from files; the real one is in test/e2e.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { cliMain } from "../support/built.ts";
import { ownerOf } from "../../provider/core/owner.ts";
import { makeApp, makeCluster, makeMachine, makeVolume, send } from "../support/around.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { command, type Ran, type ReportJson } from "./command.ts";
import { exportOf, urnOf, type Exported } from "./exports.ts";
import { inStack, marked, StackFiles, stateIds } from "./stackFiles.ts";
import { onTerminal, type Answer } from "./terminal.ts";

const image = { image: "registry.example.com/shop:1" };
const { ours, theirs } = stateIds;
const shop = marked({ type: "App", name: "shop", id: "shop" });

let service: TestService;
let files: StackFiles;
let folder = "";
const write = (name: string, text: string): void => files.write(name, text);

beforeEach(async () => {
  service = await startService();
  files = new StackFiles(service, "prod");
  ({ folder } = files);
  write("dev.json", exportOf("plugin", [shop]));
  await makeApp(service, "shop");
});
afterEach(async () => {
  files.remove();
  await service.close();
});

/** The command in this process; the first deletion and those on a terminal have their own. */
const orphans = (...args: string[]): Promise<Ran> => files.orphans(...args);
const report = (...args: string[]): Promise<ReportJson> => files.report(...args);
const terminal = (args: readonly string[], answers: readonly Answer[]) =>
  onTerminal([process.execPath, cliMain, "orphans", ...args], answers, {
    cwd: folder,
    env: { ...process.env, MACHINES_ENDPOINT: service.url, MACHINES_TOKEN: service.token, ...files.env },
  });

const inProd = (resources: readonly Exported[]): string => inStack("prod", resources);
let created = 0;
const machineOf = (stack: "dev" | "prod", name: string, state: string, app = "shop"): Promise<string> =>
  makeMachine(service, app, {
    name: `${name}-${++created}`,
    region: "ams",
    config: {
      ...image,
      metadata: {
        "pulumi-owner": ownerOf(urnOf("plugin", "Machine", name).replace(":dev:", `:${stack}:`)),
        "pulumi-op": "0".repeat(32),
        "pulumi-stack": state,
      },
    },
  });
const machines = async (): Promise<string[]> =>
  (await send<{ id: string; state: string }[]>(service, "GET", "/v1/apps/shop/machines")).map(({ id }) => `shop/${id}`);
const volumes = async (): Promise<string[]> =>
  (await send<{ id: string; state: string }[]>(service, "GET", "/v1/apps/shop/volumes")).flatMap(({ id, state }) =>
    /destroy/.test(state) ? [] : [`shop/${id}`],
  );
/** A Machine that the stack created twice. */
async function twice(): Promise<{ web: string; copy: string }> {
  const [web, copy] = [`shop/${await machineOf("dev", "web", ours)}`, `shop/${await machineOf("dev", "web", ours)}`];
  write("dev.json", exportOf("plugin", [shop, marked({ type: "Machine", name: "web", id: web })]));
  return { web, copy };
}

describe("other stacks of the project", () => {
  test("what they hold is theirs, and what is left in their Apps is for them to compare", async () => {
    await makeApp(service, "shop-prod");
    const held = await machineOf("prod", "web", theirs, "shop-prod");
    const left = await machineOf("prod", "web", theirs, "shop-prod");
    const removed = await machineOf("prod", "gone", theirs, "shop-prod");
    const volume = await makeVolume(service, "shop-prod", "ams");
    const resources = [
      marked({ type: "App", name: "shop", id: "shop-prod" }, theirs),
      marked({ type: "Machine", name: "web", id: `shop-prod/${held}` }, theirs),
    ];
    write("prod.json", inProd(resources));
    const found = await report("--all-apps");
    expect(found.heldElsewhere).toEqual([
      { type: "App", id: "shop-prod", stack: "prod", endpoint: null, provider: null },
      { type: "Machine", id: `shop-prod/${held}`, stack: "prod", endpoint: null, provider: null },
    ]);
    expect(found.orphans.map(({ id }) => id).sort()).toEqual(
      [left, removed, volume].map((id) => `shop-prod/${id}`).sort(),
    );
    for (const orphan of found.orphans) expect(orphan).toMatchObject({ belongsTo: "prod", import: null, delete: null });
    const { out } = await orphans("--all-apps");
    expect(out).toContain("\n  App shop-prod belongs to stack prod of this project\n");
    expect(out).toMatch(/^Machine +shop-prod\/\w+ .* stack prod$/m);
    expect(out).not.toMatch(/--delete shop|DELETE|import: /);
    // Only what this stack does not share is compared in its own Apps.
    expect(await orphans()).toMatchObject({ code: 0, err: "" });
    for (const id of [`shop-prod/${left}`, `shop-prod/${volume}`, `shop-prod/${held}`, "shop-prod"]) {
      const refused = await orphans("--all-apps", "--delete", id, "--yes", "--allow-data-loss");
      expect(refused).toMatchObject({ code: 1, out: "" });
      expect(refused.err).toBe(
        `Not deleted: ${id}: it belongs to stack prod of this project; delete it there, with its program.\nNothing was changed.\n`,
      );
    }
    expect(service.requests.filter(({ method }) => method === "DELETE")).toEqual([]);
  });

  test("what they hold is theirs however their endpoint is spelled, as one service has many addresses", async () => {
    const volume = await makeVolume(service, "shop", "ams");
    const { ip } = await send<{ ip: string }>(service, "POST", "/v1/apps/shop/ip_assignments", { type: "v6" });
    const [address, disk] = [`shop/${ip}`, `shop/${volume}`];
    const inLowerCase = address.toLowerCase();
    const resources: readonly Exported[] = [
      { type: "IpAssignment", name: "address", id: inLowerCase },
      { type: "Volume", name: "data", id: disk, provider: "own" },
    ];
    const prod = (own: string) =>
      exportOf("plugin", resources, { providers: { own: { endpoint: own } } }).replaceAll(":dev:", ":prod:");
    const endpoints = async (configured: string, own: string) => {
      write("prod.json", prod(own));
      write("config-prod.json", JSON.stringify({ "machines:endpoint": { value: configured } }));
      const { orphans: found, heldElsewhere } = await report("--all-apps");
      expect(found).toEqual([]);
      expect(heldElsewhere).toMatchObject([
        { type: "IpAssignment", id: address, stack: "prod" },
        { type: "Volume", id: disk, stack: "prod" },
      ]);
      return heldElsewhere.map(({ endpoint }) => endpoint);
    };
    expect(await endpoints(`${service.url}/v1/`, service.url)).toEqual([null, null]);
    const byName = service.url.replace("127.0.0.1", "localhost");
    expect(await endpoints("local", byName)).toEqual(["local", byName]);
    expect((await orphans("--all-apps")).out).toContain(
      `\n  IpAssignment ${address} belongs to stack prod of this project, whose endpoint is local\n`,
    );
    for (const id of [address, disk])
      expect(await orphans("--all-apps", "--delete", id, "--yes", "--allow-data-loss")).toMatchObject({
        code: 1,
        err: `Not deleted: ${id}: it belongs to stack prod of this project; delete it there, with its program.\nNothing was changed.\n`,
      });
    expect(service.requests.filter(({ method }) => method === "DELETE")).toEqual([]);
    // Nor does it matter where a configuration of that stack cannot be read.
    write("config-prod.json", "no JSON");
    expect(await report("--all-apps")).toMatchObject({ orphans: [], heldElsewhere: [{ id: address }, { id: disk }] });
  });

  test("a stack that cannot be read is reported, and nothing that may be its own is offered for import", async () => {
    const { copy } = await twice();
    await makeVolume(service, "shop", "ams");
    write("refuses-prod", "");
    const { code, out, err } = await orphans("--json");
    expect(code).toBe(1);
    expect(err).toMatch(
      /^Not compared: stack prod of this project, whose objects cannot be distinguished: .*could not decrypt/,
    );
    const { orphans: found } = JSON.parse(out) as ReportJson;
    // The other stack may have got them by `pulumi state move`.
    expect(found.map(({ type, import: adopts, delete: deletion }) => [type, adopts, deletion])).toEqual([
      ["Machine", null, null],
      ["Volume", null, null],
    ]);
    expect(found[0]).toMatchObject({
      id: copy,
      madeBy: "perhaps",
      remark: expect.stringMatching(/; stack prod of this project could not be read, and may own it\.$/) as string,
    });
    expect(await orphans("--delete", copy, "--yes")).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /^Not compared: stack prod [^\n]*\nNot deleted: shop\/\w+: nothing proves that this stack owns it \(.* could not be read, and may own it\), and --yes does not cover that\. If no one needs it, add --confirm shop\/\w+\.\nNothing was changed\.\n$/,
      ) as string,
    });
    expect(await machines()).toContain(copy);
    expect(await orphans("--delete", copy, "--confirm", copy, "--yes")).toMatchObject({ code: 0 });
    expect(await machines()).not.toContain(copy);
  });

  test("an interrupted run of another stack on this computer is not this stack's", async () => {
    const pending = [{ type: "Machine", name: "web", inputs: { app: "shop" } }];
    write("prod.json", exportOf("plugin", [], { pending }).replaceAll("urn:pulumi:dev:", "urn:pulumi:prod:"));
    const id = await machineOf("prod", "web", theirs);
    expect((await report()).orphans).toMatchObject([
      { id: `shop/${id}`, madeBy: "pulumi", belongsTo: "prod", delete: null },
    ]);
  });
});

describe("orphans --delete", () => {
  test("orphans --delete deletes exactly what is named, as its resource would", async () => {
    const { web, copy } = await twice();
    const other = `shop/${await makeMachine(service, "shop", { name: "other", region: "ams", config: image })}`;
    const [shown] = (await report()).orphans.flatMap(({ delete: proposed }) => proposed ?? []);
    expect(shown).toBe(`npx pulumi-machines orphans --delete ${copy}`);
    const before = service.requests.length;
    const words = ["orphans", "--delete", copy, "--yes"];
    const { code, out, err } = await command(service, words, { cwd: folder, env: files.env });
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/^TYPE +ID [^]*^Machine +shop\/\w+ +web-\d+ [^]*^deleted Machine shop\/\w+\n$/m);
    expect(await machines()).toEqual(expect.arrayContaining([web, other]) as string[]);
    expect(await machines()).not.toContain(copy);
    const writes = service.requests.slice(before).filter((request) => isWrite(request));
    expect(writes.map(({ operation }) => operation)).toEqual([
      "machines.acquireLease",
      "machines.stop",
      "machines.destroy",
    ]);
  });

  test("objects with data need their permission, and go after what uses them", async () => {
    const volume = `shop/${await makeVolume(service, "shop", "ams")}`;
    const config = { ...image, mounts: [{ volume: volume.slice(5), path: "/data" }] };
    const machine = `shop/${await makeMachine(service, "shop", { name: "store", region: "ams", config })}`;
    const refused = await orphans("--delete", volume, machine, "--yes");
    expect(refused).toMatchObject({
      code: 1,
      out: "",
      err: [
        `Not deleted: ${volume}: deleting it destroys its data; add --allow-data-loss to allow that.`,
        ...[volume, machine].map(
          (id) =>
            `Not deleted: ${id}: nothing proves that this stack owns it, and --yes does not cover that. If no one needs it, add --confirm ${id}.`,
        ),
        "Nothing was changed.\n",
      ].join("\n"),
    });
    expect(await machines()).toContain(machine);
    const confirmed = ["--confirm", volume, machine, "--yes", "--allow-data-loss"];
    const done = await orphans("--delete", volume, machine, ...confirmed);
    expect(done).toMatchObject({ code: 0, err: "" });
    expect(done.out).toMatch(new RegExp(`deleted Machine ${machine}\ndeleted Volume ${volume}\n$`));
    expect([await machines(), await volumes()]).toEqual([[], []]);
  });

  test("on a terminal, orphans --delete deletes data only for the ID that is typed, and answers a question", async () => {
    const volume = `shop/${await makeVolume(service, "shop", "ams")}`;
    const { copy } = await twice();
    const ids = ["--delete", volume, copy];
    const typing = (text: string, last: string): readonly Answer[] => [
      [/to delete this Volume and its data: /, text],
      [/Delete these 2\? \[y\/N\] /, last],
    ];
    for (const answers of [typing("yes", "y").slice(0, 1), typing(volume, "n")]) {
      const refused = await terminal(ids, answers);
      expect(refused.code, refused.shown).toBe(1);
      expect(refused.shown).toContain("Nothing was changed.");
    }
    expect(await volumes()).toEqual([volume]);
    const done = await terminal(ids, typing(volume, "y"));
    expect(done.code, done.shown).toBe(0);
    expect(await volumes()).toEqual([]);
    expect(await machines()).not.toContain(copy);
  });

  test("an ID that is refused is said with its reason, and nothing is deleted", async () => {
    const { web, copy } = await twice();
    const volume = `shop/${await makeVolume(service, "shop", "ams")}`;
    const foreign = `shop/${await machineOf("dev", "web", theirs)}`;
    await send(service, "POST", `/v1/apps/shop/volumes/${volume.slice(5)}/snapshots`);
    const [snapshot] = await send<{ id: string }[]>(
      service,
      "GET",
      `/v1/apps/shop/volumes/${volume.slice(5)}/snapshots`,
    );
    const taken = `${volume}/${snapshot?.id ?? ""}`;
    await send(service, "POST", "/v1/apps/shop/secrets/KEY", { value: "s3cr3t-value" });
    await send(service, "POST", "/v1/apps/shop/secretkeys/KEY/generate", { type: "hs256" });
    const protect = { ...marked({ type: "Machine", name: "web", id: web }), protect: true };
    write("dev.json", exportOf("plugin", [shop, protect]));
    const { code, out, err } = await orphans(
      ...["--snapshots", "--delete", copy, web, foreign, taken, "shop/KEY", "shop/vol_none", `${copy}x`, "--yes"],
    );
    expect([code, out]).toEqual([1, ""]);
    const webUrn = urnOf("plugin", "Machine", "web");
    expect(err.split("\n")).toEqual([
      `Not deleted: ${web}: stack dev holds it as ${webUrn}, which is protected.`,
      expect.stringMatching(
        new RegExp(
          `^Not deleted: ${foreign}: It was created for a resource .*; delete it with its program, or with the client`,
        ),
      ),
      `Not deleted: ${taken}: the service cannot delete it; it expires by itself.`,
      "Not deleted: shop/KEY: several orphans have this ID; name the type with --only, or the provider with --provider.",
      "Not deleted: shop/vol_none: no orphan that was found has this ID; --app and --all-apps look further.",
      `Not deleted: ${copy}x: no orphan that was found has this ID; did you mean ${copy}?`,
      "Nothing was changed.",
      "",
    ]);
    expect(await machines()).toContain(copy);
    const { orphans: found } = await report();
    expect(found.filter(({ id }) => id === "shop/KEY")).toHaveLength(2);
    expect((await orphans("--only", "Secret", "--delete", "shop/KEY", "--confirm", "shop/KEY", "--yes")).out).toMatch(
      /deleted Secret shop\/KEY\n$/,
    );
    expect((await report()).orphans.filter(({ id }) => id === "shop/KEY")).toMatchObject([{ type: "SecretKey" }]);
  });

  test("everything that can be deleted is, Apps and clusters last", async () => {
    await makeApp(service, "lost");
    const cluster = await makeCluster(service, "data");
    const post = (path: string, body: unknown) => send(service, "POST", path, body);
    await post("/v1/apps/lost/ip_assignments", { type: "v6" });
    await post("/v1/apps/lost/certificates/acme", { hostname: "www.example.com" });
    await post("/v1/apps/lost/secrets/KEY", { value: "s3cr3t-value" });
    await makeVolume(service, "lost", "ams");
    await makeMachine(service, "lost", { name: "web", region: "ams", config: image });
    await post(`/v1/postgres/${cluster}/databases`, { name: "orders" });
    await post(`/v1/postgres/${cluster}/users`, { username: "reader", role: "reader" });
    await post(`/v1/postgres/${cluster}/databases/orders/extensions`, { name: "citext" });
    const ids = (await report("--all-apps")).orphans.map(({ id }) => id);
    expect(ids.length).toBeGreaterThanOrEqual(10);
    const { code, out, err } = await orphans(
      "--all-apps",
      "--delete",
      ...ids,
      "--confirm",
      ...ids,
      "--yes",
      "--allow-data-loss",
    );
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/deleted (App lost|PostgresCluster \w+)\ndeleted (App lost|PostgresCluster \w+)\n$/);
    expect((await report("--all-apps")).orphans).toEqual([]);
  });

  test("one deletion that fails does not stop the others, and is no success", async () => {
    const { copy } = await twice();
    const lone = `shop/${await makeMachine(service, "shop", { name: "lone", region: "ams", config: image })}`;
    service.fail({ operation: "machines.destroy", status: 422, times: 1 });
    const { code, out, err } = await orphans("--delete", copy, lone, "--confirm", lone, "--yes");
    expect(code).toBe(1);
    expect(err).toMatch(/^Not deleted: Machine shop\/\w+: machines\.destroy answered 422/);
    expect(out).toMatch(/deleted Machine shop\/\w+\n$/);
  });

  test("what an up has adopted meanwhile is not deleted", async () => {
    const { web, copy } = await twice();
    const held = [web, copy].map((id, i) => marked({ type: "Machine", name: `web-${i}`, id }));
    write("later.json", exportOf("plugin", [shop, ...held]));
    const { code, err } = await orphans("--delete", copy, "--yes");
    expect([code, err]).toEqual([1, `Not deleted: ${copy}: the stack holds it by now.\n`]);
    expect(await machines()).toContain(copy);
  });

  test.each<[string, readonly string[], RegExp]>([
    ["no answer", ["--delete", "shop/1"], /no one can answer here: add --yes to delete without a question\n$/],
    ["an export", ["--delete", "shop/1", "--yes", "--state", "dev.json"], /--state and --delete cannot be combined/],
    ["an import", ["--delete", "shop/1", "--yes", "--import", "x.json"], /--import and --delete cannot be combined/],
    ["JSON", ["--delete", "shop/1", "--yes", "--json"], /--json and --delete cannot be combined/],
    ["nothing to agree to", ["--yes"], /--yes goes with --delete/],
    ["nothing to lose", ["--allow-data-loss"], /--allow-data-loss goes with --delete/],
    ["another ID", ["--delete", "shop/1", "--yes", "--confirm", "shop/2"], /--confirm shop\/2: --delete does not name/],
  ])("orphans --delete with %s is refused", async (_, args, sentence) => {
    const { code, out, err } = await orphans(...args);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toMatch(sentence);
    expect(service.requests.filter((request) => isWrite(request) && request.method === "DELETE")).toEqual([]);
  });
});
