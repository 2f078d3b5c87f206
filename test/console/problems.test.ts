// What has failed explains itself: on the page of a Machine, in the overview, and on a telephone.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { accessibilityProblems, hasBrowser, withConsole } from "./page.ts";
import { fillWithProblems } from "./shop.ts";

/** The screenshots of the last run, to look at. */
const screens = "node_modules/.cache/pulumi-machines/screens";

describe.runIf(hasBrowser)("what has failed", () => {
  for (const colorScheme of ["light", "dark"] as const)
    test(`the page of a failed Machine begins with the cause, and with what one can do, in the ${colorScheme} theme`, async () => {
      const { page, url, call } = await withConsole({ service: { console: "write" }, browser: { colorScheme } });
      const { failed } = await fillWithProblems(call);
      await page.goto(`${url}/console/apps/broken/machines/${failed}`);
      const why = page.getByRole("region", { name: "Why it has failed" });
      await why
        .getByText(/^Exited with code 3, eleven times since \d\d:\d\d; last words: it ends with code 3, /)
        .waitFor();
      await why.getByLabel("Its last lines").getByText("the simulated program has started").waitFor();
      await why.getByText("What has changed since the last version that ran well").waitFor();
      const difference = why.getByLabel("Difference between the versions");
      await difference.getByText('- "image": "registry.example/worker:1"').waitFor();
      await difference.getByText('+ "image": "registry.example/worker:2"').waitFor();
      expect(await page.content()).not.toContain("hush");
      await page.getByText("Exited with code 3 after", { exact: false }).first().waitFor();
      const details = page.locator(".timeline details").first();
      expect(await details.locator("pre").isVisible()).toBe(false);
      await details.getByText("Details").click();
      await details.getByText('"exit_code": 3').waitFor();
      mkdirSync(screens, { recursive: true });
      await page.screenshot({ path: join(screens, `failed-${colorScheme}.png`), fullPage: true });
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.getByRole("button", { name: "Start", exact: true }).waitFor();
      await why.getByRole("link", { name: "compare the versions" }).click();
      await page.getByRole("group", { name: "Versions" }).waitFor();
    });

  test("a Machine whose check is critical says so, and one that runs well says nothing", async () => {
    const { page, url, call } = await withConsole();
    const { critical, good } = await fillWithProblems(call);
    await page.goto(`${url}/console/apps/broken/machines/${critical}`);
    const why = page.getByRole("region", { name: "Why its checks fail" });
    await why.getByText(/^Its check alive has been critical since \d\d:\d\d: connection refused\.$/).waitFor();
    await why.getByText("No earlier version of this Machine is known to have run well.").waitFor();
    await page.goto(`${url}/console/apps/broken/machines/${good}`);
    await page.getByText("Started", { exact: true }).waitFor();
    expect(await page.getByRole("region", { name: /^Why/ }).count()).toBe(0);
  });

  test("the overview lists what has failed, with links, and says nothing of zero while something has failed", async () => {
    const { page, url, call } = await withConsole();
    await page.getByText("Nothing has failed, and nothing waits or ends soon.").waitFor();
    const { failed, critical } = await fillWithProblems(call);
    const problems = page.getByRole("region", { name: "Problems" });
    await problems
      .getByText(/^Machine worker of broken has failed\. Exited with code 3, eleven times since \d\d:\d\d; /)
      .waitFor();
    await problems
      .getByText(/^Machine api of broken runs, but its checks fail\. Its check alive has been critical /)
      .waitFor();
    const figures = page.locator(".figures li");
    await expect
      .poll(async () => (await figures.allTextContents()).slice(2, 5))
      .toEqual(["2 started", "1 failed", "1 with critical checks"]);
    for (const colorScheme of ["dark", "light"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.screenshot({ path: join(screens, `problems-${colorScheme}.png`) });
    }
    await call("DELETE", `/apps/broken/machines/${critical}?force=true`);
    await problems.getByText("Machine api of broken").waitFor({ state: "hidden" });
    await page.getByText("none critical of those started").waitFor();
    expect(await page.locator(".figures").textContent()).not.toContain("critical");
    await problems.getByRole("link", { name: "Machine worker of broken" }).click();
    await page.getByRole("region", { name: "Why it has failed" }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/console/apps/broken/machines/${failed}`);
    for (const name of ["a", "b", "c"])
      await call("POST", "/apps/broken/machines", {
        name,
        config: { image: "app", env: { MACHINES_SIMULATE: "exit:1" } },
      });
    await page.goto(url);
    await problems.getByRole("link", { name: "4 Machines of broken" }).click();
    await page.getByText("4 Machines", { exact: true }).waitFor();
  });

  test("on a telephone the state and the checks of each Machine are in sight, without scrolling sideways", async () => {
    const viewport = { width: 390, height: 844 };
    const { page, url, call } = await withConsole({ browser: { viewport, isMobile: true } });
    const { good } = await fillWithProblems(call);
    await call("POST", `/apps/broken/machines/${good}/cordon`);
    await page.goto(`${url}/console/apps/broken`);
    const row = (name: string) => page.getByRole("table", { name: "Machines" }).getByRole("row", { name });
    await row("good").getByText("cordoned").waitFor();
    for (const [name, state] of [
      ["worker", "failed"],
      ["api", "started"],
      ["api", "critical"],
      ["good", "started"],
    ] as const) {
      const { x = 0, width = 1e9 } = (await row(name).getByText(state).boundingBox()) ?? {};
      expect([name, state, x >= 0, x + width <= viewport.width]).toEqual([name, state, true, true]);
    }
    await page.screenshot({ path: join(screens, "machines-small.png") });
    expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBe(viewport.width);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.goto(url);
    await page.getByRole("link", { name: "Machine worker of broken" }).waitFor();
    await page.screenshot({ path: join(screens, "problems-small.png") });
    expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBe(viewport.width);
  });

  test("what does not exist leads back, and the page has no outline when a script gives it the focus", async () => {
    const { page, url, call } = await withConsole();
    await fillWithProblems(call);
    await page.goto(`${url}/console/apps/broken/machines/none`);
    await page.getByText("It does not exist, or not any more.").waitFor();
    await page.getByLabel("Where this is").getByRole("link", { name: "broken" }).click();
    await page.getByRole("row", { name: "worker" }).waitFor();
    await page.goto(`${url}/console/nothing`);
    await page.getByRole("main").getByRole("link", { name: "The overview" }).click();
    await page.getByRole("heading", { name: "Problems" }).waitFor();
    await page.getByLabel("Views").getByRole("link", { name: "Requests" }).click();
    await page.getByRole("figure").getByText("requests per second").waitFor();
    // The keyboard was used last, so that a focus would be shown.
    await page.keyboard.press("Tab");
    await page.getByRole("main").focus();
    const outline = "getComputedStyle(document.activeElement).outlineStyle";
    expect(await page.evaluate<string>(`document.activeElement.tagName + " " + ${outline}`)).toBe("MAIN none");
  });
});
