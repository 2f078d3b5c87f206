// The service goes away and comes back while the page is open.
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { createService, type Service } from "../../service/index.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { hasBrowser, live, openPage, signIn } from "./page.ts";

/** A service on one port and one data folder, as often as it is started. */
function restartable() {
  const data = mkdtempSync(join(tmpdir(), "machines-console-"));
  let service: Service | undefined;
  let port = 0;
  afterThisTest(async () => {
    await service?.close();
    rmSync(data, { recursive: true, force: true });
  });
  /** Starts it; `before` sends requests that are answered before anyone can connect. */
  const start = async (before: (ask: Ask) => Promise<void> = async () => {}) => {
    const started = (service = createService({ data, delays: "none", strict: true, audit: true }));
    await before(async (method, path, body) => {
      const headers = { authorization: `Bearer ${started.token}`, host: "localhost" };
      const sent = { method, url: `/v1${path}`, headers, ...(body === undefined ? {} : { payload: body }) };
      const { statusCode, json } = await started.app.inject(sent);
      expect(statusCode).toBeLessThan(300);
      return json;
    });
    await started.app.listen({ host: "127.0.0.1", port });
    ({ port } = started.app.server.address() as AddressInfo);
    return { url: `http://127.0.0.1:${port}`, service: started };
  };
  return { start, stop: async () => service?.close() };
}

type Ask = (method: "GET" | "POST" | "DELETE", path: string, body?: object) => Promise<unknown>;

const machine = (name: string) => ({ name, config: { image: "nginx" } });
const connecting = (page: Page) => page.getByRole("banner").getByText("connecting …").waitFor();
const row = (page: Page, name: RegExp) => page.getByRole("row", { name });

describe.runIf(hasBrowser)("a restart of the service", () => {
  test("the page keeps what it shows, comes back by itself, and shows what it missed", async () => {
    const { start, stop } = restartable();
    const first = await start(async (ask) => {
      await ask("POST", "/apps", { name: "web", org_slug: "personal" });
      await ask("POST", "/apps/web/machines", machine("one"));
    });
    const page = await openPage(first);
    await signIn(page, first, "/console/apps/web");
    await row(page, /^one .*started/).waitFor();
    await live(page);
    let loads = 0;
    page.on("load", () => loads++);
    await stop();
    await connecting(page);
    expect(await row(page, /^one .*started/).isVisible()).toBe(true);
    // A view that is opened now waits for the service.
    await page.getByRole("link", { name: "Requests" }).click();
    await page.getByRole("heading", { name: "Requests" }).waitFor();
    await page.goBack();
    await start(async (ask) => void (await ask("POST", "/apps/web/machines", machine("two"))));
    await row(page, /^two .*started/).waitFor();
    await live(page);
    await page.getByRole("link", { name: "Requests" }).click();
    await page.getByText("1 of the latest 1").waitFor();
    expect(loads).toBe(0);
    expect(await page.getByLabel("Or paste an access token").count()).toBe(0);
  });

  test("the log begins again, and an App that was deleted meanwhile is said to be gone", async () => {
    const { start, stop } = restartable();
    const first = await start(async (ask) => {
      for (const name of ["web", "shop", "mail"]) await ask("POST", "/apps", { name, org_slug: "personal" });
    });
    const page = await openPage(first);
    await signIn(page, first, "/console/requests");
    await page.getByText("3 of the latest 3").waitFor();
    await live(page);
    await stop();
    await connecting(page);
    await start(async (ask) => {
      // More than before: their numbers are those that the page knows.
      for (const name of ["web", "shop", "mail", "web"]) await ask("GET", `/apps/${name}`);
    });
    await page.getByText("4 of the latest 4").waitFor();
    expect(await row(page, / GET \/v1\/apps/).count()).toBe(4);

    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByRole("link", { name: "shop" }).click();
    await page.getByText("This App has no Machines").waitFor();
    await stop();
    await connecting(page);
    await start(async (ask) => void (await ask("DELETE", "/apps/shop?force=true")));
    await page.getByText("It does not exist, or not any more.").waitFor();
    await live(page);
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Overview" }).click();
    await row(page, /^web/).waitFor();
    expect(await row(page, /^shop/).count()).toBe(0);
  });

  test("the view of an App that is not there yet shows it as soon as it is", async () => {
    const { start } = restartable();
    const started = await start();
    const page = await openPage(started);
    await signIn(page, started, "/console/apps/web");
    await page.getByText("It does not exist, or not any more.").waitFor();
    await live(page);
    const response = await fetch(`${started.url}/v1/apps`, {
      method: "POST",
      headers: { authorization: `Bearer ${started.service.token}` },
      body: JSON.stringify({ name: "web", org_slug: "personal" }),
    });
    expect(response.status).toBe(201);
    await page.getByText("This App has no Machines").waitFor();
  });
});
