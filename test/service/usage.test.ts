// What is measured: the points that are kept, the counts of the proxy, and who may see them.
import fc from "fast-check";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { keptMs, pointTables, Points, stepMs } from "../../service/history/points.ts";
import { otherRoutes, Traffic } from "../../service/proxy/traffic.ts";
import { machineSeries } from "../../service/usage/series.ts";
import { addToken } from "../../service/store/tokens.ts";
import { withApp } from "./client.ts";
import { page } from "./console/browser.ts";
import { withServers } from "./postgres/servers.ts";

const start = Math.ceil(1_000_000_000_000 / stepMs) * stepMs;

function points(most?: number): Points {
  const db = new DatabaseSync(":memory:");
  db.exec(pointTables);
  return new Points(db, most);
}

test("a course has the mean or the greatest of each part, and nothing where nothing was measured", () => {
  const value = fc.option(fc.integer({ min: 0, max: 1000 }), { nil: null });
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 60 }), fc.integer({ min: 1, max: 70 }), (values, most) => {
      const kept = points();
      for (const [i, one] of values.entries())
        kept.add(start + i * stepMs, one === null ? [] : [{ series: "a", values: [one, one] }]);
      kept.add(start, [{ series: "another", values: [5] }]);
      const to = start + (values.length - 1) * stepMs;
      const { times, values: found } = kept.course({ series: "a", from: start, to, most, merge: ["mean", "most"] });
      const width = Math.ceil(values.length / most);
      const parts = times.map((_, i) => values.slice(i * width, (i + 1) * width).filter((one) => one !== null));
      expect(times.length).toBe(Math.ceil(values.length / width));
      expect(times.length).toBeLessThanOrEqual(most);
      expect(times).toEqual(times.map((_, i) => start + i * width * stepMs));
      const mean = (part: number[]) => part.reduce((sum, one) => sum + one, 0) / part.length;
      for (const [i, part] of parts.entries()) {
        if (part.length === 0) expect([found[0]?.[i], found[1]?.[i]]).toEqual([null, null]);
        else expect([found[0]?.[i], found[1]?.[i]]).toEqual([expect.closeTo(mean(part)), Math.max(...part)]);
      }
    }),
  );
});

test("points are bounded by age and number, whatever the clock does, and series without points are forgotten", () => {
  const kept = points(100);
  const course = (series: string, now: number) =>
    kept
      .course({ series, from: now - keptMs, to: now + keptMs, most: 10_000, merge: ["most"] })
      .values[0]?.filter((one) => one !== null);
  for (let i = 0; i < 30; i++)
    kept.add(
      start + i * stepMs,
      Array.from({ length: 10 }, (_, n) => ({ series: `s${n}`, values: [i] })),
    );
  expect(course("s3", start)).toEqual([20, 21, 22, 23, 24, 25, 26, 27, 28, 29]);
  const later = start + 2 * keptMs;
  kept.add(later, [{ series: "new", values: [1] }]);
  expect(kept.names("s")).toEqual([]);
  expect(kept.names("")).toEqual(["new"]);
  // The clock was set back by a day.
  const before = start - 4 * keptMs;
  kept.add(before, [{ series: "new", values: [2] }]);
  expect(course("new", later)).toEqual([]);
  expect(course("new", before)).toEqual([2]);
});

test("the proxy's times are exact to a tenth, and names that clients choose are bounded", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0.2, max: 100_000, noNaN: true }), { minLength: 1 }), (times) => {
      const traffic = new Traffic();
      for (const took of times) traffic.add({ app: "a", route: "r", status: 200, took });
      const sorted = [...times].sort((a, b) => a - b);
      const [all] = traffic.take();
      for (const [part, found] of [
        [0.5, all?.answers.median],
        [0.95, all?.answers.p95],
      ] as const) {
        const exact = sorted[Math.ceil(times.length * part) - 1] ?? 0;
        expect(found ?? 0).toBeGreaterThanOrEqual(exact * 0.95 - 0.01);
        expect(found ?? 0).toBeLessThanOrEqual(exact * 1.11 + 0.01);
      }
      expect(traffic.take()).toEqual([]);
    }),
  );
  const traffic = new Traffic();
  for (let i = 0; i < 500; i++) traffic.add({ app: "a", route: `r${i}`, status: i % 2 ? 503 : 200, took: undefined });
  const taken = traffic.take();
  expect(taken.length).toBeLessThan(60);
  expect(taken[0]).toMatchObject({ route: "", answers: { requests: 500, errors: 250, median: null, p95: null } });
  expect(taken.find(({ route }) => route === otherRoutes)?.answers.requests).toBeGreaterThan(400);
});

test("only those who may see a Machine, an App or a cluster see what it used, and a simulated one says so", async () => {
  const app = await withApp({ console: "read" });
  const { call, machine, service } = app;
  const { id } = await machine();
  await call("POST", "/apps", { name: "other", org_slug: "personal" });
  const { token: ofOther } = (await call("POST", "/apps/other/deploy_token", {})).body;
  await service.context.store.write(() =>
    addToken(service.context.store, "of-acme", { slug: "acme", expiresAt: null }, 0),
  );
  const made = (await call("POST", "/postgres", { org_slug: "personal", region: "ams", plan: "basic" })).body.data;
  await service.context.history.addPoints(Math.floor(service.context.clock.now() / stepMs) * stepMs, [
    { series: machineSeries(id), values: [0.5, 1000] },
  ]);
  const paths = [`apps/web/machines/${id}`, "apps/web", `clusters/${made.id}`].map(
    (path) => `/console/api/${path}/usage?hours=3`,
  );
  const own = await page(app);
  for (const path of paths) {
    const found = await own("GET", path);
    expect(found).toMatchObject({ status: 200, body: { isSimulated: true } });
    expect(found.body.times.length).toBeLessThanOrEqual(181);
  }
  expect((await own("GET", paths[0] ?? "")).body.courses.cpus.at(-1)).toBe(0.5);
  for (const token of [ofOther, "of-acme"]) {
    const theirs = await page(app, token);
    for (const path of paths)
      expect([path, [403, 404].includes((await theirs("GET", path)).status)]).toEqual([path, true]);
  }
  for (const hours of ["0", "13", "1.5", "x"])
    expect((await own("GET", `/console/api/apps/web/usage?hours=${hours}`)).status).toBe(400);
});

test("the load of a real cluster is measured: connections, and queries that take long", async () => {
  const app = await withServers({ service: { console: "read" } });
  const ready = await app.cluster();
  await app.connect(ready);
  const client = await app.connect(ready);
  // It ends with its connection, after the test.
  void client.query("SELECT pg_sleep(600)").catch(() => {});
  const own = await page(app);
  await expect
    .poll(async () => {
      await app.service.usage.sample();
      const { courses } = (await own("GET", `/console/api/clusters/${ready.id}/usage`)).body;
      return ["connections", "active", "slow"].map((name) => courses[name].at(-1));
    })
    .toEqual([2, 1, 1]);
  const { courses, isSimulated } = (await own("GET", `/console/api/clusters/${ready.id}/usage`)).body;
  expect([isSimulated, courses.most.at(-1) > 2]).toEqual([false, true]);
});
