// The pictures of the README and the docs: a shop, a rollout while it happens, and a query. `UPDATE_DOCS=1` writes them to docs/images.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import { findBinaries } from "../../service/runtime/postgres/binaries.ts";
import { embeddedPostgres } from "../../service/runtime/postgres/index.ts";
import type { Call } from "../service/client.ts";
import { dataFolder, requestsOfClusters } from "../service/postgres/servers.ts";
import { hasBrowser, signIn, openPage, withService } from "./page.ts";

const screens = "node_modules/.cache/pulumi-machines/screens";
const docs = "docs/images";

/** Takes a picture, and writes it to the docs if that is wanted. */
async function picture(page: Page, name: string, folder = docs): Promise<void> {
  mkdirSync(screens, { recursive: true });
  const file = join(screens, `${name}.png`);
  await page.screenshot({ path: file });
  if (process.env["UPDATE_DOCS"] === "1" && folder !== screens) copyFileSync(file, join(folder, `${name}.png`));
}

const regions = ["ams", "fra", "iad"];
const urn = (type: string, name: string) => ({
  "pulumi-urn": `urn:pulumi:prod::shop::machines:index:${type}::${name}`,
});

/** Creates a shop, a mail server and a search. */
async function deploy(call: Call): Promise<void> {
  const ok = async (...args: Parameters<Call>) => {
    const { status, body, text } = await call(...args);
    if (status >= 300) throw new Error(`${args[0]} ${args[1]} gave ${status} ${text}`);
    return body;
  };
  for (const name of ["shop", "mail", "search"])
    await ok("POST", "/apps", { name, org_slug: "personal" }, urn("App", name));
  const config = (tag: string) => ({
    image: `registry.example/shop:${tag}`,
    guest: { cpu_kind: "shared", cpus: 2, memory_mb: 512 },
    checks: { alive: { type: "http", port: 8080, path: "/healthz" } },
    services: [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 443, handlers: ["tls", "http"] }] }],
    metadata: { "pulumi-fleet": "web", "pulumi-fleet-phase": "serving" },
  });
  for (const number of [0, 1])
    for (const region of regions) {
      const body = { name: `web-${region}-${number}`, region, config: config("1.4.0") };
      await ok("POST", "/apps/shop/machines", body, urn("Fleet", "web"));
    }
  for (const [app, name, region] of [
    ["mail", "smtp", "fra"],
    ["search", "index-0", "ams"],
    ["search", "index-1", "iad"],
  ] as const) {
    const body = { name, region, config: { image: `registry.example/${app}:2.1.3` } };
    await ok("POST", `/apps/${app}/machines`, body, urn("Machine", name));
  }
  await ok("POST", "/apps/shop/volumes", { name: "uploads", region: "ams", size_gb: 20 }, urn("Volume", "uploads"));
  await ok("POST", "/apps/shop/secrets/STRIPE_KEY", { value: "not-shown" }, urn("Secret", "stripe"));
  await ok("POST", "/apps/shop/certificates/acme", { hostname: "shop.example.com" }, urn("AcmeCertificate", "shop"));
  const cluster = { name: "orders", region: "ams", plan: "starter", org_slug: "personal" };
  await ok("POST", "/postgres", cluster, urn("PostgresCluster", "orders"));
}

/** Rolls a new image out to the shop's fleet, Machine after Machine, and calls back after each moment of it. */
async function rollOut(
  { url, token, call, clock }: Served,
  seen: (moment: number, isOver: boolean) => Promise<void>,
): Promise<void> {
  const headers = { ...urn("Fleet", "web"), "pulumi-update": "deploy-42" };
  const fleet = (await call("GET", "/apps/shop/machines")).body as { id: string; config: { image: string } }[];
  const report = async (more: object): Promise<void> => {
    const images = { from: "registry.example/shop:1.4.0", to: "registry.example/shop:1.5.0" };
    const answer = await fetch(`${url}/local/apps/shop/rollouts`, {
      method: "PUT",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
      body: JSON.stringify({ fleet: "web", strategy: "rolling", ...images, phase: "rolling out", ...more }),
    });
    expect(answer.status).toBe(204);
  };
  await report({});
  const moments = fleet.length * 5;
  for (let moment = 0; moment < moments; moment++) {
    clock.advance(400);
    const { id = "", config } = fleet[Math.floor(moment / 5)] ?? {};
    const next = { ...config, image: "registry.example/shop:1.5.0" };
    if (moment % 5 === 1) await call("POST", `/apps/shop/machines/${id}`, { config: next }, headers);
    await report({});
    await seen(moment, false);
  }
  for (let i = 0; i < 8; i++) clock.advance(500);
  await report({ result: "succeeded" });
  await seen(moments, true);
}

type Served = Awaited<ReturnType<typeof withService<ManualClock>>>;

describe.runIf(hasBrowser)("the pictures of the README", () => {
  test("show an organization, a rollout while it happens, and an App as code", async () => {
    const clock = new ManualClock();
    const service = await withService({ clock, delays: "believable" });
    await deploy(service.call);
    for (let i = 0; i < 60; i++) clock.advance(1000);
    const page = await openPage(service, { viewport: { width: 1200, height: 640 } });
    await signIn(page, service);
    await page.getByText("orders").waitFor();
    await picture(page, "console-overview");

    await page.goto(`${service.url}/console/rollouts`);
    let began = 0;
    const frames: string[] = [];
    await rollOut(service, async (moment, isOver) => {
      if (moment === 0) {
        began = clock.now() - 400;
        await page.getByRole("link", { name: "shop/web" }).click();
      }
      const isShown = async (): Promise<boolean> => {
        const [shown = ""] = await page.getByText(/ so far$/).allTextContents();
        return Number.parseFloat(shown) * 1000 >= clock.now() - began - 50;
      };
      if (isOver) await page.getByText("succeeded").first().waitFor();
      else await expect.poll(isShown).toBe(true);
      const frame = `rollout-${String(moment).padStart(2, "0")}`;
      await picture(page, frame, screens);
      frames.push(join(screens, `${frame}.png`));
    });
    await page.getByText("Fleet web of shop/prod").first().waitFor();
    if (process.env["UPDATE_DOCS"] === "1") film(frames);

    await page.goto(`${service.url}/console/apps/shop?view=rollouts`);
    await page.getByRole("link", { name: "shop/web" }).waitFor();
    await page.emulateMedia({ colorScheme: "dark" });
    await page.getByRole("button", { name: "All of it as code" }).click();
    await page.getByText("new machines.Fleet").waitFor();
    await picture(page, "console-code");
  });
});

/** Makes the moving picture; ImageMagick is needed for it. */
function film(frames: readonly string[]): void {
  const last = frames.at(-1) ?? "";
  const still = ["-delay", "35", ...frames.slice(0, -1), "-delay", "300", last];
  const small = [
    "-crop",
    "1200x530+0+0",
    "+repage",
    "-resize",
    "860x",
    "-colors",
    "32",
    "-layers",
    "Optimize",
    "-loop",
    "0",
  ];
  execFileSync("convert", [...still, ...small, join(docs, "console-rollout.gif")]);
}

describe.runIf(hasBrowser)("the picture of a cluster", () => {
  test("shows a query and its rows", async () => {
    const data = dataFolder();
    const versions = new Map([...(await findBinaries())].filter(([version]) => version === "18"));
    const service = await withService({ console: "write", data, postgres: await embeddedPostgres({ data, versions }) });
    const { cluster, connect } = requestsOfClusters(service.call);
    const ready = await cluster({ name: "orders" });
    const owner = await connect(ready);
    await owner.query(`CREATE TABLE orders (id int PRIMARY KEY, customer text NOT NULL, total numeric(10, 2), shipped date);
      INSERT INTO orders SELECT n, (ARRAY['Ada', 'Grace', 'Edsger', 'Barbara'])[1 + n % 4], n * 12.5,
        CASE WHEN n % 3 > 0 THEN date '2026-11-01' + n END FROM generate_series(1, 40) AS n`);
    const page = await openPage(service, { viewport: { width: 1200, height: 640 } });
    await signIn(page, service, `/console/clusters/${ready.id}?view=query`);
    await page.getByRole("textbox", { name: "Query" }).click();
    await page.keyboard.insertText(
      "-- The largest orders\nSELECT id, customer, total, shipped\nFROM orders\nWHERE total > 400\nORDER BY total DESC",
    );
    await page.keyboard.press("Control+Enter");
    await page.getByText("8 rows").waitFor();
    await picture(page, "console-query");
    await page.goto(`${service.url}/console/clusters/${ready.id}`);
    await page.getByLabel("Address to connect with").waitFor();
    await picture(page, "console-cluster", screens);
  });
});
