// The windows and groups of an App's Machines, compared with a model of the list. There are more of them than one part has.
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { fleetTag, phaseTag } from "../../../api/fleetTags.ts";
import type { Group, MachineItem, MachineWindow } from "../../../service/console/types.ts";
import { createService, type Service } from "../../../service/index.ts";

const count = 4500;
const states = ["started", "stopped", "suspended", "failed", "starting"] as const;
const regions = ["ams", "fra", "iad"];
const images = ["nginx:1", "nginx:2", "registry.example.com/web:v1"];
const fleets = ["web", "worker", null];
const results = ["passing", "warning", "critical"] as const;

let service: Service;
let all: MachineItem[];
const phases = new Map<string, string | null>();

async function ask<T>(path: string): Promise<T> {
  const headers = { authorization: `Bearer ${service.token}`, host: "localhost" };
  const answer = await service.app.inject({ method: "GET", url: `/console/api/apps/web/${path}`, headers });
  expect(answer.statusCode, answer.body).toBe(200);
  const { freshIn: _freshIn, ...rest } = answer.json();
  return rest as T;
}

/** Numbers that look random and are the same in each run. */
const pick = <T>(from: readonly T[], i: number, salt: number): T => {
  const at = Math.abs(Math.imul(i + 1, 2654435761 + salt) ^ (i * salt)) % from.length;
  return from[at] as T;
};

/** Copies one Machine many times, by SQL: creating each over HTTP would take a minute. */
beforeAll(async () => {
  service = createService({ delays: "none" });
  const post = (url: string, payload: object) =>
    service.app.inject({
      ...{ method: "POST", url, payload },
      headers: { authorization: `Bearer ${service.token}`, host: "localhost" },
    });
  for (const name of ["web", "other"]) await post("/v1/apps", { name, org_slug: "personal" });
  await post("/v1/apps/web/machines", {
    config: { image: "nginx", guest: { cpu_kind: "shared", cpus: 1, memory_mb: 512 } },
  });
  const { store } = service.context;
  const row = store.get<Record<string, never>>("SELECT * FROM machines");
  const other = store.get<{ id: string }>("SELECT id FROM apps WHERE name = 'other'")?.id;
  all = [];
  await store.write(() => {
    store.run("DELETE FROM machines");
    for (let i = 0; i < count + 300; i++) {
      const [region, image] = [pick(regions, i, 11), pick(images, i, 23)];
      const [fleet, phase] = [pick(fleets, i, 37), pick(["main", null], i, 41)];
      const state = pick(states, i, 53);
      const [cordoned, has_checks] = [pick([0, 0, 1], i, 71), pick([0, 1, 1], i, 83)];
      const checks = pick(results, i, 97);
      const tags = {
        ...(fleet === null ? {} : { [fleetTag]: fleet }),
        ...(phase === null ? {} : { [phaseTag]: phase }),
      };
      const id = (i * 7919).toString(16).padStart(14, "0");
      const name = `${pick(["Web", "job", "x%_"], i, 5)}-${(i * 31) % 9973}`;
      const item: MachineItem = {
        ...{ id, name, region, state, image, fleet, version: row?.["version"] ?? "" },
        cordoned: cordoned === 1,
        checks: state === "started" && has_checks === 1 ? checks : null,
        size: "shared-cpu-1x, 512 MB",
        updated: 1e12 + (i % 50),
      };
      // Those of another App, and destroyed ones, must never be seen.
      const isHidden = i >= count;
      store.insert("machines", {
        ...row,
        ...{ id, name, region, state, cordoned, checks, has_checks, updated_at: item.updated },
        brief: JSON.stringify({ image, guest: { cpu_kind: "shared", cpus: 1, memory_mb: 512 } }),
        metadata: JSON.stringify(tags),
        ...(isHidden ? (i % 2 ? { app: other } : { destroyed_at: 1 }) : {}),
      });
      if (isHidden) continue;
      all.push(item);
      phases.set(id, phase);
    }
  });
  return () => service.close();
});

interface Query {
  readonly offset?: number;
  readonly limit?: number;
  readonly sort?: "name" | "region" | "state" | "image" | "updated";
  readonly order?: "asc" | "desc";
  readonly text?: string;
  readonly state?: readonly string[];
  readonly region?: string;
  readonly image?: string;
  readonly fleet?: string;
  readonly only?: "passing" | "warning" | "critical" | "cordoned";
}

const compare = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0);

/** What the window must be, found the slow way. */
function expected({ offset = 0, limit = 100, sort = "name", order = "asc", ...filters }: Query): MachineWindow {
  const { text, state, region, image, fleet, only } = filters;
  const wanted = text?.toLowerCase();
  const left = all.filter(
    (one) =>
      (wanted === undefined || one.name.toLowerCase().includes(wanted) || one.id.includes(wanted)) &&
      (state === undefined || state.includes(one.state)) &&
      (region === undefined || one.region === region) &&
      (image === undefined || one.image === image) &&
      (fleet === undefined || one.fleet === fleet) &&
      (only === undefined || (only === "cordoned" ? one.cordoned : one.checks === only)),
  );
  const direction = order === "desc" ? -1 : 1;
  left.sort((a, b) => direction * compare(a[sort], b[sort]) || compare(a.name, b.name));
  return { total: left.length, offset, rows: left.slice(offset, offset + limit) };
}

const queryOf = ({ state, ...query }: Query): string =>
  new URLSearchParams({
    ...Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)])),
    ...(state === undefined ? {} : { state: state.join(",") }),
  }).toString();

const maybe = <T>(some: fc.Arbitrary<T>) => fc.option(some, { nil: undefined, freq: 2 });

const queries: fc.Arbitrary<Query> = fc
  .record({
    offset: maybe(fc.oneof(fc.nat(count + 10), fc.nat(30))),
    limit: maybe(fc.integer({ min: 1, max: 500 })),
    sort: maybe(fc.constantFrom("name", "region", "state", "image", "updated")),
    order: maybe(fc.constantFrom("asc", "desc")),
    text: maybe(fc.constantFrom("web", "WEB-1", "%", "_", "x%_-9", "00a", "'; DROP", "é", "none-such")),
    state: maybe(fc.subarray([...states], { minLength: 1 })),
    region: maybe(fc.constantFrom(...regions, "sin")),
    image: maybe(fc.constantFrom(...images, "nginx")),
    fleet: maybe(fc.constantFrom("web", "worker", "none")),
    only: maybe(fc.constantFrom(...results, "cordoned")),
  })
  .map((query) => Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined)));

test("every window has the Machines that the filters leave, in order, and their number", async () => {
  await fc.assert(
    fc.asyncProperty(queries, async (query) => {
      expect(await ask<MachineWindow>(`machines?${queryOf(query)}`)).toEqual(expected(query));
    }),
    { numRuns: 150 },
  );
});

test("windows side by side have every Machine once", async () => {
  for (const sort of ["name", "state", "updated"] as const) {
    const seen: string[] = [];
    for (let offset = 0; offset < count; offset += 500) {
      const { rows } = await ask<MachineWindow>(`machines?sort=${sort}&limit=500&offset=${offset}`);
      seen.push(...rows.map(({ id }) => id));
    }
    expect([seen.length, new Set(seen).size]).toEqual([count, count]);
  }
});

test("groups have every Machine by region, image, fleet and phase, with its state", async () => {
  const { groups } = await ask<{ groups: readonly Group[] }>("groups");
  const flat = groups.flatMap(({ states: of, ...group }) =>
    Object.entries(of).map(([state, n]) => [group.region, group.image, group.fleet, group.phase, state, n].join(" ")),
  );
  const counts = new Map<string, number>();
  for (const { id, region, image, fleet, state } of all) {
    const key = [region, image, fleet, phases.get(id), state].join(" ");
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  expect(flat.sort()).toEqual([...counts].map(([key, n]) => `${key} ${n}`).sort());
  const total = (of: (group: Group) => number): number => groups.reduce((sum, group) => sum + of(group), 0);
  expect(total(({ cordoned }) => cordoned)).toBe(all.filter(({ cordoned }) => cordoned).length);
  expect(total(({ critical }) => critical)).toBe(all.filter(({ checks }) => checks === "critical").length);
  expect(new Set(groups.map(({ region, image, fleet, phase }) => `${region} ${image} ${fleet} ${phase}`)).size).toBe(
    groups.length,
  );
});
