// The console with the keyboard alone: nothing here clicks, and the focus is always somewhere that can be seen.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { hasBrowser, openPage, withService } from "./page.ts";
import { fill } from "./shop.ts";

interface Focus {
  readonly tag: string;
  readonly text: string;
  readonly isSeen: boolean;
}

/** What has the focus, and whether it stands out on the screen. */
const focus = (page: Page) =>
  page.evaluate<Focus>(`(() => {
    const it = document.activeElement;
    const { outlineStyle, outlineWidth } = getComputedStyle(it);
    const { top, bottom, left, right, width, height } = it.getBoundingClientRect();
    const onScreen = bottom > 0 && right > 0 && top < innerHeight && left < innerWidth && width > 0 && height > 0;
    const isMarked = it.matches(":focus-visible") && outlineStyle !== "none" && parseFloat(outlineWidth) > 0;
    const text = it.getAttribute("aria-label") ?? it.textContent.trim();
    return { tag: it.tagName, text: text.slice(0, 80), isSeen: onScreen && isMarked };
  })()`);

/** Presses Tab until something has the focus, at most a hundred times; each stop must be seen. */
async function tabTo(page: Page, text: string | RegExp, key = "Tab"): Promise<void> {
  const stops: string[] = [];
  for (let i = 0; i < 100; i++) {
    await page.keyboard.press(key);
    const at = await focus(page);
    stops.push(`${at.tag} ${at.text}`);
    // After the last stop the focus is in the frame of the browser.
    if (at.tag === "BODY") continue;
    expect(at).toMatchObject({ isSeen: true });
    if (typeof text === "string" ? at.text === text : text.test(at.text)) return;
  }
  throw new Error(`no stop is ${text}, but: ${stops.join("; ")}`);
}

/** Waits until the focus is in the view, which has just replaced another. An outline around the whole page would say nothing. */
const inView = (page: Page) => expect.poll(() => focus(page)).toMatchObject({ tag: "MAIN", isSeen: false });

describe.runIf(hasBrowser)("the keyboard", () => {
  test("the keyboard signs in, finds a Machine, compares two of its versions, copies it, and filters the log", async () => {
    const service = await withService();
    await fill(service.call);
    const page = await openPage(service);
    await page.goto(service.url);
    await page.getByLabel("Or paste an access token").waitFor();
    expect(await focus(page)).toMatchObject({ tag: "INPUT", isSeen: true });
    await page.keyboard.type(service.token);
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "shop" }).waitFor();
    await inView(page);

    await page.goto(service.url);
    await page.getByRole("link", { name: "shop" }).waitFor();
    await tabTo(page, "To the content");
    await page.keyboard.press("Enter");
    await inView(page);
    await tabTo(page, "shop");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "shop" }).waitFor();
    await inView(page);

    await tabTo(page, "Name or id");
    await page.keyboard.type("ams-0");
    await page.getByText("1 Machine", { exact: true }).waitFor();
    expect((await focus(page)).text).toBe("Name or id");
    await tabTo(page, "web-ams-0");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "web-ams-0" }).waitFor();
    await inView(page);

    await tabTo(page, /^Versions 2/);
    await page.keyboard.press("Enter");
    const difference = page.getByLabel("Difference between the versions");
    await difference.getByText('+   "image": "registry.example/shop:1.2"').waitFor();
    await tabTo(page, /^Compare from/);
    // The older one is chosen; up is the newer one.
    await page.keyboard.press("ArrowUp");
    await page.getByText("This is one version").waitFor();
    await tabTo(page, /^Compare to/);
    await page.keyboard.press("ArrowDown");
    await difference.getByText('-   "image": "registry.example/shop:1.2"').waitFor();
    expect(await difference.textContent()).not.toContain("hush");

    await tabTo(page, "Copy as code", "Shift+Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByText("new machines.").first().waitFor();
    // A dialog keeps the focus.
    await tabTo(page, "Python");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByText("import pulumi_machines").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    expect(await focus(page)).toMatchObject({ text: "Copy as code", isSeen: true });

    await tabTo(page, "Requests", "Shift+Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Requests" }).waitFor();
    // The link is still there.
    expect(await focus(page)).toMatchObject({ text: "Requests", isSeen: true });
    await tabTo(page, "Path, operation or request id");
    await page.keyboard.type("certificates");
    await page.getByText(/^1 of the latest/).waitFor();
    await tabTo(page, "Any status");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.getByText(/^0 of the latest/).waitFor();
    expect(new URL(page.url()).search).toBe("?text=certificates&status=4");
    await page.goBack();
    await page.getByRole("heading", { name: "web-ams-0" }).waitFor();
    await inView(page);
  });

  test("the rows of a long table are reached by scrolling it, and its order is changed by its titles", async () => {
    const service = await withService();
    const { call } = service;
    await call("POST", "/apps", { name: "web", org_slug: "personal" });
    const config = { image: "nginx" };
    for (let i = 10; i < 60; i++) await call("POST", "/apps/web/machines", { name: `m-${i}`, config });
    const page = await openPage(service);
    await page.goto(`${service.url}/console/apps/web#code=${service.service.consoleCode()}`);
    await page.getByText("50 Machines").waitFor();
    expect(await page.getByRole("link", { name: "m-59" }).count()).toBe(0);
    await tabTo(page, "Name ↑");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "m-59" }).waitFor();
    expect((await focus(page)).text).toBe("Name ↓");
    await tabTo(page, "Rows");
    await page.keyboard.press("End");
    await page.getByRole("link", { name: "m-10" }).waitFor();
    await tabTo(page, "m-10");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "m-10" }).waitFor();
    await inView(page);
  });
});
