// An App with very many Machines: only the rows in sight exist on the page, and all of them can be reached.
import { describe, expect, test } from "vitest";
import { fillWith } from "./many.ts";
import { hasBrowser, withConsole } from "./page.ts";

const total = 100_000;

describe.runIf(hasBrowser)("an App with very many Machines", () => {
  test("an App with very many Machines shows its first rows, scrolls to the last one, and finds any of them", async () => {
    const { page, url, service, call } = await withConsole();
    await fillWith(total, service, call);
    await page.goto(`${url}/console/apps/large`);
    const row = (name: string) => page.getByRole("row").filter({ hasText: name });
    await row("web-000000").waitFor();
    await page.getByText(`${total.toLocaleString("en")} Machines`).waitFor();
    const rows = async () => page.getByRole("row").count();
    expect(await rows()).toBeLessThan(80);

    const body = page.getByRole("rowgroup", { name: "Rows" });
    await body.focus();
    await page.keyboard.press("End");
    const last = `web-${String(total - 1).padStart(6, "0")}`;
    await row(last).waitFor();
    expect(await rows()).toBeLessThan(80);
    await body.evaluate((element) => element.scrollTo(0, element.scrollHeight / 2));
    await row(`web-${String(total / 2).padStart(6, "0")}`).waitFor();

    await page.getByLabel("Name or id").fill("web-019999");
    await page.getByText("1 Machine", { exact: true }).waitFor();
    await row("web-019999").waitFor();
    await page.getByLabel("Name or id").fill("");
    await page.getByLabel("Any state").selectOption("stopped");
    await page.getByText(`${(total / 4).toLocaleString("en")} Machines`).waitFor();
    expect(new URL(page.url()).search).toBe("?state=stopped");

    await page.goto(url);
    await page
      .getByRole("row")
      .filter({ hasText: "large" })
      .getByText(`${(total / 2).toLocaleString("en")} started`)
      .waitFor();
  });
});
