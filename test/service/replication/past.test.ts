// The console of members shows an App as it was at a moment, and the difference to now.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { PastMachineView } from "../../../service/console/past.ts";
import type { PastPart, PastView } from "../../../service/console/types.ts";
import { leaks } from "../../support/canaries.ts";
import { command } from "../command.ts";
import { send } from "../console/browser.ts";
import { momentOf, serverForTests } from "./serverForTests.ts";
import { callOf, leaderOf, serviceOn, type Member } from "./processes.ts";

const server = serverForTests();

/** Reads views of the console with a token. */
const viewOf =
  ({ url }: Member, token: string) =>
  (path: string) =>
    send(url, "GET", `/console/api/apps/${path}`, { headers: { authorization: `Bearer ${token}` } });

test("an App is shown as it was at a moment, with what differs now, by every member and only to its organization", async () => {
  const service = serviceOn(server.url);
  const members = [await service.start(), await service.start()];
  const leader = await leaderOf(members);
  const standby = members.find((one) => one !== leader) as Member;
  const call = callOf(standby);
  const machine = async (name: string, image: string) =>
    (await call("POST", "/apps/web/machines", { name, config: { image } })).body.id as string;

  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const early = await momentOf(server);
  const secrets = { FIRST: "canary-first-value", SECOND: "canary-second-value" };
  await call("POST", "/apps/web/secrets", { values: { KEY: secrets.FIRST } });
  const [kept, changed, deleted] = [
    await machine("a", "nginx"),
    await machine("b", "web:1"),
    await machine("c", "nginx"),
  ];
  for (const id of [kept, changed, deleted]) await call("GET", `/apps/web/machines/${id}/wait?state=started`);
  await call("POST", "/apps/web/volumes", { name: "data", region: "iad" });
  const then = await momentOf(server);
  await call("POST", "/apps/web/secrets", { values: { KEY: secrets.SECOND } });
  await call("POST", `/apps/web/machines/${changed}`, { config: { image: "web:2" } });
  await call("GET", `/apps/web/machines/${changed}/wait?state=started`);
  await call("DELETE", `/apps/web/machines/${deleted}?force=true`);
  const created = await machine("d", "nginx");
  await call("GET", `/apps/web/machines/${created}/wait?state=started`);

  const past = async (member: Member, at: string, name = "web") => {
    const { status, body, text } = await viewOf(member, member.token)(`${name}/past?at=${at}`);
    expect([status, leaks(secrets, [{ what: "the answer", text }])]).toEqual([200, []]);
    return body as PastView;
  };
  const changesIn = ({ parts }: PastView, part: PastPart) =>
    Object.fromEntries(parts[part].rows.map(({ key, change }) => [key, change]));
  for (const member of members) {
    const view = await past(member, then);
    expect(view.app).toBe("unchanged");
    expect(changesIn(view, "machines")).toEqual({
      [changed]: "changed",
      [deleted]: "deleted",
      [created]: "created",
      [kept]: "unchanged",
    });
    const row = view.parts.machines.rows.find(({ key }) => key === changed);
    expect(row).toMatchObject({ was: { image: "web:1", state: "started" }, is: { image: "web:2", state: "started" } });
    expect(view.parts.machines.rows.find(({ key }) => key === deleted)).toMatchObject({ was: { name: "c" }, is: null });
    expect(changesIn(view, "secrets")).toEqual({ KEY: "changed" });
    expect(Object.values(changesIn(view, "volumes"))).toEqual(["unchanged"]);
  }
  const machineAt = async (id: string) =>
    (await viewOf(leader, leader.token)(`web/past/machines/${id}?at=${then}`)).body as PastMachineView;
  expect(await machineAt(changed)).toMatchObject({ was: { image: "web:1" }, is: { image: "web:2" } });
  expect(await machineAt(deleted)).toMatchObject({ was: { image: "nginx" }, is: null });
  expect((await past(standby, early)).parts.machines.counts).toMatchObject({ created: 3, unchanged: 0 });

  await call("DELETE", "/apps/web?force=true");
  await expect
    .poll(() => past(standby, then))
    .toMatchObject({ app: "deleted", parts: { machines: { counts: { deleted: 3 } } } });
  // Its name belongs to another organization now, which sees nothing of before.
  expect((await command(["org", "create", "shop", "--data", leader.data])).code).toBe(0);
  const { out } = await command(["token", "create", "--org", "shop", "--json", "--data", leader.data]);
  const { token } = JSON.parse(out) as { token: string };
  const ofShop = viewOf(standby, token);
  expect(await ofShop(`web/past?at=${then}`)).toMatchObject({ status: 404, body: { error: "app not found" } });

  const own = viewOf(standby, standby.token);
  expect(await own("web/past?at=yesterday")).toMatchObject({
    status: 400,
    body: { error: expect.stringMatching(/at.*yesterday.*must be a time with its zone/) },
  });
  expect(await own("web/past?at=2020-01-01T00:00:00Z")).toMatchObject({
    status: 404,
    body: { error: expect.stringMatching(/nothing of that time; its first moment is \d{4}-/) },
  });
  expect(readdirSync(join(leader.data, "past")).length).toBeLessThanOrEqual(3);
  expect(existsSync(join(standby.data, "past"))).toBe(false);
  process.kill(leader.pid, "SIGTERM");
  expect((await leader.end).code).toBe(0);
  expect(readdirSync(join(leader.data, "past"))).toEqual([]);
  await leaderOf([standby]);
  expect((await past(standby, then)).app).toBe("deleted");
});
