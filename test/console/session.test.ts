// Signing in, the rights of a session, and its end, as a user of the page sees them.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import { addToken, revokeTokens, type Grant } from "../../service/store/tokens.ts";
import { send } from "../service/console/browser.ts";
import { afterThisTest } from "../support/leftovers.ts";
import type { TestService } from "../support/startService.ts";
import { hasBrowser, live, openPage, signIn, signInWith, withService } from "./page.ts";
import { fill } from "./shop.ts";
import { thoroughTest } from "../support/thorough.ts";

const field = (page: Page) => page.getByLabel("Or paste an access token");
const views = (page: Page) => page.getByRole("navigation", { name: "Views" });
const row = (page: Page, name: RegExp) => page.getByRole("row", { name });

/** A new token. */
function grant({ service }: Pick<TestService, "service">, token: string, more: Partial<Grant> = {}): string {
  const { store, clock } = service.context;
  return addToken(store, token, { slug: "personal", expiresAt: null, ...more }, clock.now());
}

/** What scripts of the page can read, and what a later user of the browser could find. */
const traces = (page: Page) =>
  page.evaluate<string>(
    "JSON.stringify([location.href, history.state, document.cookie, { ...localStorage }, { ...sessionStorage }, document.title, performance.getEntries().map(({ name }) => name), document.documentElement.outerHTML])",
  );

describe.runIf(hasBrowser)("a session in the browser", () => {
  test("a wrong code, a used one and a wrong token are refused with a reason, next to the form for a token", async () => {
    const service = await withService();
    const page = await openPage(service);
    await page.goto(`${service.url}/#code=wrong`);
    await page
      .getByRole("alert")
      .getByText(/^the code is wrong, was used, has expired/)
      .waitFor();
    expect(page.url()).toBe(`${service.url}/`);
    await field(page).fill("not-a-token");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("the token is wrong, was revoked, or has expired").waitFor();
    await field(page).fill(` ${service.token}\n`);
    await page.getByRole("button", { name: "Sign in" }).click();
    await live(page);

    const code = service.service.consoleCode();
    const [first, second] = [await openPage(service), await openPage(service)];
    await first.goto(`${service.url}/#code=${code}`);
    await live(first);
    await second.goto(`${service.url}/#code=${code}`);
    await second
      .getByRole("alert")
      .getByText(/^the code is wrong, was used, has expired/)
      .waitFor();
    // The tab is open: this address loads no page.
    await second.goto(`${service.url}/#code=${service.service.consoleCode()}`);
    await live(second);
  });

  thoroughTest("a link asks to sign in and then shows its view; nothing secret stays in the browser", async () => {
    const service = await withService();
    await fill(service.call);
    const page = await openPage(service);
    await page.goto(`${service.url}/console/apps/shop?view=volumes`);
    await signInWith(page, service.token);
    await row(page, /^data .* 10 GB/).waitFor();
    expect(await traces(page)).not.toContain(service.token);
    const code = service.service.consoleCode();
    await page.goto(`${service.url}/console/apps/shop?view=secrets#code=${code}`);
    await row(page, /^PASSWORD/).waitFor();
    await page.goBack();
    await row(page, /^data .* 10 GB/).waitFor();
    await page.goForward();
    await row(page, /^PASSWORD/).waitFor();
    expect(page.url()).toBe(`${service.url}/console/apps/shop?view=secrets`);
    const found = await traces(page);
    for (const secret of [service.token, code, code.split(".")[0] ?? "", "hush"]) expect(found).not.toContain(secret);
    expect(await page.evaluate("document.cookie")).toBe("");
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict", path: "/" });
    expect(found).not.toContain(cookie?.value);

    await page.getByRole("button", { name: "Sign out" }).click();
    await field(page).waitFor();
    expect(await page.context().cookies()).toEqual([]);
    await page.goBack();
    await field(page).waitFor();
    expect(await page.getByText("PASSWORD").count()).toBe(0);
  });

  thoroughTest("the page asks to sign in when the token expires, and when it is revoked", async () => {
    const service = await withService({ clock: new ManualClock() });
    const { clock, call, service: inside } = service;
    grant(service, "short", { expiresAt: clock.now() + 1500 });
    const id = grant(service, "revoked");
    const [expiring, revoked] = [await openPage(service), await openPage(service)];
    for (const [page, token] of [
      [expiring, "short"],
      [revoked, "revoked"],
    ] as const) {
      await page.goto(`${service.url}/console/requests`);
      await signInWith(page, token);
      await live(page);
    }
    clock.advance(1500);
    await expiring.getByRole("alert").getByText("The session has ended").waitFor();
    await field(expiring).waitFor();
    expect(await expiring.getByRole("table").count()).toBe(0);

    revokeTokens(inside.context.store, id);
    // The service remembers a token for a second.
    clock.advance(1000);
    await call("POST", "/apps", { name: "web", org_slug: "personal" });
    await revoked.getByRole("alert").getByText("The session has ended").waitFor();
    expect(await revoked.getByText("/v1/apps").count()).toBe(0);
    await signInWith(revoked, service.token);
    await row(revoked, / POST \/v1\/apps /).waitFor();
  });

  thoroughTest("a token of one App sees that App only, and changes nothing", async () => {
    const service = await withService({ console: "write" });
    const { service: inside, url } = service;
    inside.faults.isOpen = true;
    const { first } = await fill(service.call);
    const app = inside.context.store.get<{ id: string }>("SELECT id FROM apps WHERE name = 'shop'")?.id ?? "";
    grant(service, "of-shop", { apps: [app], role: "read" });
    const page = await openPage(service);
    await page.goto(url);
    await signInWith(page, "of-shop");
    await row(page, /^shop/).waitFor();
    expect(await page.getByRole("group", { name: "Apps" }).getByRole("row").count()).toBe(2);
    expect(await page.getByText("Postgres clusters").count()).toBe(0);
    expect(await views(page).getByRole("link").allTextContents()).toEqual(["Overview", "Rollouts", "Requests", "API"]);
    await page.getByText("read-only").waitFor();
    await views(page).getByRole("link", { name: "Requests" }).click();
    await row(page, / POST \/v1\/apps\/shop\/machines /)
      .first()
      .waitFor();
    expect(await page.getByText("/v1/apps/mail").count()).toBe(0);
    expect(await page.getByText("/v1/postgres").count()).toBe(0);
    await page.goto(`${url}/console/apps/mail`);
    await page.getByText("The token of this session may not see it.").waitFor();
    await page.goto(`${url}/console/apps/shop/machines/${first}`);
    await page.getByRole("button", { name: "Copy as code" }).waitFor();
    for (const name of ["Stop", "Destroy", "Terminal"])
      expect(await page.getByRole("button", { name, exact: true }).count()).toBe(0);
  });

  test("two organizations do not see each other", async () => {
    const service = await withService();
    await fill(service.call);
    grant(service, "of-others", { slug: "others" });
    const page = await openPage(service);
    await page.goto(service.url);
    await signInWith(page, "of-others");
    await page.getByText("No App yet.").waitFor();
    await views(page).getByRole("link", { name: "Requests" }).click();
    await page.getByText("0 of the latest 0").waitFor();
    await page.goto(`${service.url}/console/apps/shop`);
    await page.getByText("The token of this session may not see it.").waitFor();
  });

  test("F81: a page at another port of this computer gets the cookie, and can do nothing with it", async () => {
    const service = await withService({ console: "write" });
    const page = await openPage(service);
    await signIn(page, service);
    const received: string[] = [];
    const machine = createServer(({ headers }, response) => {
      received.push(headers.cookie ?? "");
      response.setHeader("content-type", "text/html").end("<title>a Machine</title>");
    });
    await new Promise<void>((resolve) => void machine.listen(0, "127.0.0.1", resolve));
    afterThisTest(() => void machine.close());
    const other = await page.context().newPage();
    await other.goto(`http://127.0.0.1:${(machine.address() as AddressInfo).port}/`);
    const [cookie = ""] = received;
    expect(cookie).toContain("machines_console_");
    const statusOf = async (headers: Readonly<Record<string, string>>) =>
      (await send(service.url, "GET", "/console/session", { headers })).status;
    expect(await statusOf({ cookie })).toBe(401);
    // Its script reads nothing that the console keeps, and gets no answer of the service.
    const found = await other.evaluate<readonly [string, string]>(
      `fetch(${JSON.stringify(service.url)} + "/console/session", { credentials: "include" })
        .then(async (it) => it.text(), () => "refused")
        .then((answer) => [JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]), answer])`,
    );
    expect(found).toEqual(['[{},{},""]', "refused"]);
    const key = await page.evaluate<string>('localStorage.getItem("machines-console-page-key")');
    expect(await statusOf({ cookie, "console-page-key": key })).toBe(200);
    expect(cookie).not.toContain(key);
    await other.close();
    await page.getByRole("button", { name: "Sign out" }).click();
    await field(page).waitFor();
    expect(await page.evaluate("localStorage.getItem('machines-console-page-key')")).toBe(null);
  });

  test("F83: a secret and a password are shown after a click, which the request log shows", async () => {
    const service = await withService({ console: "write" });
    const { cluster } = await fill(service.call);
    const page = await openPage(service);
    await signIn(page, service, "/console/apps/shop?view=secrets");
    await row(page, /^PASSWORD/).waitFor();
    expect(await page.getByText("hush-hush-value").count()).toBe(0);
    await page.getByRole("button", { name: "Reveal Secret PASSWORD" }).click();
    await page.getByRole("dialog").getByText("hush-hush-value").waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByText("hush-hush-value").waitFor({ state: "hidden" });
    await page.goto(`${service.url}/console/clusters/${cluster}`);
    await page.getByRole("group", { name: "Users" }).getByRole("button", { name: "Reveal" }).first().click();
    await page.getByRole("dialog").getByLabel("Password of", { exact: false }).first().waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    await views(page).getByRole("link", { name: "Requests" }).click();
    await row(page, / POST \/console\/api\/apps\/shop\/secrets\/PASSWORD\/reveal .*200/).waitFor();
    await row(page, / POST \/console\/api\/clusters\/.*\/reveal .*200/).waitFor();
  });

  test("a sign-in lasts for the other tabs of the browser, and signing out ends it for them", async () => {
    const service = await withService();
    const page = await openPage(service);
    await signIn(page, service);
    const other = await page.context().newPage();
    await other.goto(`${service.url}/console/requests`);
    await live(other);
    await page.getByRole("button", { name: "Sign out" }).click();
    await field(page).waitFor();
    await service.call("POST", "/apps", { name: "web", org_slug: "personal" });
    await other.getByRole("alert").getByText("The session has ended").waitFor();
  });
});
