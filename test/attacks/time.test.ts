// The clock of the computer is set far ahead and back, while the service runs. The clock of these tests has a date that can be set, and
// a time that cannot, as a computer has.
import { utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { ManualClock, systemClock, type ServiceOptions } from "../../service/index.ts";
import { lastWritten } from "../../service/store/lastWritten.ts";
import { page, send, sessionOf, signIn } from "../service/console/browser.ts";
import { callerWith, withApp } from "../service/client.ts";
import { folder } from "../service/command.ts";

const minute = 60_000;
const day = 24 * 60 * minute;
const years = 5 * 365 * day;

/** A service with a clock that can be set, and its log. */
async function withClock(options: ServiceOptions = {}) {
  const lines: { readonly ms?: number; readonly msg: string }[] = [];
  const log = { write: (line: string) => void lines.push(JSON.parse(line) as { msg: string }) };
  const app = await withApp({ ...options, log, clock: new ManualClock() });
  const status = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${app.url}/v1/tokens/current`, { headers })).status;
  };
  return { ...app, status, jumps: () => lines.filter(({ msg }) => msg.startsWith("the clock of this computer")) };
}

test("F93: tokens with an end and sessions are valid again after the clock was set ahead and back", async () => {
  const app = await withClock();
  callerWith(app, "a-day", { expiresAt: app.clock.now() + day });
  const visit = await page(app, "a-day");
  const session = async () => (await visit("GET", "/console/session")).status;
  expect([await app.status("a-day"), await session()]).toEqual([200, 200]);
  app.clock.set(years);
  expect([await app.status("a-day"), await session()]).toEqual([401, 401]);
  app.clock.set(-years);
  expect([await app.status("a-day"), await session()]).toEqual([200, 200]);
  app.clock.advance(day);
  expect(await app.status("a-day")).toBe(401);
});

test("F93: a token that was made while the clock was ahead lasts as long as it was meant to", async () => {
  const { call, clock, status } = await withClock();
  clock.set(years);
  const { token } = (await call("POST", "/apps/web/deploy_token", { expiry: "1h" })).body;
  clock.set(-years);
  expect(await status(token)).toBe(200);
  clock.advance(60 * minute);
  expect(await status(token)).toBe(401);
});

test("F93: dates follow the clock in both directions, and each jump is logged once", async () => {
  const { call, clock, machine, machines, jumps } = await withClock();
  const updated = async (id: string) => {
    await call("POST", `${machines}/${id}/metadata/key`, { value: String(clock.now()) });
    return Date.parse((await call("GET", `${machines}/${id}`)).body.updated_at);
  };
  const { id } = await machine();
  const begun = clock.now();
  clock.set(years);
  expect(await updated(id)).toBe(begun + years);
  clock.advance(2000);
  clock.set(-years);
  clock.advance(2000);
  expect(await updated(id)).toBe(begun + 4000);
  expect(jumps().map(({ ms }) => ms)).toEqual([years, -years]);
});

test("F93: a client that lists changes misses none after the clock was set back", async () => {
  const { call, clock, machine, machines } = await withClock();
  const list = async (cursor: string) =>
    (await call("GET", `/orgs/personal/machines?limit=1&cursor=${cursor}`)).body as {
      readonly machines: readonly { readonly id: string }[];
      readonly next_cursor: string;
    };
  clock.set(years);
  const first = await machine();
  await machine();
  const { next_cursor } = await list("");
  clock.set(-years);
  clock.advance(minute);
  const third = await machine();
  const found = new Set<string>();
  for (let cursor = next_cursor; cursor !== "" || found.size === 0;) {
    const page = await list(cursor);
    for (const { id } of page.machines) found.add(id);
    cursor = page.next_cursor;
  }
  expect([...found]).toEqual(expect.arrayContaining([first.id, third.id]));
  expect((await call("GET", machines)).body).toHaveLength(3);
});

test.each([years, -years])("F94: what lasts for a time lasts as long after the clock was set by %i ms", async (ms) => {
  const app = await withClock({ delays: "believable", rateLimits: "documented" });
  const { call, clock, machine, machines, state } = app;
  const { id } = await machine();
  expect((await call("POST", `${machines}/${id}/lease`, { ttl: 600 })).status).toBe(201);
  const wait = call("GET", `${machines}/${id}/wait?state=stopped&timeout=30`);
  await expect.poll(() => app.service.context.waits.size).toBe(1);
  expect(await state(id)).toBe("created");
  clock.set(ms);
  // The Machine neither starts at once nor never.
  expect(await state(id)).toBe("created");
  clock.advance(500);
  expect(await state(id)).toBe("started");
  expect(app.service.context.waits.size).toBe(1);
  clock.advance(30_000);
  expect((await wait).status).toBe(408);
  expect((await call("POST", `${machines}/${id}/stop`)).status).toBe(409);
  clock.advance(600_000 - 30_501);
  expect((await call("GET", `${machines}/${id}/lease`)).status).toBe(200);
  clock.advance(1);
  expect((await call("GET", `${machines}/${id}/lease`)).status).toBe(404);
  // A limit is neither lifted nor kept up.
  const cordon = async () => (await call("POST", `${machines}/${id}/cordon`)).status;
  for (let i = 0; i < 3; i++) expect(await cordon()).toBe(200);
  clock.set(ms);
  expect(await cordon()).toBe(429);
  clock.advance(1000);
  expect(await cordon()).toBe(200);
});

test.each([years, -years])(
  "F94: timers keep the time they have left over a restart after a jump of %i ms",
  async (ms) => {
    const { clock, machine, service } = await withClock({ delays: "believable" });
    await machine();
    const { store } = service.context;
    const left = () =>
      store
        .all<{ kind: string; due: number }>("SELECT kind, due FROM timers ORDER BY kind, id")
        .map(({ kind, due }) => [kind, due - clock.now()]);
    const before = left();
    expect(before).not.toEqual([]);
    clock.set(ms);
    expect(left()).toEqual(before);
  },
);

test("F94: a clock that was set back while the service was stopped is noticed at its start", async () => {
  const data = folder();
  const first = await withApp({ data });
  const { id } = await first.machine();
  await first.call("POST", `${first.machines}/${id}/lease`, { ttl: 600 });
  // As if all of this had been done a year later.
  const year = 365 * day;
  await first.service.context.store.write(() => {
    first.service.context.store.run("UPDATE leases SET expires_at = expires_at + ?", year);
    first.service.context.store.run("UPDATE machines SET updated_at = updated_at + ?", year);
  });
  await first.close();
  const later = (Date.now() + year) / 1000;
  utimesSync(join(data, "service.db"), later, later);
  const second = await withApp({ data });
  const lease = (await second.call("GET", `${second.machines}/${id}/lease`)).body.data;
  expect(lease.expires_at * 1000).toBeLessThan(Date.now() + day);
  const { updated_at } = (await second.call("GET", `${second.machines}/${id}`)).body;
  expect(Date.parse(updated_at)).toBeLessThanOrEqual(Date.now());
});

test("F94: a store that was written after the clock was set back is not taken for one of the future", () => {
  const file = folder();
  expect(lastWritten(file)).toBeUndefined();
  writeFileSync(file, "rows");
  utimesSync(file, 2000, 2000);
  expect(lastWritten(file)).toBe(2_000_000);
  // What was written since is in the log alone, as after a kill; a log that was taken over is empty.
  writeFileSync(`${file}-wal`, "changes");
  utimesSync(`${file}-wal`, 1000, 1000);
  expect(lastWritten(file)).toBe(1_000_000);
  writeFileSync(`${file}-wal`, "");
  expect(lastWritten(file)).toBe(2_000_000);
});

test("F93: a session that was opened while the clock was ahead is not valid after it was set back", async () => {
  const app = await withClock();
  app.clock.set(years);
  const answer = await signIn(app.url, { token: app.token });
  const shown = () => send(app.url, "GET", "/console/session", { headers: sessionOf(answer) });
  expect((await shown()).status).toBe(200);
  app.clock.set(-years);
  expect((await shown()).status).toBe(401);
});

test("F94: an address that failed to sign in waits no longer after the clock was set back", async () => {
  const app = await withClock();
  const attempt = async () =>
    (await fetch(`${app.url}/console/session`, { method: "POST", body: JSON.stringify({ token: "wrong" }) })).status;
  for (let i = 0; i < 20; i++) expect(await attempt()).toBe(401);
  app.clock.set(-years);
  expect(await attempt()).toBe(429);
  app.clock.advance(minute);
  expect(await attempt()).toBe(401);
});

test("F93: a code that opened a session opens no other one after the clock was set ahead and back", async () => {
  const app = await withClock();
  const open = async (code: string) =>
    (await fetch(`${app.url}/console/session`, { method: "POST", body: JSON.stringify({ code }) })).status;
  const code = app.service.consoleCode();
  expect(await open(code)).toBe(200);
  app.clock.set(years);
  expect(await open(app.service.consoleCode())).toBe(200);
  app.clock.set(-years);
  expect(await open(code)).toBe(401);
});

/** The clock of a computer whose parts the test moves. */
function computer() {
  vi.useFakeTimers();
  const time = { wall: 1_000_000_000, monotonic: 5000.25, uptime: 70_000.5 };
  const jumps: number[] = [];
  const clock = systemClock({
    wall: () => time.wall,
    monotonic: () => time.monotonic,
    uptime: () => time.uptime,
  });
  const end = clock.onJump((ms) => {
    jumps.push(ms);
    clock.follow(ms);
  });
  const pass = (ms: number, { asleep = 0, set = 0 } = {}): void => {
    time.wall += ms + asleep + set;
    time.monotonic += ms;
    time.uptime += ms + asleep;
    vi.advanceTimersByTime(ms);
  };
  const close = (): void => {
    end();
    vi.useRealTimers();
  };
  return { clock, pass, jumps, close };
}

test("F93: the clock of the computer is followed within a second of a jump; its sleep and small corrections are none", () => {
  const { clock, pass, jumps, close } = computer();
  try {
    const [begun, since] = [clock.now(), clock.elapsed()];
    pass(1000);
    expect([clock.now() - begun, clock.elapsed() - since, jumps]).toEqual([1000, 1000, []]);
    expect([clock.now(), clock.elapsed()].map(Number.isInteger)).toEqual([true, true]);
    pass(1000, { set: years });
    expect([clock.now() - begun, clock.elapsed() - since, jumps]).toEqual([years + 2000, 2000, [years]]);
    pass(1000, { set: -years });
    expect([clock.now() - begun, clock.elapsed() - since, jumps]).toEqual([3000, 3000, [years, -years]]);
    pass(1000, { asleep: day });
    expect([clock.now() - begun, clock.elapsed() - since]).toEqual([day + 4000, day + 4000]);
    const before = clock.now();
    pass(1000, { set: -500 });
    expect(clock.now() - before).toBeGreaterThanOrEqual(0);
    pass(1000);
    expect([clock.now() - begun, clock.elapsed() - since]).toEqual([day + 5500, day + 6000]);
    expect(jumps).toHaveLength(2);
  } finally {
    close();
  }
});

test("F94: a delay ends in time although the clock was set, and at once after a sleep", () => {
  const { clock, pass, close } = computer();
  try {
    const ended: string[] = [];
    clock.after(10_000, () => ended.push("first"));
    clock.after(minute, () => ended.push("second"));
    pass(5000, { set: years });
    expect(ended).toEqual([]);
    pass(5000, { set: -2 * years });
    expect(ended).toEqual(["first"]);
    pass(30_000, { asleep: day });
    expect(ended).toEqual(["first", "second"]);
  } finally {
    close();
  }
});
