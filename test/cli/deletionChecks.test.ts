// What is checked again immediately before each deletion of an orphan, with a CLI that answers from files.
import { once } from "node:events";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ownerOf } from "../../provider/core/owner.ts";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { exportOf, urnOf } from "./exports.ts";
import { marked, StackFiles, stateIds } from "./stackFiles.ts";
import { hang } from "../support/patience.mts";

const image = { image: "registry.example.com/shop:1" };
const shop = marked({ type: "App", name: "shop", id: "shop" });

let service: TestService;
let files: StackFiles;
beforeEach(async () => {
  service = await startService();
  files = new StackFiles(service, "organization/blog/live");
  files.write("dev.json", exportOf("plugin", [shop]));
  await makeApp(service, "shop");
});
afterEach(async () => {
  files.remove();
  await service.close();
});

const volumes = async (): Promise<string[]> =>
  (await send<{ id: string; state: string }[]>(service, "GET", "/v1/apps/shop/volumes")).flatMap(({ id, state }) =>
    /destroy/.test(state) ? [] : [`shop/${id}`],
  );
const machines = async (): Promise<string[]> =>
  (await send<{ id: string }[]>(service, "GET", "/v1/apps/shop/machines")).map(({ id }) => `shop/${id}`);
const mounting = (volume: string) => ({
  ...image,
  mounts: [{ volume: volume.slice("shop/".length), path: "/data" }],
});
const makeDisk = async (): Promise<string> => `shop/${await makeVolume(service, "shop", "ams")}`;
const make = async (name: string, config: object = image): Promise<string> =>
  `shop/${await makeMachine(service, "shop", { name, region: "ams", config })}`;
/** A Machine that the stack has created twice: the tags prove whose the copy is. */
async function copyOfWeb(): Promise<string> {
  const tags = {
    "pulumi-owner": ownerOf(urnOf("plugin", "Machine", "web")),
    "pulumi-op": "0".repeat(32),
    "pulumi-stack": stateIds.ours,
  };
  const [web, copy] = [
    await make("web", { ...image, metadata: tags }),
    await make("web-copy", { ...image, metadata: tags }),
  ];
  files.write("dev.json", exportOf("plugin", [shop, marked({ type: "Machine", name: "web", id: web })]));
  return copy;
}
/** Deletes what is named, with everything that agrees to it. */
const agreed = (...ids: readonly string[]) =>
  files.orphans("--delete", ...ids, "--confirm", ...ids, "--yes", "--allow-data-loss");
/** Deletions that the service got since. */
const deletionsSince = (begin: number): readonly string[] =>
  service.requests
    .slice(begin)
    .flatMap((seen) => (isWrite(seen) && seen.method === "DELETE" ? [seen.operation ?? ""] : []));

test("F58: a volume that a Machine of others mounts is refused at once, and the message names the Machine and the next step", async () => {
  const disk = await makeDisk();
  const machine = await make("theirs", mounting(disk));
  const begin = service.requests.length;
  expect(await agreed(disk)).toMatchObject({
    code: 1,
    out: "",
    err: `Not deleted: ${disk}: Machine ${machine} mounts it. If no one needs that Machine, name it, too: --delete ${machine} ${disk}.\nNothing was changed.\n`,
  });
  expect(service.requests.slice(begin).filter(isWrite)).toEqual([]);
  expect((await files.report("--only", "Volume")).orphans).toMatchObject([
    { id: disk, remark: `Machine ${machine} mounts it.`, delete: null },
  ]);
  // Of a Machine that a stack holds, the program has to give it up.
  const held = marked({ type: "Machine", name: "theirs", id: machine }, stateIds.theirs);
  files.write("organization-blog-live.json", exportOf("plugin", [held]).replaceAll(":dev::shop:", ":live::blog:"));
  expect((await agreed(disk)).err).toBe(
    `Not deleted: ${disk}: Machine ${machine}, which belongs to stack organization/blog/live, mounts it. Remove the mount with the program of that Machine first.\nNothing was changed.\n`,
  );
  expect(await volumes()).toEqual([disk]);
});

test("F58: with the Machine that mounts it, a volume is deleted once it is released", async () => {
  const disk = await makeDisk();
  const machine = await make("store", mounting(disk));
  const done = await agreed(disk, machine);
  expect(done).toMatchObject({ code: 0, err: "" });
  expect(done.out).toMatch(new RegExp(`deleted Machine ${machine}\ndeleted Volume ${disk}\n$`));
});

test.each([
  ["before the first deletion", "true", 1],
  [
    "after the deletion of the Machine that mounted it",
    `(await send("GET", "/v1/apps/shop/machines")).length === 0`,
    0,
  ],
])("F58: a volume that a Machine of others mounts %s is kept", async (_, when, code) => {
  const disk = await makeDisk();
  const machine = await make("store", when === "true" ? image : mounting(disk));
  // The second export and every later one are the checks.
  files.hook(`if (existsSync("asked") && !existsSync("mounted") && (${when})) {
  const body = ${JSON.stringify({ name: "theirs", region: "ams", config: mounting(disk) })};
  writeFileSync("mounted", "shop/" + (await send("POST", "/v1/apps/shop/machines", body)).id);
}`);
  const begin = service.requests.length;
  const { code: ended, out, err } = await agreed(disk, machine);
  expect(ended).toBe(1);
  expect(err).toMatch(
    code === 1
      ? new RegExp(`^Not deleted: ${disk}: Machine shop/\\w+ mounts it by now\\.\n$`)
      : new RegExp(`^Not deleted: Volume ${disk}: Machine shop/\\w+ mounts it by now\\.\n$`),
  );
  expect(out).toContain(code === 1 ? "Nothing was changed." : `deleted Machine ${machine}\n`);
  expect(deletionsSince(begin)).toEqual(code === 1 ? [] : ["machines.destroy"]);
  expect(await volumes()).toEqual([disk]);
});

test("F58: a wait says what it waits for, and a Machine that a run adopts meanwhile is kept", async () => {
  const copy = await copyOfWeb();
  const path = `/v1/apps/shop/machines/${copy.slice("shop/".length)}/lease`;
  const { data } = await send<{ data: { nonce: string } }>(service, "POST", path, { ttl: 600, description: "theirs" });
  const begin = service.requests.length;
  const ending = files.orphans("--delete", copy, "--yes");
  const waits = () =>
    service.requests
      .slice(begin)
      .filter(({ operation, status }) => operation === "machines.acquireLease" && status === 409);
  await expect.poll(() => waits().length, { timeout: hang }).toBeGreaterThan(0);
  const adopted = marked({ type: "Machine", name: "second", id: copy });
  files.write("dev.json", exportOf("plugin", [shop, adopted]));
  await send(service, "DELETE", path, undefined, { "svc-machine-lease-nonce": data.nonce });
  const { code, err } = await ending;
  expect([code, err.split("\n")]).toEqual([
    1,
    [
      expect.stringMatching(new RegExp(`^Machine ${copy}: waiting for the lease of Machine \\w+: `)),
      `Not deleted: Machine ${copy}: the stack holds it by now.`,
      "",
    ],
  ]);
  expect(await machines()).toContain(copy);
  expect(deletionsSince(begin)).not.toContain("machines.destroy");
});

/** Presses ^C in this process, in which the command runs. */
async function interrupt(): Promise<void> {
  const came = once(process, "SIGINT");
  process.kill(process.pid, "SIGINT");
  await came;
}

test("F58: ^C ends the wait for a lease, and nothing is deleted", async () => {
  const [machine, disk] = [await make("web"), await makeDisk()];
  await send(service, "POST", `${path(machine)}/lease`, { ttl: 600, description: "theirs" });
  const begin = service.requests.length;
  const ending = agreed(machine, disk);
  const waits = () => service.requests.slice(begin).filter(({ status }) => status === 409);
  await expect.poll(() => waits().length, { timeout: hang }).toBeGreaterThan(0);
  await interrupt();
  const { code, err } = await ending;
  expect([code, err.split("\n").slice(1)]).toEqual([
    1,
    [`Not deleted: Machine ${machine}: interrupted.`, `Not deleted: Volume ${disk}: interrupted.`, ""],
  ]);
  expect(deletionsSince(begin)).toEqual([]);
  expect([await machines(), await volumes()]).toEqual([[machine], [disk]]);
});

test("F58: after ^C, the deletion that has begun is finished, and no other one begins", async () => {
  const [machine, disk] = [await make("web"), await makeDisk()];
  // After this, the stacks that were read are no longer current.
  service.fail({ operation: "machines.stop", when: "after", delayMs: 2500 });
  // ^C reaches both this process and the CLI, which ends.
  files.hook(`if (!existsSync("done") && (await send("GET", "${path(machine)}")).state === "stopped") {
  writeFileSync("done", "");
  process.kill(${process.pid}, "SIGINT");
  process.kill(process.ppid, "SIGKILL");
}`);
  const begin = service.requests.length;
  const { code, out, err } = await agreed(machine, disk);
  expect([code, err]).toEqual([1, `Not deleted: Volume ${disk}: interrupted.\n`]);
  expect(out).toContain(`deleted Machine ${machine}\n`);
  expect(files.has("done")).toBe(true);
  expect(deletionsSince(begin)).toEqual(["machines.destroy"]);
  expect(await volumes()).toEqual([disk]);
});

const path = (id: string): string => `/v1/apps/${id.replace("/", "/machines/")}`;
const replaceTag = (copy: string): string =>
  `await send("POST", "${path(copy)}/metadata/pulumi-owner", { value: "${"f".repeat(32)}" });`;
const hold = (copy: string): string => {
  const state = exportOf("plugin", [marked({ type: "Machine", name: "web", id: copy }, stateIds.theirs)]);
  return `writeFileSync("organization-blog-live.json", ${JSON.stringify(state.replaceAll(":dev::shop:", ":live::blog:"))});`;
};
const refuse = (): string => `writeFileSync("refuses-organization-blog-live", "");`;

test.each<[string, (copy: string) => string, RegExp]>([
  ["its tags change", replaceTag, /another object has its ID by now, or its tags have changed\./],
  ["another stack gets it", hold, /it belongs to stack organization\/blog\/live by now\./],
  [
    "another stack cannot be read any more",
    refuse,
    /stack organization\/blog\/live could not be read, and may own it\./,
  ],
])("F58: an orphan is kept if %s between the listing and the deletion", async (_, change, why) => {
  const copy = await copyOfWeb();
  files.hook(`if (existsSync("asked") && !existsSync("done")) { writeFileSync("done", ""); ${change(copy)} }`);
  const begin = service.requests.length;
  const { code, out, err } = await files.orphans("--delete", copy, "--yes");
  expect([code, err]).toEqual([1, expect.stringMatching(why)]);
  expect(out).toContain("Nothing was changed.");
  expect(deletionsSince(begin)).toEqual([]);
  expect(await machines()).toContain(copy);
});

test("F58: another App that has taken the name of an orphan is kept", async () => {
  await makeApp(service, "lost");
  files.hook(`if (existsSync("asked") && !existsSync("done")) {
  writeFileSync("done", "");
  await send("DELETE", "/v1/apps/lost");
  await send("POST", "/v1/apps", { name: "lost", org_slug: "personal" });
}`);
  const ids = ["lost"];
  const { code, err } = await files.orphans(
    ...["--all-apps", "--delete", ...ids, "--confirm", ...ids, "--yes", "--allow-data-loss"],
  );
  expect([code, err]).toEqual([1, "Not deleted: lost: another object has its ID by now, or its tags have changed.\n"]);
  await send(service, "GET", "/v1/apps/lost");
});
