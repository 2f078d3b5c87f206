// The rate limits of requests (docs/interface.md#rate-limits).
import { expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import { RateLimits } from "../../service/http/rateLimits.ts";
import { addToken } from "../../service/store/tokens.ts";
import { contract } from "../../api/index.ts";
import { caller, withApp, type Answer, type Call } from "./client.ts";

const limited = () => withApp({ clock: new ManualClock(), rateLimits: "documented" });

/** The statuses of a number of consecutive requests. */
async function statuses(count: number, send: () => Promise<Answer>): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < count; i++) all.push((await send()).status);
  return all;
}

const times = (count: number, status: number): number[] => Array.from({ length: count }, () => status);
const show = (call: Call) => () => call("GET", "/apps/web");

test("three requests at once, then one per second; others get 429 with the time to retry", async () => {
  const { call, clock, service } = await limited();
  expect(await statuses(4, show(call))).toEqual([200, 200, 200, 429]);
  const refused = await call("GET", "/apps/web");
  expect([refused.status, refused.body, refused.headers.get("retry-after")]).toEqual([
    429,
    { error: "rate limit exceeded" },
    "1",
  ]);
  expect(service.rateLimits.limited).toBe(2);
  clock.advance(999);
  expect(await statuses(1, show(call))).toEqual([429]);
  clock.advance(1);
  expect(await statuses(2, show(call))).toEqual([200, 429]);
  clock.advance(3600_000); // unused requests are saved only up to one burst
  expect(await statuses(4, show(call))).toEqual([200, 200, 200, 429]);
  expect(service.rateLimits.limited).toBe(5);
});

test("a Machine may be read ten times at once, then five times per second", async () => {
  const { call, clock, machine, machines } = await limited();
  const { id } = await machine();
  const get = () => call("GET", `${machines}/${id}`);
  expect(await statuses(11, get)).toEqual([...times(10, 200), 429]);
  expect((await get()).headers.get("retry-after")).toBe("1");
  clock.advance(1000);
  expect(await statuses(6, get)).toEqual([...times(5, 200), 429]);
});

test("every action on every Machine has its own limit", async () => {
  const { call, machine, machines } = await limited();
  const [one, other] = [await machine(), await machine()];
  const cordon = (id: string) => () => call("POST", `${machines}/${id}/cordon`);
  expect(await statuses(4, cordon(one.id))).toEqual([200, 200, 200, 429]);
  expect(await statuses(1, cordon(other.id))).toEqual([200]);
  expect(await statuses(1, () => call("POST", `${machines}/${one.id}/uncordon`))).toEqual([200]);
});

test("a hundred Apps may be deleted per minute", async () => {
  const { call, clock } = await limited();
  const remove = () => call("DELETE", "/apps/none");
  expect(await statuses(101, remove)).toEqual([...times(100, 404), 429]);
  expect((await call("DELETE", "/apps/other")).status).toBe(429);
  clock.advance(60_000);
  expect(await statuses(101, remove)).toEqual([...times(100, 404), 429]);
});

test("a refused request changes nothing", async () => {
  const { call, clock, machines } = await limited();
  const create = () => call("POST", machines, { config: { image: "nginx" } });
  expect(await statuses(5, create)).toEqual([200, 200, 200, 429, 429]);
  clock.advance(1000);
  expect((await call("GET", machines)).body).toHaveLength(3);
});

test("requests without a valid token do not count", async () => {
  const { call, url, service } = await limited();
  addToken(service.context.store, "stranger", { slug: "strangers", expiresAt: null }, 0);
  expect(await statuses(5, show(caller(url, "stranger")))).toEqual([403, 403, 403, 429, 429]);
  expect(await statuses(5, show(caller(url, "nobody")))).toEqual(times(5, 401));
  expect(await statuses(3, show(call))).toEqual([200, 200, 200]);
});

test("nothing is limited by default", async () => {
  const { call, service } = await withApp();
  expect(await statuses(50, show(call))).toEqual(times(50, 200));
  expect(service.rateLimits.limited).toBe(0);
});

test("the number of buckets is bounded, and active ones are kept", () => {
  const clock = new ManualClock();
  const limits = new RateLimits(clock, "documented");
  const take = (app_name: string): boolean => {
    try {
      limits.take(contract.apps.get, { app_name }, { org: 1, apps: null, network: null });
      return true;
    } catch {
      return false;
    }
  };
  for (let i = 0; i < 3; i++) expect(take("web")).toBe(true);
  for (let i = 0; i < 50_000; i++) {
    take(`app-${i}`);
    if (i % 1000 === 0) expect(take("web")).toBe(false);
  }
  expect(limits.size).toBeLessThanOrEqual(10_000);
});
