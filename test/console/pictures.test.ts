// The pictures of the README: a shop in the middle of a rollout. `UPDATE_DOCS=1` writes them to docs/images.
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { Call } from "../service/client.ts";
import { hasBrowser, signIn, openPage, withService } from "./page.ts";

const screens = "node_modules/.cache/pulumi-machines/screens";
const docs = "docs/images";

/** Takes a picture, and writes it to the docs if that is wanted. */
async function picture(page: Page, name: string): Promise<void> {
  mkdirSync(screens, { recursive: true });
  const file = join(screens, `${name}.png`);
  await page.screenshot({ path: file });
  if (process.env["UPDATE_DOCS"] !== "1") return;
  mkdirSync(docs, { recursive: true });
  copyFileSync(file, join(docs, `${name}.png`));
}

const regions = ["ams", "fra", "iad"];
const urn = (type: string, name: string) => ({
  "pulumi-urn": `urn:pulumi:prod::shop::machines:index:${type}::${name}`,
});

/** Creates a shop and a mail server; two of the shop's six Machines have the new image. */
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
  const ids: string[] = [];
  for (const number of [0, 1])
    for (const region of regions) {
      const body = { name: `web-${region}-${number}`, region, config: config("1.4.0") };
      ids.push((await ok("POST", "/apps/shop/machines", body, urn("Fleet", "web"))).id);
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
  for (const id of ids.slice(0, 2)) {
    const at = `/apps/shop/machines/${id}`;
    await ok("POST", `${at}/cordon`, {}, urn("Fleet", "web"));
    await ok("POST", at, { config: config("1.5.0") }, urn("Fleet", "web"));
    await ok("POST", `${at}/uncordon`, {}, urn("Fleet", "web"));
  }
  await ok("POST", `/apps/shop/machines/${ids[2]}/cordon`, {}, urn("Fleet", "web"));
}

describe.runIf(hasBrowser)("the pictures of the README", () => {
  test("show an organization, a rollout step by step, and an App as code", async () => {
    const service = await withService();
    await deploy(service.call);
    const page = await openPage(service, { viewport: { width: 1200, height: 640 } });
    await signIn(page, service);
    await page.getByText("orders").waitFor();
    await picture(page, "console-overview");

    await page.goto(`${service.url}/console/apps/shop?view=rollouts`);
    await page.getByText("2 images: a rollout is under way").waitFor();
    expect(await page.getByRole("row").filter({ hasText: "uncordon" }).count()).toBe(2);
    expect(await page.getByText("of shop/prod").count()).toBeGreaterThan(5);
    await picture(page, "console-rollout");

    await page.emulateMedia({ colorScheme: "dark" });
    await page.getByRole("button", { name: "All of it as code" }).click();
    await page.getByText("new machines.Fleet").waitFor();
    await picture(page, "console-code");
  });
});
