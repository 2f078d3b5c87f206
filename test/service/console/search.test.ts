// The search: what it finds, in which order, who sees what, and how long others wait.
import { expect, test } from "vitest";
import { rankOf } from "../../../service/console/search.ts";
import { stackInUrn } from "../../../api/urn.ts";
import { Stacks } from "../../../service/console/stacks.ts";
import type { SearchView } from "../../../service/console/types.ts";
import { ManualClock, type ServiceOptions } from "../../../service/index.ts";
import { fillWith } from "../../console/many.ts";
import { callerWith, withApp, type Answer } from "../client.ts";
import { page, send } from "./browser.ts";

const urn = "urn:pulumi:prod::billing::machines:index:Machine::web";

const pathOf = (q: string): string => `/console/api/search?q=${encodeURIComponent(q)}`;

async function withSearch(options: ServiceOptions = {}) {
  const started = await withApp({ clock: new ManualClock(), delays: "none", ...options });
  const visit = await page(started);
  const raw = (q: string): Promise<Answer> => visit("GET", pathOf(q));
  return { ...started, raw, search: async (q: string) => flat((await raw(q)).body) };
}

/** The results by kind. */
const flat = ({ groups }: SearchView): Record<string, readonly string[]> =>
  Object.fromEntries(groups.map(({ kind, items }) => [kind, items.map(({ text }) => text)]));

/** Reads with a token. */
const searchWith = (url: string, token: string) => async (q: string) => {
  const headers = { authorization: `Bearer ${token}` };
  return flat((await send(url, "GET", pathOf(q), { headers })).body);
};

test("a text that is the same is before one that begins so, and that before one that contains it", () => {
  expect(["web", "WEB-1", "a-web", "we"].map((text) => rankOf(text, "Web"))).toEqual([0, 1, 2, undefined]);
});

test("every kind is found by what a person knows of it, with its place", async () => {
  const { call, machine, raw, search } = await withSearch();
  await call("POST", "/apps", { name: "web-shop", org_slug: "personal" });
  await call("POST", "/apps/web/certificates/acme", { hostname: "www.example.com" });
  const made = await call("POST", "/postgres", { name: "orders", region: "ams", plan: "basic", org_slug: "personal" });
  const { id } = await machine({}, { name: "front-1" });
  const update = { config: { image: "nginx:2" } };
  const { headers } = await call("POST", `/apps/web/machines/${id}`, update, {
    "pulumi-update": "u1",
    "pulumi-urn": urn,
  });
  const request = headers.get("svc-request-id") ?? "";

  expect(await search("web")).toMatchObject({ App: ["web", "web-shop"], rollout: ["Machines of web"] });
  expect(await search("FRONT")).toEqual({ Machine: ["front-1"] });
  expect(await search("ont-1")).toEqual({ Machine: ["front-1"] });
  expect(await search(id)).toEqual({ Machine: ["front-1"] });
  expect(await search(id.slice(0, 6).toUpperCase())).toMatchObject({ Machine: ["front-1"] });
  expect(await search("example.com")).toEqual({ hostname: ["www.example.com"] });
  expect(await search("orders")).toEqual({ cluster: ["orders"] });
  expect(await search(made.body.data.id)).toEqual({ cluster: ["orders"] });
  expect(await search(request)).toEqual({ request: [request] });
  expect(await search("prod")).toEqual({ rollout: ["Machines of web"], stack: ["billing/prod"] });
  expect(await search("billing/prod")).toMatchObject({ stack: ["billing/prod"] });
  expect(await search("nothing-like-that")).toEqual({});
  for (const q of ["%", "_", "'; DROP TABLE machines", '"', "\\", "\u0000", "é", "\u{10ffff}"])
    expect((await raw(q)).status, q).toBe(200);

  const { groups }: SearchView = (await raw(id)).body;
  expect(groups).toEqual([
    {
      ...{ kind: "Machine", isMore: false },
      items: [{ text: "front-1", about: `${id}, started in ams, App web`, place: { app: "web", machine: id } }],
    },
  ]);
  expect((await raw("")).status).toBe(400);
  expect((await raw("x".repeat(101))).status).toBe(400);
});

test("a few of each kind are shown, the best first", async () => {
  const { machine, raw } = await withSearch();
  for (let i = 0; i < 9; i++) await machine({}, { name: `a-job-${i}` });
  await machine({}, { name: "job" });
  await machine({}, { name: "job-long" });
  const { groups }: SearchView = (await raw("job")).body;
  expect(groups.map(({ kind, isMore }) => [kind, isMore])).toEqual([["Machine", true]]);
  expect(groups[0]?.items.map(({ text }) => text)).toEqual([
    ...["job", "job-long", "a-job-0", "a-job-1", "a-job-2", "a-job-3"],
  ]);
});

test("a search shows nothing of other organizations, and a token of one App only what is of that App", async () => {
  const started = await withSearch();
  const { call, service, url, machine } = started;
  const by = { "pulumi-update": "u1", "pulumi-urn": urn };
  await call("POST", "/apps", { name: "web-other", org_slug: "personal" });
  await call("POST", "/apps/web-other/machines", { name: "web-hidden", config: { image: "nginx" } }, by);
  await call("POST", "/apps/web-other/certificates/acme", { hostname: "web.example.com" });
  await call("POST", "/postgres", { name: "web-db", region: "ams", plan: "basic", org_slug: "personal" });
  const { id } = await machine({}, { name: "web-1" });
  const app = service.context.store.get<{ id: string }>("SELECT id FROM apps WHERE name = 'web'")?.id ?? "";
  callerWith(started, "of-app", { apps: [app] });
  service.context.store.run("INSERT INTO orgs (slug, name) VALUES ('acme', 'Acme')");
  callerWith(started, "of-acme", { slug: "acme" });
  expect(await started.search("web")).toMatchObject({ App: ["web", "web-other"], cluster: ["web-db"] });
  expect(await searchWith(url, "of-app")("web")).toEqual({ App: ["web"], Machine: ["web-1"] });
  expect(await searchWith(url, "of-app")("prod")).toEqual({});
  for (const q of ["web", id, "prod", "example"]) expect(await searchWith(url, "of-acme")(q), q).toEqual({});
  // Searching is in no log.
  expect(service.audit.after(0).some(({ path }) => path.includes("search"))).toBe(false);
});

test("in 100,000 Machines any is found, and other clients are answered meanwhile", async () => {
  const { call, service, search } = await withSearch();
  await fillWith(100_000, service, call);
  expect(await search("web-099999")).toEqual({ Machine: ["web-099999"] });
  expect(await search("99999")).toMatchObject({ Machine: ["web-099999"] });
  expect(await search("000000000186")).toMatchObject({ Machine: expect.arrayContaining(["web-099840"]) });
  const order: string[] = [];
  const found = search("none-such-as-this").finally(() => order.push("search"));
  const other = call("GET", "/apps/web").finally(() => order.push("other"));
  expect(await found).toEqual({});
  await other;
  expect(order).toEqual(["other", "search"]);
});

test("the stacks are known from whole URNs, the latest first, in bounds", () => {
  const stacks = new Stacks();
  const hear = (stack: string, app = "web", org: string | null = "personal"): void =>
    stacks.hear({ org, path: `/v1/apps/${app}/machines`, urn: `urn:pulumi:${stack}::shop::machines:index:Machine::m` });
  hear("dev");
  hear("prod");
  hear("dev");
  hear("mail", "mail");
  hear("hidden", "web", "acme");
  hear("nobody", "web", null);
  const names = (org: string, app?: string) =>
    stacks.of(org, app === undefined ? undefined : [app]).map(({ stack }) => stack);
  expect(names("personal")).toEqual(["mail", "dev", "prod"]);
  expect(names("personal", "mail")).toEqual(["mail"]);
  expect(names("acme")).toEqual(["hidden"]);
  for (let i = 0; i < 1000; i++) hear(`s${i}`);
  expect(names("personal").length).toBe(500);
  expect(names("acme")).toEqual(["hidden"]);
  for (const one of [null, "machines:index:Machine::web", "…::shop::machines:index:Machine::web"])
    expect(stackInUrn(one)).toBe(undefined);
});
