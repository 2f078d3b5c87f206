// changesSince: every change is returned once, however late and in whatever order the lists show it
// (docs/interface.md#organization-lists).
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { changesSince, createClient, type Client, type Position } from "../../provider/client/index.ts";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { ManualClock } from "../../service/index.ts";
import { startService, type TestService } from "../support/startService.ts";

const config = { image: "registry.example.com/a:1" };

let service: TestService<ManualClock>;
let client: Client;

beforeEach(async () => {
  await service?.close();
  service = await startService({ clock: new ManualClock() });
  client = createClient({ endpoint: service.url, token: service.token });
  await makeApp(service, "shop");
});
afterEach(() => client.close());
afterAll(() => service.close());

/** Longer than one second, the resolution of times in lists. */
const passTime = () => service.clock.advance(2500);
/** A Machine that is not started, so that it does not change by itself; the next one is created later. */
async function make(region = "ams"): Promise<string> {
  const id = await makeMachine(service, "shop", { region, skip_launch: true, config });
  passTime();
  return id;
}
const look = async (since?: Position | string, more: { overlapSeconds?: number } = {}) => {
  const { changes, next, errorRegions } = await changesSince(client, { kind: "machines", since, ...more });
  return { ids: changes.map(({ id }) => id), changes, next, errorRegions };
};
const leaveOut = (id: string) =>
  service.fail({
    operation: "orgs.machines",
    rewrite: (body) => {
      const { machines, ...rest } = body as { machines: { id: string }[] };
      return { ...rest, machines: machines.filter((one) => one.id !== id) };
    },
  });

test("the first call returns everything, then only changes, then nothing; destroyed Machines are included", async () => {
  const [one, two] = [await make(), await make()];
  const first = await look();
  expect(first.ids).toEqual([one, two]);
  expect((await look(first.next)).ids).toEqual([]);
  await send(service, "POST", `/v1/apps/shop/machines/${one}/metadata/role`, { value: "web" });
  await send(service, "DELETE", `/v1/apps/shop/machines/${two}`);
  passTime();
  const second = await look(first.next);
  expect(second.changes.find(({ id }) => id === two)).toMatchObject({ appName: "shop", state: "destroyed" });
  expect((await look(second.next)).ids).toEqual([]);
});

test("the position is plain JSON and gives the same result after a script restarted", async () => {
  await make();
  const { next } = await look();
  const kept = JSON.parse(JSON.stringify(next)) as Position;
  expect(kept).toEqual(next);
  const one = await make();
  expect((await look(kept)).ids).toEqual([one]);
});

test("a change that appears late is returned by the next call, unless there is no overlap", async () => {
  const late = await make();
  const other = await make();
  for (const overlapSeconds of [60, 0]) {
    leaveOut(late);
    const first = await look(undefined, { overlapSeconds });
    expect(first.ids).toEqual([other]);
    expect((await look(first.next, { overlapSeconds })).ids).toEqual(overlapSeconds === 0 ? [] : [late]);
  }
});

test("a Machine on two pages in any order is returned once, and the oldest change comes first", async () => {
  const all = [await make(), await make(), await make()];
  const [one, two, three] = (
    await send<{ machines: Record<string, unknown>[] }>(service, "GET", "/v1/orgs/personal/machines")
  ).machines;
  const pages = [
    { machines: [three, { ...one, state: "an older one", updated_at: "2020-01-01T00:00:00Z" }], next_cursor: "1" },
    { machines: [], next_cursor: "2" },
    { machines: [two, one], next_cursor: "" },
  ];
  pages.forEach((body, i) => service.fail({ operation: "orgs.machines", nth: i + 1, status: 200, body }));
  const { ids, changes } = await look();
  expect(ids).toEqual(all);
  expect(changes.map(({ state }) => state)).not.toContain("an older one");
});

test("a region that did not answer is queried again from the same position, and nothing is returned twice", async () => {
  const one = await make();
  const first = await look();
  const [two, three] = [await make("fra"), await make()];
  service.fail({ operation: "orgs.machines", merge: { error_regions: ["fra"] } });
  const second = await look(first.next);
  expect(second.errorRegions).toEqual(["fra"]);
  expect(second.next.at).toBe(first.next.at);
  expect(second.ids.sort()).toEqual([two, three].sort());
  leaveOut(one);
  const third = await look(second.next);
  expect([third.ids, third.next.at > first.next.at]).toEqual([[], true]);
});

test("a change is returned once although lists truncate its time to the second", async () => {
  service.clock.advance(700);
  const one = await make();
  const first = await look(undefined, { overlapSeconds: 0 });
  expect([first.ids, (await look(first.next, { overlapSeconds: 0 })).ids]).toEqual([[one], []]);
  const at = new Date(service.clock.now()).toISOString();
  const two = await make();
  expect((await look(at)).ids).toEqual([two]);
});

test("a start time excludes earlier changes, then and later", async () => {
  await make();
  const begin = await look(new Date(service.clock.now()).toISOString());
  expect(begin.ids).toEqual([]);
  const fresh = await make();
  expect((await look(begin.next)).ids).toEqual([fresh]);
  await expect(look("yesterday")).rejects.toThrow(/since: got "yesterday"; must be an RFC 3339 time/);
});

test("volumes are covered too: growth and deletion are changes", async () => {
  const id = await makeVolume(service, "shop", "ams");
  const of = { kind: "volumes" as const, organization: "personal" };
  const first = await changesSince(client, of);
  expect(first.changes.map((one) => [one.id, one.sizeGb])).toEqual([[id, 1]]);
  await send(service, "PUT", `/v1/apps/shop/volumes/${id}/extend`, { size_gb: 2 });
  passTime();
  const second = await changesSince(client, { ...of, since: first.next });
  expect(second.changes.map((one) => [one.id, one.sizeGb])).toEqual([[id, 2]]);
  await send(service, "DELETE", `/v1/apps/shop/volumes/${id}`);
  passTime();
  const third = await changesSince(client, { ...of, since: second.next });
  expect(third.changes).toMatchObject([{ id, state: expect.stringMatching(/destroy/) as string }]);
  expect((await changesSince(client, { ...of, since: third.next })).changes).toEqual([]);
});
