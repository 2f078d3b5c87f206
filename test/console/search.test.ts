// The search from everywhere: with the keyboard alone, with a pointer, on a telephone, and for screen readers.
import { describe, expect, test } from "vitest";
import { accessibilityProblems, hasBrowser, withConsole } from "./page.ts";
import { fill } from "./shop.ts";

describe.runIf(hasBrowser)("the search", () => {
  test("Ctrl-K finds a Machine and opens it, Escape closes, and the focus returns", async () => {
    const { page, url, call } = await withConsole();
    const { first } = await fill(call);
    await page.goto(`${url}/console/requests`);
    const filter = page.getByLabel("Path, operation or request id");
    await filter.focus();
    await page.keyboard.press("Control+k");
    const box = page.getByRole("combobox", { name: "Search everything" });
    const focused = () => page.evaluate<string>("document.activeElement.getAttribute('aria-label')");
    await box.waitFor();
    await expect.poll(focused).toBe("Search everything");
    await page.keyboard.type("web");
    await page
      .getByRole("status")
      .getByText(/^\d+ results$/)
      .waitFor();
    await page.keyboard.press("Escape");
    await box.waitFor({ state: "detached" });
    expect(await focused()).toBe("Path, operation or request id");

    await page.keyboard.press("Control+k");
    await page.keyboard.type("web-ams");
    const options = page.getByRole("listbox", { name: "Results" }).getByRole("option");
    await expect
      .poll(() => options.allInnerTexts())
      .toEqual([
        expect.stringMatching(/^web-ams-0 .* in ams, App shop$/),
        expect.stringMatching(/^web-ams-3 .* in ams, App shop$/),
      ]);
    const chosen = page.locator("[role=option][aria-selected=true]");
    expect(await chosen.innerText()).toMatch(/^web-ams-0/);
    await page.keyboard.press("ArrowDown");
    expect(await chosen.innerText()).toMatch(/^web-ams-3/);
    expect(await box.getAttribute("aria-activedescendant")).toBe(await chosen.getAttribute("id"));
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "web-ams-0" }).waitFor();
    await expect.poll(() => page.evaluate<string>("document.activeElement.tagName")).toBe("MAIN");

    // From the Machine to its rollouts, to the resource that asked, and to its requests.
    await page.getByRole("button", { name: "Rollouts", exact: true }).click();
    await page.getByRole("row", { name: /Machines of shop/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole("link", { name: "Requests about this Machine" }).click();
    await page.getByRole("row", { name: new RegExp(`/v1/apps/shop/machines/${first}/lease`) }).waitFor();
    await page.goBack();
    await page.getByRole("link", { name: "Machine web of shop/prod" }).click();
    await page.getByRole("row", { name: /Machine web of shop\/prod/ }).waitFor();
    expect(await page.getByRole("row").count()).toBe(2);
  });

  for (const theme of ["light", "dark"] as const)
    test(`the button opens it, results of each kind lead to their views, and axe finds nothing, in the ${theme} theme`, async () => {
      const { page, url, call } = await withConsole({ browser: { colorScheme: theme } });
      const { cluster } = await fill(call);
      const find = async (text: string): Promise<void> => {
        await page.getByRole("button", { name: "Search" }).click();
        await page.getByRole("combobox", { name: "Search everything" }).fill(text);
      };
      await find("shop");
      for (const kind of ["Apps", "Hostnames", "Rollouts", "Stacks"])
        await page.getByRole("dialog").getByRole("group", { name: kind }).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.screenshot({ path: `node_modules/.cache/pulumi-machines/screens/search-${theme}.png` });
      await page.setViewportSize({ width: 390, height: 844 });
      expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBeLessThanOrEqual(390);
      await page.screenshot({ path: `node_modules/.cache/pulumi-machines/screens/search-${theme}-small.png` });
      const leads = async (option: RegExp, path: string): Promise<void> => {
        await page.getByRole("option", { name: option }).click();
        await expect.poll(() => page.evaluate<string>("location.pathname + location.search")).toBe(path);
      };
      await leads(/^shop\.example\.com/, "/console/apps/shop?view=network");
      await find("orders");
      await leads(/^orders/, `/console/clusters/${cluster}`);
      await find("prod");
      await leads(/^shop\/prod/, "/console/requests?by=prod%3A%3Ashop%3A%3A");
      await page.getByRole("row", { name: /Machine web of shop\/prod/ }).waitFor();
      await find("machines of shop");
      await leads(/^Machines of shop/, "/console/rollouts/personal.update-1.shop");
      await find("nothing like that");
      await page.getByText("Nothing is like that.").waitFor();
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "Close" }).click();
      expect(new URL(page.url()).pathname).toBe("/console/rollouts/personal.update-1.shop");
      expect(url).toBe(new URL(page.url()).origin);
    });
});
