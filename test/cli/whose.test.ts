// Whose an object is where a state was copied, moved, or has the same name elsewhere, with a CLI that answers from files.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { backendId } from "../../provider/core/backend.ts";
import { dynamicOwnerOf, ownerOf } from "../../provider/core/owner.ts";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { thoroughTest } from "../support/thorough.ts";
import type { ReportJson } from "./command.ts";
import { exportOf, shapes, urnOf, type Exported, type Shape } from "./exports.ts";
import { inStack, marked, StackFiles, stateIds } from "./stackFiles.ts";

const { ours, theirs, copied } = stateIds;
const image = { image: "registry.example.com/shop:1" };
const shop = marked({ type: "App", name: "shop", id: "shop" });

let service: TestService;
let files: StackFiles;
beforeEach(async () => {
  service = await startService();
  files = new StackFiles(service, "organization/blog/live");
  await makeApp(service, "shop");
});
afterEach(async () => {
  files.remove();
  await service.close();
});

const ownerIn = (shape: Shape, name: string, type = "Machine"): string =>
  shape === "plugin"
    ? ownerOf(urnOf(shape, type, name))
    : dynamicOwnerOf({ project: "shop", stack: "dev", type, parent: "", name });
let created = 0;
const made = async (owner: string, state: string, more: Readonly<Record<string, string>> = {}): Promise<string> => {
  const metadata = { "pulumi-owner": owner, "pulumi-op": "0".repeat(32), "pulumi-stack": state, ...more };
  const name = `made-${++created}`;
  return `shop/${await makeMachine(service, "shop", { name, region: "ams", config: { ...image, metadata } })}`;
};
const state = (shape: Shape, ...resources: readonly Exported[]): void =>
  files.write("dev.json", exportOf(shape, [shop, ...resources]));
const machines = async (): Promise<string[]> =>
  (await send<{ id: string }[]>(service, "GET", "/v1/apps/shop/machines")).map(({ id }) => `shop/${id}`);
const found = async (id: string) => (await files.report()).orphans.find((one) => one.id === id);

describe.each(shapes)("F59: a state of the %s binding", (shape) => {
  /** Tells that an object may be this stack's, and deletes it only for its name. */
  async function byNameOnly(id: string, doubt: RegExp): Promise<void> {
    const begin = service.requests.length;
    expect(await found(id)).toMatchObject({
      madeBy: "perhaps",
      delete: null,
      remark: expect.stringMatching(doubt) as string,
    });
    const text = (await files.orphans()).out;
    expect(text).not.toMatch(/ {3}this stack\n| --delete shop/);
    const refused = await files.orphans("--delete", id, "--yes", "--allow-data-loss");
    expect([refused.code, refused.out]).toEqual([1, ""]);
    expect(refused.err).toMatch(
      new RegExp(`Not deleted: ${id}: nothing proves that this stack owns it \\(.*add --confirm ${id}\\.`),
    );
    expect(service.requests.slice(begin).filter(isWrite)).toEqual([]);
    const named = await files.orphans("--delete", id, "--confirm", id, "--yes");
    expect(named.out).toContain(`deleted Machine ${id}\n`);
  }

  test("a state with its own id proves whose an object is, and the report shows the command that deletes it", async () => {
    const [web, copy] = [await made(ownerIn(shape, "web"), ours), await made(ownerIn(shape, "web"), ours)];
    state(shape, marked({ type: "Machine", name: "web", id: web }));
    expect(await found(copy)).toMatchObject({
      madeBy: "stack",
      delete: `npx pulumi-machines orphans --delete ${copy}`,
    });
    expect(await files.orphans("--delete", copy, "--yes")).toMatchObject({ code: 0, err: "" });
  });

  test("copied from another backend does not claim what that one may have made", async () => {
    const [web, copy] = [await made(ownerIn(shape, "web"), copied), await made(ownerIn(shape, "web"), copied)];
    state(shape, marked({ type: "Machine", name: "web", id: web }, copied));
    await byNameOnly(copy, /its state is from another backend, where it may live on\.$/);
  });

  test("a state does not claim what its copy in another backend made since, and never deletes it", async () => {
    const [web, late] = [await made(ownerIn(shape, "web"), ours), await made(ownerIn(shape, "web"), copied)];
    state(shape, marked({ type: "Machine", name: "web", id: web }));
    expect(await found(late)).toMatchObject({ madeBy: "namesake", import: null, delete: null });
    const refused = await files.orphans("--delete", late, "--confirm", late, "--yes");
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toMatch(/another backend or organization, or one that is lost; delete it with its program/);
  });

  test("a state that another stack of the backend shares proves nothing", async () => {
    const [web, copy] = [await made(ownerIn(shape, "web"), ours), await made(ownerIn(shape, "web"), ours)];
    state(shape, marked({ type: "Machine", name: "web", id: web }));
    const moved = marked({ type: "Machine", name: "moved", id: "shop/none" });
    files.write("organization-blog-live.json", inStack("live", [moved], "blog"));
    await byNameOnly(copy, /stack organization\/blog\/live has the same state, copied or moved, and may own it\.$/);
  });

  test("a state does not claim what an older version or an unread stack may own", async () => {
    const [web, copy] = [await made(ownerIn(shape, "web"), ours), await made(ownerIn(shape, "web"), ours)];
    state(shape, marked({ type: "Machine", name: "web", id: web }));
    files.write("refuses-organization-blog-live", "");
    const { err } = await files.orphans();
    expect(err).toMatch(/^Not compared: stack organization\/blog\/live, whose objects cannot be distinguished: /);
    await byNameOnly(copy, /stack organization\/blog\/live could not be read, and may own it\.$/);
    const older = await made(ownerIn(shape, "web"), "0123456789ab");
    state(shape, marked({ type: "Machine", name: "web", id: web }, "0123456789ab"));
    files.stacks();
    await byNameOnly(older, /an older version created it, which did not note the backend\.$/);
  });

  // The journal and its notes are the same in both bindings.
  (shape === "plugin" ? test : thoroughTest)(
    "a state does not claim the Machine of an interrupted run of the same stack in another backend",
    async () => {
      const web = await made(ownerIn(shape, "web"), ours);
      state(shape, marked({ type: "Machine", name: "web", id: web }));
      const op = "e".repeat(32);
      const begun = await made(ownerIn(shape, "web"), copied.replace(/^\w/, "f"), { "pulumi-op": op });
      const intents = join(files.folder, "machines/intents");
      mkdirSync(intents, { recursive: true });
      const from = backendId({ PULUMI_BACKEND_URL: "https://other.example.com" });
      const note = (more: object) => {
        const intent = { owner: ownerIn(shape, "web"), op, endpoint: service.url, place: "shop", name: "web", ...more };
        writeFileSync(join(intents, "4194399-4194398-0.jsonl"), `${JSON.stringify(intent)}\n`);
      };
      for (const more of [{ backend: from }, {}]) {
        note(more);
        const { out } = await files.orphansApart("--json");
        const { orphans } = JSON.parse(out) as ReportJson;
        // A note of an older version does not say which backend it is from.
        const madeBy = "backend" in more ? "namesake" : "perhaps";
        expect(orphans).toMatchObject([{ id: begun, madeBy, delete: null }]);
        expect((await files.orphansApart()).out).not.toMatch(/ {3}this stack\n| --delete shop/);
        expect(await files.orphansApart("--delete", begun, "--yes")).toMatchObject({ code: 1, out: "" });
      }
      expect(await machines()).toContain(begun);
    },
  );

  test("a fleet that went to a stack of another project and came back is deleted in neither", async () => {
    const owner = ownerIn(shape, "web", "Fleet");
    await made(owner, ours, { "pulumi-fleet": "web", "pulumi-fleet-phase": "serving" });
    const fleet = marked({ type: "Fleet", name: "web", id: "shop/web" });
    const refused = async (whose: RegExp) => {
      const { code, out, err } = await files.orphans("--delete", "shop/web", "--confirm", "shop/web", "--yes");
      expect([code, out]).toEqual([1, ""]);
      expect(err).toMatch(whose);
    };
    state(shape);
    files.write("organization-blog-live.json", inStack("live", [fleet], "blog"));
    expect(await files.report()).toMatchObject({
      orphans: [],
      heldElsewhere: [{ type: "Fleet", id: "shop/web", stack: "organization/blog/live" }],
    });
    await refused(
      /^Not deleted: shop\/web: it belongs to stack organization\/blog\/live; delete it there, with its program\.$/m,
    );
    state(shape, fleet);
    files.write("organization-blog-live.json", inStack("live", [], "blog"));
    expect(await files.report()).toMatchObject({ orphans: [], heldElsewhere: [] });
    await refused(
      /^Not deleted: shop\/web: stack dev holds it as .*; remove it from the program, and run `pulumi up`\.$/m,
    );
    expect(await machines()).toHaveLength(1);
  });
});

test("F59: a fleet whose Machines have several owners, or states, is not this stack's", async () => {
  const of = (name: string) => ({ "pulumi-fleet": name, "pulumi-fleet-phase": "serving" });
  const owner = (name: string) => ownerIn("plugin", name, "Fleet");
  await made(owner("web"), ours, of("web"));
  await made(owner("web"), ours, of("web"));
  await made(owner("api"), ours, of("api"));
  await made(owner("api"), theirs, of("api"));
  await made(owner("mix"), ours, of("mix"));
  await made(owner("other"), ours, of("mix"));
  const lost = ["web", "api", "mix"].map((name) => marked({ type: "Fleet", name, id: `shop/${name}-2` }));
  state("plugin", ...lost);
  const all = (await files.report()).orphans;
  expect(Object.fromEntries(all.map(({ id, madeBy, delete: command }) => [id, [madeBy, command !== null]]))).toEqual({
    "shop/web": ["stack", true],
    "shop/api": ["perhaps", false],
    "shop/mix": ["pulumi", false],
  });
});

test("F59: an export alone proves nothing, because it does not say which backend it is from", async () => {
  const [web, copy] = [await made(ownerIn("plugin", "web"), ours), await made(ownerIn("plugin", "web"), ours)];
  state("plugin", marked({ type: "Machine", name: "web", id: web }));
  const report = await files.report("--state", "dev.json");
  expect(report.orphans).toMatchObject([
    { id: copy, madeBy: "perhaps", delete: null, remark: expect.stringMatching(/; an export does not say /) as string },
  ]);
});

test("F59: a stack of the same name in another project is another stack", async () => {
  files.stacks("organization/blog/dev");
  const volume = `shop/${await makeVolume(service, "shop", "ams")}`;
  state("plugin");
  const disk = marked({ type: "Volume", name: "disk", id: volume }, theirs);
  files.write("organization-blog-dev.json", inStack("dev", [disk], "blog"));
  expect(await files.report()).toMatchObject({
    orphans: [],
    heldElsewhere: [{ id: volume, stack: "organization/blog/dev" }],
  });
  // Also for a stack that the user names with its project.
  files.write("organization-shop-dev.json", exportOf("plugin", [shop]));
  expect(await files.report("--stack", "organization/shop/dev")).toMatchObject({ heldElsewhere: [{ id: volume }] });
});

test("F59: if PULUMI_OPTION_STACK names the stack, the selected one is another stack", async () => {
  files.stacks("prod");
  const volume = `shop/${await makeVolume(service, "shop", "ams")}`;
  state("plugin", marked({ type: "Volume", name: "disk", id: volume }));
  files.write("prod.json", inStack("prod", [marked({ type: "App", name: "shop", id: "shop" }, theirs)]));
  const meant = { PULUMI_OPTION_STACK: "prod" };
  const report = JSON.parse((await files.run(["orphans", "--json"], meant)).out) as ReportJson;
  expect(report).toMatchObject({ stack: "prod", orphans: [], heldElsewhere: [{ id: volume, stack: "dev" }] });
  const words = ["orphans", "--delete", volume, "--confirm", volume, "--yes", "--allow-data-loss"];
  const refused = await files.run(words, meant);
  expect(refused).toMatchObject({ code: 1, out: "" });
  expect(refused.err).toContain(`Not deleted: ${volume}: it belongs to stack dev of this project`);
  // An empty variable counts as none, as for the CLI.
  expect(JSON.parse((await files.run(["orphans", "--json"], { PULUMI_OPTION_STACK: "" })).out)).toMatchObject({
    stack: "dev",
    orphans: [],
    heldElsewhere: [],
  });
});

test("F59: a stack of the same project and name in another organization is another stack", async () => {
  // `me` is the default organization, which the CLI leaves out of the list.
  files.stacks("acme/dev");
  const volume = `shop/${await makeVolume(service, "shop", "ams")}`;
  state("plugin");
  files.write("me-shop-dev.json", exportOf("plugin", [shop]));
  files.write("acme-dev.json", inStack("dev", [marked({ type: "Volume", name: "disk", id: volume }, theirs)]));
  files.write("acme-shop-dev.json", inStack("dev", [marked({ type: "Volume", name: "disk", id: volume }, theirs)]));
  for (const named of [[], ["--stack", "me/shop/dev"], ["--stack", "dev"]])
    expect(await files.report(...named), named.join(" ")).toMatchObject({
      orphans: [],
      heldElsewhere: [{ id: volume, stack: "acme/dev" }],
    });
  for (const name of ["acme/dev", "acme/shop/dev"]) {
    const { heldElsewhere } = await files.report("--app", "shop", "--stack", name);
    expect(heldElsewhere, name).toMatchObject([{ type: "App", id: "shop", stack: "dev" }]);
  }
  const words = ["--stack", "me/shop/dev", "--delete", volume, "--confirm", volume, "--yes", "--allow-data-loss"];
  const refused = await files.orphans(...words);
  expect(refused).toMatchObject({ code: 1, out: "" });
  expect(refused.err).toContain(`Not deleted: ${volume}: it belongs to stack acme/dev of this project`);
});

test("F59: a copy in the same backend is not the stack that its state names", async () => {
  files.stacks("prod");
  const [web, late] = [await made(ownerIn("plugin", "web"), ours), await made(ownerIn("plugin", "web"), ours)];
  const held = [shop, marked({ type: "Machine", name: "web", id: web })];
  // Imported with --force: its URNs still name stack prod.
  files.write("dev.json", inStack("prod", held));
  files.write("prod.json", inStack("prod", [...held, marked({ type: "Machine", name: "late", id: late })]));
  expect(await files.report()).toMatchObject({ orphans: [], heldElsewhere: [{ id: late, stack: "prod" }] });
  const refused = await files.orphans("--delete", late, "--confirm", late, "--yes");
  expect(refused).toMatchObject({ code: 1, out: "" });
  expect(refused.err).toContain(`Not deleted: ${late}: it belongs to stack prod of this project`);
});
