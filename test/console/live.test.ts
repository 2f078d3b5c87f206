// Each kind of change appears in the view that is open, without a reload and without polling.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import type { Call } from "../service/client.ts";
import { hasBrowser, live, withConsole } from "./page.ts";

/** Requests that must succeed. */
const sure =
  (call: Call): Call =>
  async (...args) => {
    const answer = await call(...args);
    if (answer.status >= 300) throw new Error(`${args[0]} ${args[1]} gave ${answer.status} ${answer.text}`);
    return answer;
  };

/** A page that loads once: a reload would hide that a change does not arrive. */
async function opened(path: string, prepare: (call: Call) => Promise<void> = async () => {}) {
  const clock = new ManualClock();
  const { page, url, ...rest } = await withConsole({ service: { clock, delays: "believable" } });
  const call = sure(rest.call);
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  await prepare(call);
  await page.goto(url + path);
  await live(page);
  let loads = 0;
  page.on("load", () => loads++);
  const once = () => expect(loads).toBe(0);
  return { ...rest, page, url, call, clock, once };
}

const config = { image: "registry.example/web:1" };
const row = (page: Page, name: RegExp) => page.getByRole("row", { name });
const gone = { state: "hidden" } as const;

/** The value of a name in the list of facts. */
const fact = (page: Page, name: string) =>
  page
    .locator("dl > div")
    .filter({ has: page.getByText(name, { exact: true }) })
    .locator("dd");

/** Waits until something has this text. */
const text = (place: ReturnType<Page["locator"]>, wanted: RegExp) => place.filter({ hasText: wanted }).waitFor();

async function machineOf(call: Call, more: object = {}): Promise<string> {
  return (await call("POST", "/apps/web/machines", { name: "one", config, ...more })).body.id;
}

describe.runIf(hasBrowser)("changes in the open view", () => {
  test("the overview shows Apps, Machines, volumes, hostnames and clusters as they come, change and go", async () => {
    const { page, call, clock, once } = await opened("/");
    await call("POST", "/apps", { name: "shop", org_slug: "personal" });
    await row(page, /^shop none/).waitFor();
    const id = await machineOf(call);
    await row(page, /^web.*1 created/).waitFor();
    clock.advance(1000);
    await row(page, /^web.*1 started/).waitFor();
    await row(page, /^ams Amsterdam/).waitFor();
    await call("POST", `/apps/web/machines/${id}/stop`, {});
    clock.advance(1000);
    await row(page, /^web.*1 stopped/).waitFor();
    await call("DELETE", `/apps/web/machines/${id}`);
    clock.advance(1000);
    await row(page, /^web none/).waitFor();
    await text(page.locator(".figures li"), /^0 volumes$/);
    await call("POST", "/apps/web/volumes", { name: "data", region: "ams" });
    await text(page.locator(".figures li"), /^1 volume$/);
    await call("POST", "/apps/web/certificates/acme", { hostname: "web.example.com" });
    await row(page, /^web none 1 1 /).waitFor();
    const made = await call("POST", "/postgres", { name: "db", region: "ams", plan: "basic", org_slug: "personal" });
    await row(page, /^db.*creating/).waitFor();
    clock.advance(10_000);
    await row(page, /^db.*ready/).waitFor();
    await call("POST", `/postgres/${made.body.data.id}/attachments`, { app_name: "web" });
    await row(page, /^db.* web /).waitFor();
    await call("DELETE", `/postgres/${made.body.data.id}/attachments/web`);
    await row(page, /^db.* web /).waitFor(gone);
    await call("DELETE", `/postgres/${made.body.data.id}`);
    clock.advance(10_000);
    await row(page, /^db/).waitFor(gone);
    await call("DELETE", "/apps/shop");
    clock.advance(1000);
    await row(page, /^shop/).waitFor(gone);
    once();
  });

  test("an App shows its Machines, volumes, addresses, certificates, secrets and keys", async () => {
    const { page, call, clock, once } = await opened("/console/apps/web");
    await page.getByText("This App has no Machines").waitFor();
    const id = await machineOf(call, { region: "ams" });
    await row(page, /^one .* ams created/).waitFor();
    clock.advance(1000);
    await row(page, /^one .* started/).waitFor();
    await call("POST", `/apps/web/machines/${id}`, { config: { image: "registry.example/web:2" } });
    clock.advance(1000);
    await row(page, /^one .* started .*web:2/).waitFor();
    await page.getByRole("button", { name: "Rollouts" }).click();
    await row(page, /^ams registry.example\/web:2 1 1 started/).waitFor();
    await call("POST", `/apps/web/machines/${id}/cordon`, {});
    await row(page, /^ams .*1 cordoned/).waitFor();

    await page.getByRole("button", { name: "Volumes 0" }).click();
    const volume = await call("POST", "/apps/web/volumes", { name: "data", region: "ams", size_gb: 1 });
    await row(page, /^data .* creating .* 1 GB/).waitFor();
    clock.advance(1000);
    await row(page, /^data .* created .* 1 GB/).waitFor();
    await call("PUT", `/apps/web/volumes/${volume.body.id}/extend`, { size_gb: 3 });
    await row(page, /^data .* 3 GB/).waitFor();
    await call("DELETE", `/apps/web/volumes/${volume.body.id}`);
    await row(page, /^data .*(destroy|✕)/).waitFor();

    await page.getByRole("button", { name: "Network 0" }).click();
    const { ip } = (await call("POST", "/apps/web/ip_assignments", { type: "v6" })).body;
    await page.getByRole("rowheader", { name: ip }).waitFor();
    await call("DELETE", `/apps/web/ip_assignments/${ip}`);
    await page.getByText("This App has no addresses").waitFor();
    await call("POST", "/apps/web/certificates/acme", { hostname: "web.example.com" });
    await row(page, /^web.example.com/).waitFor();
    await call("DELETE", "/apps/web/certificates/web.example.com");
    await page.getByText("This App has no hostnames").waitFor();

    await page.getByRole("button", { name: "Secrets 0" }).click();
    await call("POST", "/apps/web/secrets/PASSWORD", { value: "hush" });
    await row(page, /^PASSWORD/).waitFor();
    await call("POST", "/apps/web/secretkeys/signing/generate", { type: "hs256" });
    await row(page, /^signing hs256/).waitFor();
    await call("DELETE", "/apps/web/secretkeys/signing");
    await page.getByText("This App has no keys").waitFor();
    await call("DELETE", "/apps/web/secrets/PASSWORD");
    await page.getByText("This App has no secrets").waitFor();

    await call("DELETE", "/apps/web");
    clock.advance(1000);
    await page.getByText("It does not exist, or not any more.").waitFor();
    once();
  });

  test("a Machine shows its lease, waits, checks, versions, volumes, events and end", async () => {
    let id = "";
    const { page, call, clock, once, service } = await opened("/", async (prepare) => {
      id = await machineOf(prepare, { region: "ams" });
    });
    const at = `/apps/web/machines/${id}`;
    clock.advance(1000);
    await page.getByRole("link", { name: "web", exact: true }).click();
    await page.getByRole("link", { name: "one" }).click();
    await fact(page, "Lease").filter({ hasText: "none" }).waitFor();

    const lease = await call("POST", `${at}/lease`, { ttl: 3000, description: "pulumi update" });
    await text(fact(page, "Lease"), /pulumi update/);
    await call("DELETE", `${at}/lease`, undefined, { "svc-machine-lease-nonce": lease.body.data.nonce });
    await text(fact(page, "Lease"), /^none/);

    await call("POST", `${at}/lease`, { ttl: 1 });
    await text(fact(page, "Lease"), /@tokens.personal/);
    clock.advance(1000);
    await text(fact(page, "Lease"), /^none/);

    const over = new AbortController();
    const wait = fetch(`${page.url().split("/console")[0]}/v1${at}/wait?state=stopped&timeout=60`, {
      headers: { authorization: `Bearer ${service.token}` },
      signal: over.signal,
    });
    await text(fact(page, "Waits held"), /for stopped/);
    over.abort();
    await expect(wait).rejects.toThrow();
    await text(fact(page, "Waits held"), /^none/);
    const late = fetch(`${page.url().split("/console")[0]}/v1${at}/wait?state=stopped&timeout=60`, {
      headers: { authorization: `Bearer ${service.token}` },
    });
    await text(fact(page, "Waits held"), /for stopped/);
    clock.advance(60_000);
    expect((await late).status).toBe(408);
    await text(fact(page, "Waits held"), /^none/);

    const volume = (await call("POST", "/apps/web/volumes", { name: "data", region: "ams", size_gb: 1 })).body;
    clock.advance(1000);
    const checks = { alive: { type: "http", port: 8080, path: "/" } };
    await call("POST", at, {
      config: { ...config, checks, mounts: [{ volume: volume.id, path: "/data" }] },
    });
    await page.getByRole("button", { name: "Versions 2" }).waitFor();
    await text(fact(page, "Volumes"), /data \(1 GB\)/);
    await call("PUT", `/apps/web/volumes/${volume.id}/extend`, { size_gb: 2 });
    await text(fact(page, "Volumes"), /data \(2 GB\)/);
    clock.advance(500);
    await row(page, /^alive .*warning/).waitFor();
    clock.advance(1000);
    await row(page, /^alive .*passing/).waitFor();

    await call("POST", `${at}/stop`, {});
    await text(page.getByRole("listitem"), /Stop requested · a request/);
    clock.advance(1000);
    await text(page.getByRole("listitem"), /Stopped on request · the service/);
    await call("DELETE", at);
    clock.advance(1000);
    await text(page.locator("header.title"), /destroyed/);
    once();
  });

  test("a cluster becomes ready, and shows its databases, users and backups", async () => {
    let id = "";
    const { page, call, clock, once } = await opened("/", async (prepare) => {
      const wanted = { name: "db", region: "ams", plan: "basic", org_slug: "personal" };
      id = (await prepare("POST", "/postgres", wanted)).body.data.id;
    });
    await page.getByRole("link", { name: "db" }).click();
    await page.getByText("It cannot answer about its contents now").waitFor();
    clock.advance(10_000);
    await text(page.locator("header.title"), /ready/);
    await row(page, /^fly-user schema_admin/).waitFor();
    const at = `/postgres/${id}`;
    await call("POST", `${at}/databases`, { name: "orders" });
    await row(page, /^orders/).waitFor();
    await call("DELETE", `${at}/databases/orders`);
    await row(page, /^orders/).waitFor(gone);
    await call("POST", `${at}/users`, { username: "app", role: "reader" });
    await row(page, /^app reader/).waitFor();
    await call("PATCH", `${at}/users/app`, { role: "writer" });
    await row(page, /^app writer/).waitFor();
    await call("DELETE", `${at}/users/app`);
    await row(page, /^app/).waitFor(gone);
    await call("POST", `${at}/backups`, { type: "full" });
    await row(page, /full .*running/).waitFor();
    clock.advance(1000);
    await row(page, /full .*completed/).waitFor();
    await page.getByText("it can be restored to one point").waitFor();
    once();
  });

  test("the log shows each request as it is answered", async () => {
    const { page, call, once } = await opened("/console/requests");
    await row(page, /POST \/v1\/apps .*201/).waitFor();
    for (const name of ["two", "three"]) {
      await call("POST", "/apps", { name, org_slug: "personal" });
      await call("GET", `/apps/${name}`);
      await row(page, new RegExp(`GET /v1/apps/${name} .*200`)).waitFor();
    }
    await page.getByText("5 of the latest 5").waitFor();
    once();
  });

  test("a page at rest asks nothing: it has one connection, on which changes arrive", async () => {
    const { page, url, call } = await opened("/");
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url().slice(url.length)));
    const inASecond = async (): Promise<readonly string[]> => {
      const before = asked.length;
      await page.evaluate("new Promise((done) => setTimeout(() => requestAnimationFrame(done), 1100))");
      return asked.slice(before);
    };
    for (const path of ["/console/apps/web", "/"]) {
      await page.goto(url + path);
      await live(page);
      await expect.poll(inASecond).toEqual([]);
    }
    expect(asked.filter((path) => path.startsWith("/console/events"))).toHaveLength(2);
    // And it was no page that had lost its connection.
    await call("POST", "/apps", { name: "late", org_slug: "personal" });
    await row(page, /^late/).waitFor();
  });
});
