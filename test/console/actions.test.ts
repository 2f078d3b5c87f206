// Operating Machines from the page: each action asks first, shows a refusal where it was asked, and changes the view.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { addToken } from "../../service/store/tokens.ts";
import { allOr } from "../support/extent.mts";
import { hasBrowser, live, openPage, signIn, signInWith, withService } from "./page.ts";

const title = (page: Page) => page.locator("header.title");
const button = (page: Page, name: string) => title(page).getByRole("button", { name, exact: true });
const dialog = (page: Page) => page.getByRole("dialog");

/** The view of a started Machine `web-1`. */
async function machinePage(console: "read" | "write") {
  const service = await withService({ console });
  const { call, url } = service;
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const { id } = (await call("POST", "/apps/web/machines", { name: "web-1", config: { image: "nginx" } })).body;
  const page = await openPage(service);
  await signIn(page, service, `/console/apps/web/machines/${id}`);
  await live(page);
  await title(page).getByText("started").waitFor();
  const at = `/apps/web/machines/${id}`;
  const state = async (): Promise<string> => (await call("GET", at)).body.state;
  return { ...service, page, url, id, at, state };
}

/** Asks for an action and confirms it. */
async function act(page: Page, name: string): Promise<void> {
  await button(page, name).click();
  await dialog(page)
    .getByRole("button", { name: `${name} web-1` })
    .click();
  await dialog(page).waitFor({ state: "hidden" });
}

/** The roles of sessions: their buttons, whether they reveal secrets, and what the page says of them. */
const roles = [
  ["read", [], false, "read-only"],
  ["operate", ["Stop", "Restart", "Cordon"], false, "may operate Machines"],
  ["deploy", ["Stop", "Restart", "Cordon", "Destroy"], false, "may change Machines"],
  ["own", ["Stop", "Restart", "Cordon", "Destroy"], true, "may change Machines"],
] as const;

/** What the page sends with every request of its session. */
const pageKey = `{ "console-page-key": localStorage.getItem("machines-console-page-key") }`;

describe.runIf(hasBrowser)("actions in the console", () => {
  test("each action names the Machine, can be cancelled, and shows its effect", async () => {
    const { page, call, at, state, requests } = await machinePage("write");
    for (const name of ["Stop", "Restart", "Cordon", "Destroy"]) {
      await button(page, name).click();
      await dialog(page)
        .getByRole("heading", { name: `${name} web-1?` })
        .waitFor();
      await page.keyboard.press("Escape");
      await dialog(page).waitFor({ state: "hidden" });
      expect(await button(page, name).evaluate((element) => element.matches(":focus"))).toBe(true);
    }
    expect(requests.filter(({ method, path }) => method !== "GET" && path.includes(at.slice(-14)))).toEqual([]);
    await act(page, "Stop");
    await title(page).getByText("stopped").waitFor();
    expect(await state()).toBe("stopped");
    // The button that had the focus is gone.
    expect(await page.evaluate("document.activeElement.tagName")).not.toBe("BODY");
    await act(page, "Start");
    await title(page).getByText("started").waitFor();
    await act(page, "Restart");
    await page.getByRole("listitem").filter({ hasText: "restart" }).first().waitFor();
    await act(page, "Cordon");
    await title(page).getByText("cordoned").waitFor();
    await act(page, "Uncordon");
    await title(page).getByText("cordoned").waitFor({ state: "hidden" });

    await button(page, "Destroy").click();
    const confirm = dialog(page).getByRole("button", { name: "Destroy web-1" });
    for (const typed of ["", "web", "web-11"]) {
      await dialog(page).getByRole("textbox").fill(typed);
      expect(await confirm.isDisabled()).toBe(true);
      await page.keyboard.press("Enter");
    }
    expect(await state()).toBe("started");
    await dialog(page).getByRole("textbox").fill("web-1");
    await page.keyboard.press("Enter");
    await dialog(page).waitFor({ state: "hidden" });
    await title(page).getByText("destroyed").waitFor();
    expect(await title(page).getByRole("button").allTextContents()).toEqual(["Copy as code"]);
    expect((await call("GET", "/apps/web/machines")).body).toEqual([]);
  });

  test("a refusal is shown in the dialog, which can be confirmed again", async () => {
    const { page, call, at, state } = await machinePage("write");
    const { nonce } = (await call("POST", `${at}/lease`, { ttl: 300, description: "pulumi update" })).body.data;
    await button(page, "Stop").click();
    const confirm = dialog(page).getByRole("button", { name: "Stop web-1" });
    await confirm.click();
    await dialog(page)
      .getByRole("alert")
      .getByText(/lease currently held by .*@tokens.personal/)
      .waitFor();
    expect(await state()).toBe("started");
    await call("DELETE", `${at}/lease`, undefined, { "svc-machine-lease-nonce": nonce });
    await confirm.click();
    await dialog(page).waitFor({ state: "hidden" });
    await title(page).getByText("stopped").waitFor();
  });

  test("a session that only reads shows no actions and no terminal, and its page cannot send them", async () => {
    const { page, at, id, url, state } = await machinePage("read");
    expect(await title(page).getByRole("button").allTextContents()).toEqual(["Copy as code"]);
    expect(await page.getByRole("button", { name: "Terminal" }).count()).toBe(0);
    await page.goto(`${url}/console/apps/web/machines/${id}?view=terminal`);
    await page.getByText("The terminal needs a console that was started with --console write").waitFor();
    const send = (method: string, path: string, body: string) =>
      page.evaluate<number>(
        `fetch(${JSON.stringify(path)}, { method: "${method}", body: ${JSON.stringify(body)}, headers: ${pageKey} }).then(({ status }) => status)`,
      );
    expect([
      await send("POST", `/v1${at}/stop`, "{}"),
      await send("POST", `/v1${at}/exec`, '{"command":["env"]}'),
      await send("POST", "/v1/apps", '{"name":"more","org_slug":"personal"}'),
      await send("POST", `/v1${at}`, '{"config":{"image":"other"}}'),
    ]).toEqual([403, 403, 403, 403]);
    expect(await state()).toBe("started");
  });

  test.each(allOr(roles, [roles[1]]))(
    "a session with the role %s has the buttons that it may use",
    async (role, buttons, reveals, text) => {
      const started = await withService({ console: "write" });
      const { call, url, service } = started;
      await call("POST", "/apps", { name: "web", org_slug: "personal" });
      await call("POST", "/apps/web/secrets/KEY", { value: "of the test" });
      const { id } = (await call("POST", "/apps/web/machines", { config: { image: "nginx" } })).body;
      addToken(
        service.context.store,
        "of-the-role",
        { slug: "personal", role, expiresAt: null },
        service.context.clock.now(),
      );
      const page = await openPage(started);
      await page.goto(`${url}/console/apps/web/machines/${id}`);
      await signInWith(page, "of-the-role");
      await title(page).getByText("started").waitFor();
      const shown = (await title(page).getByRole("button").allTextContents()).filter((name) => name !== "Copy as code");
      expect(shown).toEqual(buttons);
      expect(await page.getByRole("button", { name: "Terminal" }).count()).toBe(role === "read" ? 0 : 1);
      expect(await page.getByRole("banner").getByText(text, { exact: true }).count()).toBe(1);
      await page.goto(`${url}/console/apps/web?view=secrets`);
      await page.getByRole("rowheader", { name: "KEY" }).waitFor();
      expect(await page.getByRole("button", { name: "Reveal Secret KEY" }).count()).toBe(reveals ? 1 : 0);
    },
  );

  test("a session that may write still changes nothing that a program declares", async () => {
    const { page, at, call } = await machinePage("write");
    const status = await page.evaluate<number>(
      `fetch("/v1${at}", { method: "POST", body: '{"config":{"image":"other"}}', headers: ${pageKey} }).then(({ status }) => status)`,
    );
    expect(status).toBe(403);
    expect((await call("GET", at)).body.config.image).toBe("nginx");
  });
});
