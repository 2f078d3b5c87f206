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
});
