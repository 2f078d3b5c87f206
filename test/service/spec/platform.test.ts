// Regions and placements (docs/interface.md#regions-and-placements).
import { expect, test } from "vitest";
import { callerWith, withApp } from "../client.ts";

test("the regions of the platform are listed with their details", async () => {
  const { call } = await withApp();
  const { nearest, regions } = (await call("GET", "/platform/regions")).body;
  const codes = regions.map(({ code }: { code: string }) => code);
  expect(codes).toEqual([
    "ams",
    "arn",
    "bom",
    "cdg",
    "dfw",
    "ewr",
    "fra",
    "gru",
    "iad",
    "jnb",
    "lax",
    "lhr",
    "nrt",
    "ord",
    "sin",
    "sjc",
    "syd",
    "yyz",
  ]);
  expect(codes).toContain(nearest);
  expect(regions[0]).toMatchObject({
    name: expect.any(String),
    geo_region: "europe",
    latitude: expect.any(Number),
    longitude: expect.any(Number),
    gateway_available: true,
    requires_paid_plan: false,
    deprecated: false,
    capacity: expect.any(Number),
  });
});

test("the capacity of a region falls with every Machine and rises when one is destroyed", async () => {
  const { call, machine, machines } = await withApp({ capacity: { ams: 7 } });
  const room = async () => (await call("GET", "/platform/regions")).body.regions[0].capacity;
  const { id } = await machine();
  await machine();
  expect(await room()).toBe(5);
  await call("DELETE", `${machines}/${id}?force=true`);
  expect(await room()).toBe(6);
  await call("DELETE", "/apps/web");
  expect(await room()).toBe(7);
});

// --- placements ---

const placed = async ({ call }: Pick<Awaited<ReturnType<typeof withApp>>, "call">, body: object) =>
  (await call("POST", "/platform/placements", { org_slug: "personal", ...body })).body.regions;

test("placements match what create then accepts, Machine by Machine, until the region is full", async () => {
  const app = await withApp({ capacity: { fra: 3, lhr: { total: 10, performance: 2 } } });
  const create = async (region: string, config: object = {}) =>
    (await app.call("POST", app.machines, { region, config: { image: "nginx", ...config } })).status;
  const performance = { cpu_kind: "performance", cpus: 1, memory_mb: 2048 };
  for (const [region, compute] of [
    ["fra", { cpu_kind: "shared" }],
    ["lhr", performance],
  ] as const) {
    for (;;) {
      const [place] = await placed(app, { region, compute });
      expect(await placed(app, { region, compute, count: 100 })).toEqual(place ? [place] : []);
      if (!place) break;
      for (let i = 0; i < place.count; i++) expect(await create(region, { guest: compute })).toBe(200);
    }
    expect(await create(region, { guest: compute })).toBe(422);
  }
  expect((await placed(app, { region: "lhr", compute: { cpu_kind: "shared" } }))[0].count).toBe(8);
  const [machine] = (await app.call("GET", `${app.machines}?region=fra`)).body;
  await app.call("DELETE", `${app.machines}/${machine.id}?force=true`);
  expect(await placed(app, { region: "fra", compute: {} })).toMatchObject([
    { region: "fra", count: 1, concurrency: 1 },
  ]);
  expect(await create("fra")).toBe(200);
});

test("a full region is omitted, and its Machines are placed elsewhere", async () => {
  const app = await withApp({ capacity: { fra: 1, ams: 2 } });
  expect(await placed(app, { region: "fra,ams", count: 5 })).toMatchObject([
    { region: "fra", count: 1 },
    { region: "ams", count: 2 },
  ]);
  await app.machine({}, { region: "fra" });
  expect(await placed(app, { region: "fra,ams", count: 1 })).toMatchObject([{ region: "ams", count: 1 }]);
  expect(await placed(app, { region: "fra", count: 1 })).toEqual([]);
});

test("the first region of the expression is preferred, unless the spread has more weight", async () => {
  const app = await withApp();
  const counts = async (body: object) =>
    (await placed(app, body)).map(({ region, count }: { region: string; count: number }) => [region, count]);
  expect(await counts({ region: "lhr,fra", count: 10 })).toEqual([["lhr", 10]]);
  expect(await counts({ region: "lhr,fra", count: 10, weights: { region: 0 } })).toEqual([
    ["lhr", 5],
    ["fra", 5],
  ]);
  expect(await counts({ region: "lhr,fra", count: 110 })).toEqual([
    ["lhr", 80],
    ["fra", 30],
  ]);
  expect(await counts({ region: "lhr,fra", count: 110, weights: { spread: 0 } })).toEqual([["lhr", 110]]);
});

test("an expression contains regions, continents, the nearest, and any", async () => {
  const app = await withApp({ nearest: "fra" });
  const codes = async (region?: string) =>
    (await placed(app, region === undefined ? {} : { region })).map((place: { region: string }) => place.region);
  expect(await codes("lhr")).toEqual(["lhr"]);
  expect(await codes("[region]")).toEqual(["fra"]);
  const europe = ["ams", "arn", "cdg", "fra", "lhr"];
  expect((await codes("eu")).sort()).toEqual(europe);
  expect((await codes("europe")).sort()).toEqual(europe);
  expect(await codes("syd, eu")).toEqual(["syd", ...(await codes("eu"))]);
  expect(await codes("any")).toHaveLength(18);
  expect(await codes()).toEqual(await codes("[region],any"));
  expect((await codes())[0]).toBe("fra");
  expect(await codes("lhr,any")).toHaveLength(18);
  expect((await codes("us")).sort()).toEqual(["dfw", "ewr", "iad", "lax", "ord", "sjc"]);
  expect(await codes("usa")).toEqual(await codes("us"));
  expect((await codes("na")).sort()).toEqual(["dfw", "ewr", "iad", "lax", "ord", "sjc", "yyz"]);
  expect((await codes("apac")).sort()).toEqual(["bom", "nrt", "sin", "syd"]);
  expect(await codes("sa,lhr")).toEqual(["gru", "lhr"]);
  for (const nothing of ["", " , "]) expect(await codes(nothing)).toEqual(await codes());
});

test("a region in brackets is that region, as in the default expression with an inserted code", async () => {
  const app = await withApp({ capacity: { iad: 3 } });
  const answered = async (region: string, count = 0) =>
    (await placed(app, { region, count })).map((place: { region: string; count: number }) => place.region);
  const all = await answered("[iad],any");
  expect(all[0]).toBe("iad");
  expect([...all].sort()).toEqual([...(await answered("any"))].sort());
  expect(all).toEqual(await answered("iad,any"));
  expect(all.slice(1)).toEqual((await answered("any")).filter((code: string) => code !== "iad"));
  expect(await answered("[lhr],[iad]")).toEqual(["lhr", "iad"]);
  expect(await answered("[ IAD ], eu")).toEqual(await answered("iad,eu"));
  expect(await answered("[eu]")).toEqual(await answered("eu"));
  expect(await placed(app, { region: "[iad],any", count: 2 })).toMatchObject([{ region: "iad", count: 2 }]);
  expect(await placed(app, { region: "[iad],any", count: 5 })).toMatchObject([
    { region: "iad", count: 3 },
    { region: "ams", count: 2 },
  ]);
});

test("a placement reserves nothing", async () => {
  const app = await withApp({ capacity: { fra: 2 } });
  for (let i = 0; i < 3; i++) expect(await placed(app, { region: "fra", count: 2 })).toMatchObject([{ count: 2 }]);
  expect((await app.call("GET", app.machines)).body).toEqual([]);
});

test.each([
  [{}, 400],
  [{ org_slug: "personal", region: "zzz" }, 400],
  [{ org_slug: "personal", region: "fra,zzz" }, 400],
  [{ org_slug: "personal", region: "[zzz],any" }, 400],
  [{ org_slug: "personal", region: "[],any" }, 400],
  [{ org_slug: "personal", region: "[iad" }, 400],
  [{ org_slug: "personal", region: "[iad,lhr],any" }, 400],
  [{ org_slug: "personal", region: "constructor" }, 400],
  [{ org_slug: "personal", count: -1 }, 400],
  [{ org_slug: "personal", count: "2" }, 400],
  [{ org_slug: "personal", compute: { cpu_kind: "fast" } }, 400],
  [{ org_slug: "personal", weights: { region: "much" } }, 400],
  [{ org_slug: "nobody" }, 404],
  [{ org_slug: "strangers" }, 403],
])("placements of %j are %i", async (body, status) => {
  const app = await withApp();
  callerWith(app, "stranger", { slug: "strangers" });
  expect((await app.call("POST", "/platform/placements", body)).status).toBe(status);
});
