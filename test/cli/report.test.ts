// What the orphans command prints, writes and refuses.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { dynamicOwnerOf, ownerOf } from "../../provider/core/owner.ts";
import { ManualClock, seededRandom } from "../../service/index.ts";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { startService, type TestService } from "../support/startService.ts";
import { command, commandHere, type ReportJson, type Run } from "./command.ts";
import { StackFiles, stateIds } from "./stackFiles.ts";
import { exportOf, sealed, urnOf, type Around, type Exported } from "./exports.ts";

const image = { image: "registry.example.com/shop:1" };
/** The id of the state of `shop`, in the export and on the Machines created for it. */
const stack = stateIds.ours;
const shop: Exported = { type: "App", name: "shop", id: "shop", outputs: { __context: { stack } } };

let service: TestService;
let folder: string;
beforeEach(async () => {
  service = await startService({
    clock: new ManualClock(Date.parse("2026-01-31T12:00:00Z")),
    random: seededRandom("orphans"),
  });
  folder = mkdtempSync(join(tmpdir(), "machines-orphans-"));
});
afterEach(async () => {
  rmSync(folder, { recursive: true });
  await service.close();
});

async function run(args: readonly string[], more: Run = {}, by = command) {
  const { code, out, err } = await by(service, args, { cwd: folder, ...more });
  expect(out + err).not.toContain(service.token);
  return { code, out, err };
}
const runHere = (args: readonly string[], more: Run = {}) => run(args, more, commandHere);

const write = (name: string, text: string): string => {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
};

/** A stack with objects left over by a run and by another user. */
async function leftovers(shape: "dynamic" | "plugin", around: Around = {}) {
  await makeApp(service, "shop");
  const make = (name: string, owner: string) =>
    makeMachine(service, "shop", {
      name,
      region: "ams",
      config: {
        ...image,
        metadata: { "pulumi-owner": owner, "pulumi-op": "0".repeat(32), "pulumi-stack": stack },
      },
    });
  const web = await make("web", ownerOf(urnOf("plugin", "Machine", "web")));
  await make("web-2f3a", ownerOf(urnOf("plugin", "Machine", "web")));
  await makeVolume(service, "shop", "ams");
  await send(service, "POST", "/v1/apps/shop/ip_assignments", { type: "v6" });
  const held = [
    shop,
    { type: "Machine", name: "web", id: `shop/${web}` },
    { type: "Volume", name: "logs", id: "shop/vol_gone" },
  ];
  return write("state.json", exportOf(shape, held, around));
}

/** The code blocks of docs/orphans.md in a language. */
const documented = (language: string): string[] =>
  [...readFileSync(join(__dirname, "../../docs/orphans.md"), "utf8").matchAll(/```(\w+)\n(.*?)```/gs)].flatMap(
    ([, found, text = ""]) => (found === language ? [text] : []),
  );

const anywhere = (text: string): string => text.replaceAll(service.url, "https://machines.example.com");

/** Runs the command in a project whose stack has a state, in its own process. */
async function inProject(state: string, ...args: readonly string[]) {
  const files = new StackFiles(service);
  files.write("dev.json", readFileSync(state, "utf8"));
  const ran = await run(args, { cwd: files.folder, env: files.env });
  files.remove();
  return ran;
}

describe("the examples of docs/orphans.md match the command's output", () => {
  test("the examples of docs/orphans.md match the output on the plugin", async () => {
    const { code, out, err } = await inProject(await leftovers("plugin"), "orphans");
    expect([code, err]).toEqual([1, ""]);
    expect(anywhere(out)).toBe(documented("text")[0]);
  });

  test("the examples of docs/orphans.md match the output as JSON", async () => {
    const { out } = await inProject(await leftovers("plugin"), "orphans", "--json", "--only", "Machine");
    expect(JSON.parse(anywhere(out))).toEqual(JSON.parse(documented("json")[0] ?? ""));
  });

  test("dynamic resources cannot be imported, and the report says what to do instead", async () => {
    // A Release is a component with the type of a resource of the plugin.
    const state = await leftovers("dynamic", { releases: ["release"] });
    const { code, out } = await run(["orphans", "--state", state]);
    expect(code).toBe(1);
    expect(out).not.toContain("import:");
    expect(anywhere(out)).toContain(documented("text")[2]);
    const refused = await run(["orphans", "--state", state, "--import", "import.json"]);
    expect(refused).toMatchObject({ code: 2, out: "" });
    expect(refused.err).toMatch(/^pulumi-machines: --import: .* cannot be imported\. Change over to the plugin first/);
    expect(existsSync(join(folder, "import.json"))).toBe(false);
  });
});

describe("the file of --import", () => {
  test("the file of --import contains every object once, with a unique name and the parent that waits for it", async () => {
    await makeApp(service, "shop");
    const tagged = (name: string, resource: string, within?: string) =>
      makeMachine(service, "shop", {
        name,
        config: { ...image, metadata: { "pulumi-owner": ownerOf(urnOf("plugin", "Machine", resource, within)) } },
      });
    const [web, double] = [await tagged("web", "web"), await tagged("web-2f3a", "web")];
    const begun = await tagged("worker-77", "worker", "tier");
    const volumes = [await makeVolume(service, "shop", "ams"), await makeVolume(service, "shop", "fra")].sort();
    const state = exportOf("plugin", [shop, { type: "Machine", name: "web", id: `shop/${web}` }], {
      pending: [{ type: "Machine", name: "worker", within: "tier", inputs: { app: "shop" } }],
    });
    const { code, out, err } = await runHere(["orphans", "--state", "-", "--import", "import.json"], { stdin: state });
    expect(out, "a file is written").not.toContain("Nothing was changed");
    expect([code, err]).toEqual([
      1,
      "import.json is written. Remove what must not be adopted, then run: pulumi import --file import.json\n",
    ]);
    const { nameTable, resources } = JSON.parse(readFileSync(join(folder, "import.json"), "utf8")) as {
      nameTable: Record<string, string>;
      resources: { name: string; id: string; type: string; parent?: string }[];
    };
    const inOrder = [...resources].sort((a, b) => (a.id < b.id ? -1 : 1));
    expect(inOrder).toEqual(
      [
        { type: "machines:index:Machine", name: "web-2f3a", id: `shop/${double}` },
        { type: "machines:index:Machine", name: "worker", id: `shop/${begun}`, parent: "tier-1" },
        { type: "machines:index:Volume", name: "data", id: `shop/${volumes[0]}` },
        { type: "machines:index:Volume", name: "data-2", id: `shop/${volumes[1]}` },
      ].sort((a, b) => (a.id < b.id ? -1 : 1)),
    );
    expect(nameTable).toEqual({ "tier-1": "urn:pulumi:dev::shop::my:index:Tier::tier" });
  });

  test("the file of --import names a Machine that the state has lost as its resource, if that name is free", async () => {
    await makeApp(service, "shop");
    const lost = (name: string, owner: string, stateId = stack) =>
      makeMachine(service, "shop", {
        name,
        config: { ...image, metadata: { "pulumi-owner": owner, "pulumi-stack": stateId } },
      });
    const urn = (name: string, within?: string) => urnOf("plugin", "Machine", name, within);
    const worker = await lost("worker-cef12ed", ownerOf(urn("worker")));
    const copy = await lost("worker-cef12ee", ownerOf(urn("worker")));
    const inTier = await lost("my-web-0a1b2c3", ownerOf(urn("my-web", "tier")));
    const renamed = await lost("cron-1234567", ownerOf(urn("job")));
    const dynamic = { project: "shop", stack: "dev", type: "Machine", parent: "", name: "mail" };
    const mail = await lost("mail-7654321", dynamicOwnerOf(dynamic));
    const foreign = await lost("other-7654321", ownerOf(urn("other")), "ba9876543210");
    const state = exportOf("plugin", [
      shop,
      { type: "Volume", name: "worker", id: "shop/vol_1" },
      { type: "Secret", name: "key", id: "shop/KEY", within: "tier" },
    ]);
    const { out } = await runHere(["orphans", "--state", "-", "--json", "--only", "Machine"], { stdin: state });
    const { orphans: found } = JSON.parse(out) as ReportJson;
    const adopts = Object.fromEntries(found.map(({ id, import: way }) => [id, way]));
    const tier = " --parent parent=urn:pulumi:dev::shop::my:index:Tier::tier";
    expect([worker, copy].map((id) => adopts[`shop/${id}`]).sort()).toEqual([
      expect.stringMatching(/^pulumi import machines:index:Machine worker shop\/\w+$/),
      expect.stringMatching(/^pulumi import machines:index:Machine worker-cef12e[de] shop\/\w+$/),
    ] as string[]);
    expect(adopts).toMatchObject({
      [`shop/${inTier}`]: `pulumi import machines:index:Machine my-web shop/${inTier}${tier}`,
      [`shop/${renamed}`]: `pulumi import machines:index:Machine cron-1234567 shop/${renamed}`,
      [`shop/${mail}`]: `pulumi import machines:index:Machine mail shop/${mail}`,
      [`shop/${foreign}`]: `pulumi import machines:index:Machine other-7654321 shop/${foreign}`,
    });
    expect(found.find(({ id }) => id === `shop/${inTier}`)).toMatchObject({
      madeBy: "perhaps",
      urn: urn("my-web", "tier"),
      delete: null,
      remark: `Perhaps this stack created it for ${urn("my-web", "tier")}, which its state no longer has; an export does not say which other stacks there are.`,
    });
  });

  test("the file of --import leaves out Machines of other stacks, and Apps with these, unless they are named", async () => {
    for (const app of ["shop", "blog", "wiki"]) await makeApp(service, app);
    const tagged = (app: string, owner: string, stateId: string) =>
      makeMachine(service, app, {
        config: { ...image, metadata: { "pulumi-owner": owner, "pulumi-stack": stateId } },
      });
    const elsewhere = ownerOf("urn:pulumi:prod::blog::machines:index:Machine::web");
    const theirs = [await tagged("shop", elsewhere, "ba9876543210"), await tagged("blog", elsewhere, "ba9876543210")];
    const lost = await tagged("blog", ownerOf(urnOf("plugin", "Machine", "lost")), stack);
    const [disk, theirDisk] = [await makeVolume(service, "shop", "ams"), await makeVolume(service, "blog", "ams")];
    const byHand = await makeMachine(service, "wiki", { config: image });
    const written = async (...args: string[]) => {
      const all = ["orphans", "--state", "-", "--all-apps", "--import", "import.json", ...args];
      const { code, err } = await runHere(all, { stdin: exportOf("plugin", [shop]) });
      const file = join(folder, "import.json");
      if (!existsSync(file)) return { code, err, ids: [] };
      const { resources } = JSON.parse(readFileSync(file, "utf8")) as { resources: { id: string }[] };
      rmSync(file);
      return { code, err, ids: resources.map(({ id }) => id).sort() };
    };
    const own = [`blog/${lost}`, `shop/${disk}`, "wiki", `wiki/${byHand}`];
    const first = await written();
    expect(first).toMatchObject({ code: 1, ids: own.sort() });
    expect(first.err).toContain(
      `Left out, because Pulumi created them for another stack: App blog and all in it, Machine shop/${theirs[0]}. ` +
        `If that stack is gone, or its state is lost, add --include blog shop/${theirs[0]}\n`,
    );
    const included = await written("--include", "blog", `shop/${theirs[0]}`);
    const more = ["blog", `blog/${theirDisk}`, `blog/${theirs[1]}`, `shop/${theirs[0]}`];
    expect(included.ids).toEqual([...own, ...more].sort());
    expect(included.err).not.toContain("Left out");
    expect((await written("--include", `shop/${theirs[0]}`)).ids).toEqual([...own, `shop/${theirs[0]}`].sort());
    expect(await written("--include", "none")).toEqual({
      code: 2,
      err: "pulumi-machines: --include none: no orphan with this ID can be imported\n",
      ids: [],
    });
  });

  test("the file of --import is never overwritten, and not written when there is nothing to import", async () => {
    const state = await leftovers("plugin");
    write("import.json", "mine");
    const again = await runHere(["orphans", "--state", state, "--import", "import.json"]);
    expect(again).toMatchObject({
      code: 2,
      err: expect.stringMatching(/import\.json .*it exists already; choose another/) as string,
    });
    expect(readFileSync(join(folder, "import.json"), "utf8")).toBe("mine");
    const none = await runHere(["orphans", "--state", state, "--only", "SecretKey", "--import", "new.json"]);
    expect(none).toMatchObject({ code: 0, err: "There is nothing to import: new.json is not written.\n" });
    expect(existsSync(join(folder, "new.json"))).toBe(false);
  });
});

describe("providers declared in the program", () => {
  const staging = (inputs: object) =>
    exportOf("plugin", [{ ...shop, provider: "staging" }], { providers: { staging: { ...inputs } } });
  const endpoints = (out: string) => (JSON.parse(out) as ReportJson).places;

  test("lead to their own endpoint, and imports use them", async () => {
    await makeApp(service, "shop");
    const volume = await makeVolume(service, "shop", "ams");
    const state = staging({ endpoint: `${service.url}/v1`, organization: "personal" });
    const { code, out } = await runHere(["orphans", "--state", "-", "--json", "--import", "import.json"], {
      stdin: state,
      env: { MACHINES_ENDPOINT: "http://127.0.0.1:1" },
    });
    expect(code).toBe(1);
    expect(endpoints(out)).toEqual([{ endpoint: service.url, organization: "personal", provider: "staging" }]);
    const urn = "urn:pulumi:dev::shop::pulumi:providers:machines::staging";
    expect((JSON.parse(out) as ReportJson).orphans).toMatchObject([
      {
        provider: "staging",
        import: `pulumi import machines:index:Volume data shop/${volume} --provider provider=${urn}`,
      },
    ]);
    expect(JSON.parse(readFileSync(join(folder, "import.json"), "utf8"))).toEqual({
      nameTable: { "staging-1": urn },
      resources: [{ type: "machines:index:Volume", name: "data", id: `shop/${volume}`, provider: "staging-1" }],
    });
  });

  test("a token that is encrypted in the state must be given, and the environment's token is not sent there by default", async () => {
    await makeApp(service, "shop");
    const state = staging({ endpoint: service.url, token: sealed });
    const before = service.requests.length;
    const first = await runHere(["orphans", "--state", "-"], { stdin: state });
    expect(first).toMatchObject({ code: 2, out: "" });
    expect(first.err).toBe(
      "Not compared: provider staging was not read: its token cannot be read, because the state holds secrets encrypted. Run this again with --provider staging and MACHINES_TOKEN set.\n",
    );
    expect(service.requests).toHaveLength(before);
    expect(await runHere(["orphans", "--state", "-", "--provider", "staging"], { stdin: state })).toMatchObject({
      code: 0,
      err: "",
    });
    expect(await runHere(["orphans", "--state", "-", "--provider", "prod"], { stdin: state })).toMatchObject({
      code: 2,
      err: 'pulumi-machines: the state holds no provider "prod"; it holds staging\n',
    });
  });

  test("an object of one provider is no orphan for another provider, however its endpoint is spelled", async () => {
    await makeApp(service, "shop");
    await makeApp(service, "blog");
    const state = (endpoint: string) =>
      exportOf("plugin", [shop, { type: "App", name: "blog", id: "blog", provider: "staging" }], {
        providers: { staging: { endpoint } },
      });
    const all = (text: string) =>
      runHere(["orphans", "--state", "-", "--all-apps", "--only", "App", "--json"], { stdin: text });
    expect(await all(state(service.url))).toMatchObject({ code: 0, err: "" });
    const elsewhere = await all(state("http://127.0.0.1:1"));
    expect(elsewhere.code).toBe(2);
    expect(JSON.parse(elsewhere.out)).toMatchObject({
      orphans: [],
      heldElsewhere: [{ type: "App", id: "blog", stack: "dev", endpoint: "http://127.0.0.1:1" }],
    });
    expect(elsewhere.err).toMatch(/^Not compared: .*127\.0\.0\.1:1/);
  });
});

describe("errors are one sentence, with exit code 2", () => {
  const empty = exportOf("plugin", []);
  test.each<[string, readonly string[], string, RegExp, Run?]>([
    [
      "no JSON",
      ["--state", "-"],
      "no, my s3cret",
      /^pulumi-machines: standard input is no export of a stack; `pulumi stack export --file state\.json` writes one\n$/,
    ],
    ["no export", ["--state", "-"], "[]", /is no export of a stack/],
    ["a missing file", ["--state", "none.json"], "", /none\.json cannot be read: ENOENT/],
    ["a missing second file", ["--state", "-", "--also", "none.json"], empty, /none\.json cannot be read/],
    [
      "an empty state",
      ["--state", "-"],
      empty,
      /^Not compared: stack dev of shop holds no App and no cluster, so there is nothing to compare: name an App with --app, or compare the whole organization with --all-apps\n$/,
    ],
    [
      "a misspelt type",
      ["--state", "-", "--only", "Machin"],
      empty,
      /--only Machin: no such type is compared; did you mean Machine\?/,
    ],
    ["a type that cannot be compared", ["--state", "-", "--only", "Signature"], empty, /no such type is compared/],
    [
      "an unknown option",
      ["--everything"],
      "",
      /^error: unknown option '--everything'\n\(add --help for the options\)\n$/,
    ],
    [
      "an App besides all of them",
      ["--state", "-", "--all-apps", "--app", "shop"],
      empty,
      /^pulumi-machines: --app and --all-apps cannot be combined: --all-apps compares every App\n$/,
    ],
    ["--include alone", ["--state", "-", "--include", "shop"], empty, /--include goes with --import\n$/],
    ["a missing folder", ["--cwd", "nowhere"], "", /--cwd nowhere: ENOENT/],
    [
      "no endpoint",
      ["--state", "-", "--all-apps"],
      empty,
      /^pulumi-machines: no endpoint: set the service's base URL/,
      { env: { MACHINES_ENDPOINT: "" } },
    ],
    [
      "a wrong token",
      ["--state", "-", "--all-apps"],
      empty,
      /^Not compared: apps\.list answered 401: .*The token from MACHINES_TOKEN is not known to the service, or has expired/,
      { env: { MACHINES_TOKEN: "wr0ng" } },
    ],
    [
      "nobody there",
      ["--state", "-", "--all-apps"],
      empty,
      /^Not compared: .*http:\/\/127\.0\.0\.1:1\b/,
      { env: { MACHINES_ENDPOINT: "http://127.0.0.1:1", MACHINES_RETRIES: "0" } },
    ],
    [
      "no Pulumi CLI",
      [],
      "",
      /^pulumi-machines: the Pulumi CLI was not found: install it \(https:.*\) and put `pulumi` on your PATH\n$/,
      { env: { PATH: "/nowhere" } },
    ],
  ])("an error is one sentence with exit code 2: %s", async (_, args, stdin, sentence, more = {}) => {
    const { code, out, err } = await run(["orphans", ...args], { stdin, ...more });
    expect([code, out]).toEqual([2, ""]);
    expect(err).toMatch(sentence);
    expect(err).not.toContain("s3cret");
    expect(err).not.toContain("wr0ng");
    expect(err, "no stack of ours").not.toMatch(/\n +at /);
  });

  test("a missing App is an incomplete comparison", async () => {
    const { code, out, err } = await runHere(["orphans", "--state", "-", "--app", "none"], { stdin: empty });
    expect([code, err]).toEqual([2, `Not compared: there is no App none at ${service.url}\n`]);
    expect(out).toMatch(/no orphans\. Not everything could be compared\.\n$/);
  });

  test("a hidden list does not hide other results, but makes the comparison incomplete", async () => {
    const state = await leftovers("plugin");
    service.fail({ operation: "volumes.list", status: 403, times: 2 });
    const { code, out, err } = await runHere(["orphans", "--state", state, "--json"]);
    expect(code).toBe(1);
    expect((JSON.parse(out) as ReportJson).orphans.map(({ type }) => type)).toEqual(["IpAssignment", "Machine"]);
    expect(err).toMatch(/^Not compared: Volume in App shop: volumes\.list answered 403/);
    const alone = await runHere(["orphans", "--state", state, "--only", "Volume"]);
    expect(alone.code).toBe(2);
    expect(alone.out).toMatch(/no orphans\. Not everything could be compared\.\n$/);
  });
});
