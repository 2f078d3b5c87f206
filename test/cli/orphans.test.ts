// Objects of the service that are in no state, by kind and by creator, in both formats of a state.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { usedBy } from "../../cli/orphans/scopes.ts";
import { readState } from "../../cli/stackState.ts";
import { dynamicOwnerOf, ownerOf } from "../../provider/core/owner.ts";
import { makeApp, makeBackup, makeCluster, makeMachine, makeVolume, send } from "../support/around.ts";
import { currentCertificate } from "../support/certificates.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { command, commandHere, type OrphanJson, type ReportJson, type Run } from "./command.ts";
import { exportOf, sealed, shapes, urnOf, type Exported } from "./exports.ts";

const image = { image: "registry.example.com/shop:1" };

let service: TestService;
let folder: string;
beforeEach(async () => {
  service = await startService();
  folder = mkdtempSync(join(tmpdir(), "machines-orphans-"));
});
afterEach(async () => {
  rmSync(folder, { recursive: true });
  await service.close();
});

/** Runs the command on an export and returns what it printed as JSON: in this process, unless its environment matters. */
async function look(state: string, args: readonly string[] = [], run?: Run) {
  const words = ["orphans", "--state", "-", "--json", ...args];
  const { code, out, err } = await (run ? command : commandHere)(service, words, { stdin: state, ...run });
  expect(out + err).not.toContain(service.token);
  return { code, err, report: (out === "" ? {} : JSON.parse(out)) as ReportJson };
}

const ids = (orphans: readonly OrphanJson[]): string[] => orphans.map(({ type, id }) => `${type} ${id}`);
const shop: Exported = { type: "App", name: "shop", id: "shop" };
/** The id of the state under test, and that of another one. */
const [ours, theirs] = ["0123456789ab", "ba9876543210"];
/** With an export alone; test/cli/whose.test.ts has what proves whose an object is. */
const noProof = "an export does not say which other stacks there are";
const marked = (resource: Exported): Exported => ({ ...resource, outputs: { __context: { stack: ours } } });

const make = {
  secret: (name: string) => send(service, "POST", `/v1/apps/shop/secrets/${name}`, { value: "s3cr3t-value" }),
  key: (name: string) => send(service, "POST", `/v1/apps/shop/secretkeys/${name}/generate`, { type: "hs256" }),
  ip: async (type: string) =>
    (await send<{ ip: string }>(service, "POST", "/v1/apps/shop/ip_assignments", { type })).ip,
  acme: (hostname: string) => send(service, "POST", "/v1/apps/shop/certificates/acme", { hostname }),
  custom: (hostname: string) =>
    send(service, "POST", "/v1/apps/shop/certificates/custom", {
      hostname,
      ...currentCertificate({ hosts: [hostname] }),
    }),
  snapshot: async (volume: string) => {
    const path = `/v1/apps/shop/volumes/${volume}/snapshots`;
    await send(service, "POST", path);
    return (await send<{ id: string }[]>(service, "GET", path))[0]?.id ?? "";
  },
};

/** One object of every kind in App shop and a cluster, with the resource that would manage it. */
async function everything() {
  await makeApp(service, "shop");
  const machine = await makeMachine(service, "shop", { name: "web", config: image });
  const volume = await makeVolume(service, "shop", "ams");
  const snapshot = await make.snapshot(volume);
  const [v6, shared] = [await make.ip("v6"), await make.ip("shared_v4")];
  await make.secret("DATABASE_URL");
  await make.key("signing");
  await make.acme("www.example.com");
  await make.custom("api.example.com");
  const cluster = await makeCluster(service, "data");
  const backup = await makeBackup(service, cluster);
  await send(service, "POST", `/v1/postgres/${cluster}/databases`, { name: "orders" });
  await send(service, "POST", `/v1/postgres/${cluster}/users`, { username: "reader", role: "reader" });
  await send(service, "POST", `/v1/postgres/${cluster}/databases/orders/extensions`, { name: "citext" });
  await send(service, "POST", `/v1/postgres/${cluster}/attachments`, { app_name: "shop" });
  const roots = [`App shop`, `PostgresCluster ${cluster}`];
  const inside = [
    "AcmeCertificate shop/www.example.com",
    "CustomCertificate shop/api.example.com",
    `IpAssignment shop/${v6}`,
    `IpAssignment shop/${shared}`,
    `Machine shop/${machine}`,
    `PostgresAttachment ${cluster}/shop`,
    `PostgresDatabase ${cluster}/database/orders`,
    `PostgresExtension ${cluster}/extension/orders/citext`,
    `PostgresUser ${cluster}/user/reader`,
    "Secret shop/DATABASE_URL",
    "SecretKey shop/signing",
    `Volume shop/${volume}`,
  ];
  const timed = [`PostgresBackup ${cluster}/backup/${backup}`, `VolumeSnapshot shop/${volume}/${snapshot}`];
  return { roots, inside: inside.sort(), timed, cluster, volume, machine };
}

const asResource = (line: string, index: number): Exported => {
  const [type = "", id = ""] = line.split(" ");
  return { type, name: `r${index}`, id };
};

test("an organization that does not exist is reported, although the Apps of the state can be read", async () => {
  await makeApp(service, "shop");
  const found = await look(exportOf("plugin", [shop]), [], { env: { MACHINES_ORGANIZATION: "acmee" } });
  const failure = 'machines:organization: there is no organization "acmee"; the token is for personal';
  expect([found.code, found.err]).toEqual([2, `Not compared: ${failure}\n`]);
  // Also without anything to compare, programs read one object.
  expect(found.report).toMatchObject({ stack: "dev", places: [], orphans: [], missing: [], failures: [failure] });
});

test("the Machines and the mounted volumes of a fleet are the fleet's, and a volume that it has left is reported", async () => {
  await makeApp(service, "shop");
  const volumes = [await makeVolume(service, "shop", "ams"), await makeVolume(service, "shop", "ams")];
  const metadata = { "pulumi-fleet": "web" };
  await makeMachine(service, "shop", {
    name: "web-ams-1",
    config: { ...image, metadata, mounts: [{ volume: volumes[0], path: "/data" }] },
  });
  const state = (lines: readonly string[]) => exportOf("plugin", lines.map(asResource));
  expect(ids((await look(state(["App shop", "Fleet shop/web"]))).report.orphans)).toEqual([
    `Volume shop/${String(volumes[1])}`,
  ]);
  expect(ids((await look(state(["App shop"]))).report.orphans)).toEqual([
    "Fleet shop/web",
    `Volume shop/${String(volumes[1])}`,
  ]);
});

describe.each(shapes)("a state of the %s binding", (shape) => {
  test("every kind of object is reported if no resource manages it, and not reported if one does", async () => {
    const { roots, inside, timed } = await everything();
    const before = service.requests.length;
    const state = (lines: readonly string[]) => exportOf(shape, lines.map(asResource));

    const found = await look(state(roots));
    expect(ids(found.report.orphans)).toEqual(inside);
    expect(found.code).toBe(1);

    const withTimed = await look(state(roots), ["--snapshots"]);
    expect(ids(withTimed.report.orphans)).toEqual([...inside, ...timed].sort());

    const none = await look(state([...roots, ...inside, ...timed]), ["--snapshots"]);
    expect(none).toMatchObject({ code: 0, err: "", report: { orphans: [], missing: [], notes: [], failures: [] } });

    // The state is lost, so nothing in the organization is managed.
    const all = await look(exportOf(shape, []), ["--all-apps", "--snapshots"]);
    expect(ids(all.report.orphans)).toEqual([...roots, ...inside, ...timed].sort());
    expect(service.requests.slice(before).filter(isWrite), "it only reads").toEqual([]);
  });

  test("ids of the state that the service no longer has are reported after a second lookup", async () => {
    const { roots, inside, timed } = await everything();
    const all = [...roots, ...inside, ...timed];
    const gone = all.map((line, i) => ({
      ...asResource(line, i),
      id: line.replace(/^\S+ /, "").replace(/[^/]+$/, `gone${i}`),
    }));
    const stray = gone.filter(({ type }) => !["App", "PostgresCluster"].includes(type));
    const state = exportOf(shape, [
      ...all.map(asResource),
      ...stray.map((one) => ({ ...one, name: `${one.name}-gone` })),
    ]);
    const { code, report } = await look(state, ["--snapshots"]);
    // Snapshots and backups expire by themselves.
    const expected = stray.filter(({ type }) => type !== "VolumeSnapshot" && type !== "PostgresBackup");
    expect(code).toBe(1);
    expect(report.orphans).toEqual([]);
    expect(report.missing.map(({ type, id }) => `${type} ${id}`)).toEqual(
      expected.map(({ type, id }) => `${type} ${id}`).sort(),
    );
  });

  test("an object that a list lacks is not reported as missing (F14)", async () => {
    await makeApp(service, "shop");
    const machine = await makeMachine(service, "shop", { config: image });
    const volume = await makeVolume(service, "shop", "ams");
    service.fail(
      { operation: "machines.list", status: 200, body: [] },
      { operation: "volumes.list", status: 200, body: [] },
    );
    const held = [`Machine shop/${machine}`, `Volume shop/${volume}`].map(asResource);
    expect(await look(exportOf(shape, [shop, ...held]))).toMatchObject({ code: 0, report: { missing: [] } });
  });

  test("Machines are distinguished by who created them", async () => {
    await makeApp(service, "shop");
    const tagged = (owner: string | undefined, stack: string | undefined = ours) =>
      makeMachine(service, "shop", {
        config: {
          ...image,
          metadata: {
            "pulumi-op": "0123456789abcdef",
            ...(owner === undefined ? {} : { "pulumi-owner": owner, "pulumi-stack": stack }),
          },
        },
      });
    const ownerIn = (stack: string, type: string, name: string, within?: string) => {
      const parent = within === undefined ? "" : `urn:pulumi:dev::shop::my:index:Tier::${within}`;
      return shape === "plugin"
        ? ownerOf(urnOf(shape, type, name, within).replace(":dev:", `:${stack}:`))
        : dynamicOwnerOf({ project: "shop", stack, type, parent, name });
    };
    const web = await tagged(ownerIn("dev", "Machine", "web"));
    const double = await tagged(ownerIn("dev", "Machine", "web"));
    const begun = await tagged(ownerIn("dev", "Machine", "worker", "tier"));
    const foreign = await tagged(ownerIn("prod", "Machine", "web"), theirs);
    const anonymous = await tagged(undefined);
    const byHand = await makeMachine(service, "shop", { config: image });
    const state = exportOf(shape, [marked(shop), { type: "Machine", name: "web", id: `shop/${web}` }], {
      pending: [{ type: "Machine", name: "worker", within: "tier", inputs: { app: "shop" } }],
    });
    const { report } = await look(state);
    const webUrn = urnOf(shape, "Machine", "web");
    const workerUrn = urnOf(shape, "Machine", "worker", "tier");
    expect(Object.fromEntries(report.orphans.map((one) => [one.id, one]))).toMatchObject({
      [`shop/${double}`]: {
        madeBy: "perhaps",
        urn: webUrn,
        inState: [`shop/${web}`],
        remark: `It was created for ${webUrn}, for which this state holds shop/${web}; ${noProof}.`,
        look: `GET /v1/apps/shop/machines/${double}`,
        delete: null,
      },
      [`shop/${begun}`]: {
        madeBy: "perhaps",
        urn: workerUrn,
        inState: [],
        remark: `It was created for ${workerUrn}, whose creation was interrupted; ${noProof}.`,
        delete: null,
      },
      [`shop/${foreign}`]: { madeBy: "pulumi", urn: null, delete: null },
      [`shop/${anonymous}`]: { madeBy: "pulumi", urn: null, delete: null },
      [`shop/${byHand}`]: { madeBy: "other", urn: null, remark: null, delete: null },
    });
    expect(report.orphans).toHaveLength(5);

    // The other stack's export identifies its objects, and what it manages is no orphan.
    const other = (id: string) => {
      const file = join(folder, "other.json");
      writeFileSync(file, exportOf(shape, [{ type: "Machine", name: "web", id }]).replaceAll(":dev:", ":prod:"));
      return file;
    };
    const named = await look(state, ["--also", other("shop/another")]);
    expect(named.report.orphans.find(({ id }) => id === `shop/${foreign}`)).toMatchObject({
      madeBy: "pulumi",
      urn: webUrn.replace("dev", "prod"),
    });
    const held = await look(state, ["--also", other(`shop/${foreign}`)]);
    expect(held.report.orphans.map(({ id }) => id)).not.toContain(`shop/${foreign}`);
  });

  test("F45: a Machine of another stack with the same name is not claimed for this stack, only as possibly its own", async () => {
    await makeApp(service, "shop");
    const ownerIn = (name: string) =>
      shape === "plugin"
        ? ownerOf(urnOf(shape, "Machine", name))
        : dynamicOwnerOf({ project: "shop", stack: "dev", type: "Machine", parent: "", name });
    const made = (name: string, stack?: string) =>
      makeMachine(service, "shop", {
        config: {
          ...image,
          metadata: { "pulumi-owner": ownerIn(name), ...(stack === undefined ? {} : { "pulumi-stack": stack }) },
        },
      });
    const web = { type: "Machine", name: "web", id: `shop/${await made("web", ours)}` };
    const around = { pending: [{ type: "Machine", name: "worker", inputs: { app: "shop" } }] };
    const others = {
      namesake: await made("web", theirs),
      older: await made("web"),
      begun: await made("worker", theirs),
      removed: await made("gone", ours),
    };
    const reported = async (held: readonly Exported[], ...args: string[]) => {
      const { code, report } = await look(exportOf(shape, held, around), args);
      expect(code).toBe(1);
      return Object.fromEntries(
        Object.entries(others).map(([name, id]) => [name, report.orphans.find((one) => one.id === `shop/${id}`)]),
      );
    };

    const known = await reported([marked(shop), web]);
    const [webUrn, workerUrn] = [urnOf(shape, "Machine", "web"), urnOf(shape, "Machine", "worker")];
    expect(known).toMatchObject({
      namesake: { madeBy: "namesake", urn: webUrn, import: null, delete: null },
      older: { madeBy: "perhaps", urn: webUrn, delete: null },
      begun: { madeBy: "perhaps", urn: workerUrn, inState: [], delete: null },
      removed: { madeBy: "perhaps", urn: null, delete: null },
    });
    expect(known["namesake"]?.remark).toMatch(/of the same name in another backend or organization/);
    expect(known["older"]?.remark).toMatch(/which cannot be distinguished\.$/);
    expect(known["removed"]?.remark).toMatch(
      /^Perhaps this stack created it for a resource that its state no longer has under the same name; an export /,
    );
    expect(Object.values(known).map((one) => one?.look)).toEqual(
      Object.values(others).map((id) => `GET /v1/apps/shop/machines/${id}`),
    );

    // A state written before ids existed cannot distinguish two stacks.
    const unknown = await reported([shop, web]);
    expect(unknown).toMatchObject({
      namesake: { madeBy: "perhaps", delete: null },
      older: { madeBy: "perhaps", delete: null },
      begun: { madeBy: "perhaps", delete: null },
      removed: { madeBy: "pulumi", delete: null },
    });

    const { code, out } = await command(service, ["orphans", "--state", "-"], {
      stdin: exportOf(shape, [marked(shop), web], around),
    });
    expect(code).toBe(1);
    expect(out).toMatch(/another of its name\n/);
    expect(out).not.toMatch(/DELETE|--delete shop|delete: /);
    expect(out).toContain("Read it first");
  });

  test("F45: an App or cluster that contains a managed resource is no orphan, whoever created it", async () => {
    const { inside, timed, cluster } = await everything();
    for (const line of [...inside, ...timed]) {
      const [type = "", id = ""] = line.split(" ");
      const lies = id.startsWith("shop/") ? ["App shop"] : [`PostgresCluster ${cluster}`];
      const { resources } = readState(exportOf(shape, [asResource(line, 0)]), "test");
      expect([...usedBy(resources)].sort(), line).toEqual(type === "PostgresAttachment" ? ["App shop", ...lies] : lies);
    }
    const roots = async (state: string, ...args: string[]) => {
      const { report } = await look(state, ["--all-apps", "--only", "App", "--only", "PostgresCluster", ...args]);
      return ids(report.orphans);
    };
    const [inApp = ""] = inside.filter((line) => line.startsWith("Machine "));
    const [inCluster = ""] = inside.filter((line) => line.startsWith("PostgresDatabase "));
    expect(await roots(exportOf(shape, [asResource(inApp, 0)]))).toEqual([`PostgresCluster ${cluster}`]);
    const other = join(folder, "other.json");
    writeFileSync(other, exportOf(shape, [asResource(inCluster, 0)]));
    const pending = [{ type: "Machine", name: "web", inputs: { app: "shop" } }];
    expect(await roots(exportOf(shape, [], { pending }), "--also", other)).toEqual([]);
  });

  test("F45: an object without a tag is never offered for deletion", async () => {
    await everything();
    const { report } = await look(exportOf(shape, []), ["--all-apps", "--snapshots"]);
    expect(report.orphans.length).toBeGreaterThan(10);
    for (const { type, id, look: request, delete: deletion } of report.orphans) {
      expect(deletion, `${type} ${id}`).toBeNull();
      const [method, path = ""] = request.split(" ");
      expect(method).toBe("GET");
      expect(JSON.stringify(await send(service, "GET", path)), `${type} ${id}`).toContain(
        id.slice(id.lastIndexOf("/") + 1),
      );
    }
  });

  test("objects that an interrupted create may have left are reported with their resource", async () => {
    await makeApp(service, "shop");
    await makeApp(service, "shop-1a2b3c4");
    const volume = await makeVolume(service, "shop", "ams");
    const ip = await make.ip("v6");
    const cluster = await makeCluster(service, "data");
    await make.secret("KEY");
    const pending: Exported[] = [
      { type: "App", name: "second", inputs: { name: "shop-1a2b3c4" } },
      { type: "Volume", name: "data", inputs: { app: "shop", name: "data" } },
      { type: "IpAssignment", name: "address", inputs: { app: "shop", type: "v6" } },
      { type: "PostgresCluster", name: "db", inputs: { name: "data" } },
      { type: "Secret", name: "other", inputs: { app: "shop", name: "OTHER", value: sealed } },
    ];
    const { report } = await look(exportOf(shape, [shop], { pending }));
    const expected = {
      [`App shop-1a2b3c4`]: "second",
      [`IpAssignment shop/${ip}`]: "address",
      [`PostgresCluster ${cluster}`]: "db",
      [`Secret shop/KEY`]: undefined,
      [`Volume shop/${volume}`]: "data",
    };
    expect(Object.fromEntries(report.orphans.map((one) => [`${one.type} ${one.id}`, one.urn]))).toEqual(
      Object.fromEntries(
        Object.entries(expected).map(([line, name]) => [
          line,
          name === undefined ? null : urnOf(shape, line.slice(0, line.indexOf(" ")), name),
        ]),
      ),
    );
    expect(report.orphans.map(({ madeBy }) => madeBy)).toEqual(Array(5).fill("unknown"));
    expect(
      report.orphans.map(({ delete: deletion }) => deletion),
      "they may as well be somebody's",
    ).toEqual(Array(5).fill(null));
  });

  test("a Machine that a run on this computer was about to create is reported as such", async () => {
    await makeApp(service, "shop");
    const op = "f".repeat(32);
    const owner = "0".repeat(32);
    const metadata = { "pulumi-op": op, "pulumi-owner": owner };
    const machine = await makeMachine(service, "shop", { name: "web", config: { ...image, metadata } });
    const intents = join(folder, "machines/intents");
    mkdirSync(intents, { recursive: true });
    const intent = { owner, op, endpoint: service.url, place: "shop", name: "web" };
    // A note of a process that cannot be alive.
    writeFileSync(join(intents, "4194399-4194398-0.jsonl"), `${JSON.stringify(intent)}\n`);
    const { report } = await look(exportOf(shape, [shop]), [], { env: { PULUMI_HOME: folder } });
    expect(report.orphans).toMatchObject([{ id: `shop/${machine}`, madeBy: "perhaps", urn: null }]);
    expect(report.orphans[0]?.remark).toMatch(
      /^An interrupted run on this computer created it, for this stack or for another one\. The next up of that stack /,
    );
    expect(readFileSync(join(intents, "4194399-4194398-0.jsonl"), "utf8"), "the note is still there").toContain(op);
  });

  test("secrets set by AppSecrets or an attachment count as managed, and names that the state hides are not guessed", async () => {
    await makeApp(service, "shop");
    for (const name of ["A", "DATABASE_URL", "STRAY"]) await make.secret(name);
    const secrets = (values: object): Exported => ({
      type: "AppSecrets",
      name: "secrets",
      id: "shop",
      inputs: { values },
    });
    const attachment = {
      type: "PostgresAttachment",
      name: "db",
      id: "c1/shop",
      inputs: { secretName: "DATABASE_URL" },
    };
    const clear = await look(exportOf(shape, [shop, secrets({ A: sealed }), attachment]));
    expect(ids(clear.report.orphans)).toEqual(["Secret shop/STRAY"]);
    const hidden = await look(exportOf(shape, [shop, secrets(sealed), attachment]));
    expect(hidden).toMatchObject({ code: 0, report: { orphans: [] } });
    expect(hidden.report.notes).toEqual([
      `The secrets of App shop are not compared: the state holds encrypted which of them ${urnOf(shape, "AppSecrets", "secrets")} sets.`,
    ]);
  });

  test("in an App that the stack only uses, only objects created for the stack are reported", async () => {
    await makeApp(service, "shared");
    const owner = shape === "plugin" ? ownerOf(urnOf(shape, "Machine", "web")) : undefined;
    const mine = owner ?? dynamicOwnerOf({ project: "shop", stack: "dev", type: "Machine", parent: "", name: "web" });
    const made = async (metadata: object) => makeMachine(service, "shared", { config: { ...image, metadata } });
    const [web, double, byOthers] = [
      await made({ "pulumi-owner": mine }),
      await made({ "pulumi-owner": mine }),
      await made({}),
    ];
    const state = exportOf(shape, [{ type: "Machine", name: "web", id: `shared/${web}` }]);
    expect(ids((await look(state)).report.orphans)).toEqual([`Machine shared/${double}`]);
    // The App itself is in use, so none of them is reported.
    expect(ids((await look(state, ["--app", "shared"])).report.orphans)).toEqual(
      [`Machine shared/${byOthers}`, `Machine shared/${double}`].sort(),
    );
  });

  test("objects being deleted, created by the platform or destroyed by themselves are neither orphans nor missing", async () => {
    await makeApp(service, "shop");
    await send(service, "POST", "/v1/apps", { name: "pg-app", org_slug: "personal", app_role_id: "postgres_cluster" });
    const volume = await makeVolume(service, "shop", "ams");
    await send(service, "DELETE", `/v1/apps/shop/volumes/${volume}`);
    const machine = await makeMachine(service, "shop", { config: image });
    await send(service, "DELETE", `/v1/apps/shop/machines/${machine}?force=true`);
    const cluster = await makeCluster(service, "data");
    await send(service, "DELETE", `/v1/postgres/${cluster}`);
    const done = { type: "Machine", name: "job", id: "shop/91852e0b2e3d68", inputs: { config: { autoDestroy: true } } };
    const read = { type: "Machine", name: "seen", id: "shop/81852e0b2e3d68", external: true };
    expect(await look(exportOf(shape, [shop, done, read]), ["--all-apps"])).toMatchObject({
      code: 0,
      report: { orphans: [], missing: [] },
    });
    // The state has the same objects, and none counts as missing.
    const held = [`Machine shop/${machine}`, `Volume shop/${volume}`, `PostgresCluster ${cluster}`].map(asResource);
    const { report } = await look(exportOf(shape, [shop, ...held]));
    expect(report.missing.map(({ type }) => type)).toEqual(["Machine", "PostgresCluster", "Volume"]);
  });

  test("a hostname that lost its last certificate is reported, but not offered for import", async () => {
    await makeApp(service, "shop");
    await make.acme("www.example.com");
    await send(service, "DELETE", "/v1/apps/shop/certificates/www.example.com/acme");
    expect((await look(exportOf(shape, [shop]))).report.orphans).toMatchObject([
      {
        type: "Hostname",
        id: "shop/www.example.com",
        import: null,
        look: "GET /v1/apps/shop/certificates/www.example.com",
        delete: null,
      },
    ]);
  });

  test("a missing App includes everything in it, once other Apps prove that the service is the right one (R8)", async () => {
    await makeApp(service, "shop");
    const lost = [
      { type: "App", name: "old", id: "old-shop" },
      { type: "Machine", name: "m", id: "old-shop/91852e0b2e3d68" },
    ];
    for (const args of [[], ["--all-apps"]]) {
      const { report } = await look(exportOf(shape, [shop, ...lost]), args);
      expect(report.missing.map(({ id }) => id)).toEqual(["old-shop", "old-shop/91852e0b2e3d68"]);
    }
    // In its own process, which has not seen the other App.
    const alone = await look(exportOf(shape, lost), [], {});
    expect(alone.code).toBe(2);
    expect(alone.err).toMatch(/^Not compared: the service knows neither App old-shop nor any other App of this run/);
  });

  test("only the attachments of a cluster that is not ready are compared", async () => {
    await makeApp(service, "shop");
    const cluster = await makeCluster(service, "is-simulate-stuck");
    await send(service, "POST", `/v1/postgres/${cluster}/attachments`, { app_name: "shop" });
    const { code, report } = await look(exportOf(shape, [{ type: "PostgresCluster", name: "db", id: cluster }]));
    expect([code, ids(report.orphans)]).toEqual([1, [`PostgresAttachment ${cluster}/shop`]]);
  });

  test("a pair of addresses covers both, and is missing when both are gone", async () => {
    await makeApp(service, "shop");
    const { ip_pair: pair } = await send<{ ip_pair: { v4: string; v6: string } }>(
      service,
      "POST",
      "/v1/apps/shop/ip_assignments",
      { type: "egress_pair" },
    );
    const held = { type: "IpAssignment", name: "out", id: `shop/${pair.v4},${pair.v6.toUpperCase()}` };
    const state = exportOf(shape, [shop, held]);
    expect(await look(state)).toMatchObject({ code: 0, report: { orphans: [], missing: [] } });
    await send(service, "DELETE", `/v1/apps/shop/ip_assignments/${pair.v4}`);
    expect(await look(state)).toMatchObject({ code: 0, report: { missing: [] } });
    await send(service, "DELETE", `/v1/apps/shop/ip_assignments/${encodeURIComponent(pair.v6)}`);
    expect(await look(state)).toMatchObject({ code: 1, report: { orphans: [], missing: [{ id: held.id }] } });
  });

  test("--only compares one type", async () => {
    const { roots, volume } = await everything();
    const { report } = await look(exportOf(shape, roots.map(asResource)), ["--only", "Volume", "--only", "SecretKey"]);
    expect(ids(report.orphans)).toEqual(["SecretKey shop/signing", `Volume shop/${volume}`]);
  });
});
