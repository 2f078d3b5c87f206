// Faults: who may switch them on, and what the page shows of the requests that they hit.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { startAdmin } from "../../service/index.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { hasBrowser, live, openPage, signIn, signInWith, withService } from "./page.ts";

const views = (page: Page) => page.getByRole("navigation", { name: "Views" });
const hits = (page: Page, label: string, name: RegExp) =>
  page.getByRole("group", { name: label }).getByRole("row", { name });

/** A service with an admin listener, as `start --admin` has it. */
async function withAdmin() {
  const started = await withService();
  const listen = { host: "127.0.0.1", port: 0 };
  const admin = await startAdmin({ service: started.service, listen });
  afterThisTest(() => admin.close());
  await started.call("POST", "/apps", { name: "web", org_slug: "personal" });
  return { ...started, admin };
}

describe.runIf(hasBrowser)("faults in the console", () => {
  test("the operator switches a fault on, sees what it hits, and switches it off", async () => {
    const service = await withAdmin();
    const { call } = service;
    const page = await openPage(service);
    await signIn(page, service);
    await views(page).getByRole("link", { name: "Faults" }).click();
    await page.getByText("No fault is switched on").waitFor();
    await live(page);

    await page.getByLabel("Effect").selectOption("Answer with an error");
    await page.getByLabel("Operation").selectOption("apps.get");
    await page.getByLabel("Times").selectOption("always");
    await page.getByRole("button", { name: "Switch on" }).click();
    await page.getByText('{"operation":"apps.get","times":"always","status":503}').waitFor();
    expect((await call("GET", "/apps/web")).status).toBe(503);
    await hits(page, "Requests that fault-1 hit", /GET \/v1\/apps\/web .*503/).waitFor();
    await page.getByText("It concerned 1 request so far.").waitFor();
    expect((await call("GET", "/apps/web")).status).toBe(503);
    await page.getByText("It concerned 2 requests so far.").waitFor();
    await page.getByRole("button", { name: "Switch off fault-1" }).click();
    await page.getByText("No fault is switched on").waitFor();
    expect((await call("GET", "/apps/web")).status).toBe(200);
    await hits(page, "Requests that other faults hit", / GET \/v1\/apps\/web .*503.*fault-1/)
      .first()
      .waitFor();

    // A fault for one request is off after it.
    await page.getByLabel("Effect").selectOption("Close the connection after the change");
    await page.getByLabel("Operation").selectOption("apps.create");
    await page.getByLabel("Times").selectOption("1");
    await page.getByRole("button", { name: "Switch on" }).click();
    await page.getByRole("button", { name: "Switch off fault-2" }).waitFor();
    await expect(call("POST", "/apps", { name: "shop", org_slug: "personal" })).rejects.toThrow();
    await page.getByText("No fault is switched on").waitFor();
    await hits(page, "Requests that other faults hit", / POST \/v1\/apps .*closed.*fault-2/).waitFor();
    expect((await call("GET", "/apps/shop")).status).toBe(200);

    // A contradiction is explained.
    await page.getByLabel("Effect").selectOption("No capacity");
    await page.getByLabel("Operation").selectOption("apps.get");
    await page.getByRole("button", { name: "Switch on" }).click();
    await page.getByRole("alert").getByText("must be one that capacity applies to").waitFor();
  });

  test("faults that others plan and remove appear at once", async () => {
    const service = await withAdmin();
    const page = await openPage(service);
    await signIn(page, service, "/console/faults");
    await live(page);
    const [id = ""] = service.service.faults.add({ operation: "machines.create", capacity: true });
    await page.getByRole("heading", { name: id }).waitFor();
    service.service.faults.clear();
    await page.getByText("No fault is switched on").waitFor();
  });

  test("a session of a token has no faults, and its page cannot plan one", async () => {
    const service = await withAdmin();
    const page = await openPage(service);
    await page.goto(`${service.url}/console/faults`);
    await signInWith(page, service.token);
    await page.getByText("machines-service start --admin 127.0.0.1:0").waitFor();
    expect(await views(page).getByRole("link", { name: "Faults" }).count()).toBe(0);
    const answer = await page.evaluate<readonly [number, string]>(
      `fetch("/console/api/faults", {
        method: "POST",
        body: '{"status":500}',
        headers: { "console-page-key": localStorage.getItem("machines-console-page-key") },
      }).then(async (it) => [it.status, await it.text()])`,
    );
    expect(answer).toEqual([403, expect.stringContaining("faults need the admin listener (start --admin)")]);
    expect(service.service.faults.planned).toEqual([]);
  });

  test("without an admin listener, the page says how to have one", async () => {
    const service = await withService();
    const page = await openPage(service);
    await signIn(page, service, "/console/faults");
    await page.getByText("Faults can be switched on here when the admin listener is on").waitFor();
    await page.getByText("machines-service start --admin 127.0.0.1:0").waitFor();
    expect(await page.getByRole("button", { name: "Switch on" }).count()).toBe(0);
  });
});
