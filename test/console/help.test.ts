// The help of the console: from every view, with the keyboard too, and on a telephone.
import { describe, expect, test } from "vitest";
import { docsUrl } from "../../api/docsUrl.ts";
import { accessibilityProblems, hasBrowser, withConsole } from "./page.ts";

describe.runIf(hasBrowser)("the help", () => {
  test("names the server for AI assistants with the entry to copy, and returns the focus", async () => {
    const { page } = await withConsole();
    const button = page.getByRole("button", { name: "Help", exact: true });
    await button.focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Help" });
    await dialog.getByText("npx pulumi-machines mcp", { exact: true }).waitFor();
    const entry = await dialog.getByLabel("the entry for an assistant", { exact: true }).innerText();
    expect(JSON.parse(entry)).toEqual({
      mcpServers: { machines: { command: "npx", args: ["pulumi-machines", "mcp"] } },
    });
    expect(await dialog.getByRole("link", { name: "this entry" }).getAttribute("href")).toBe(docsUrl("agents.md"));
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.screenshot({ path: "node_modules/.cache/pulumi-machines/screens/help.png" });
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBeLessThanOrEqual(390);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(await page.evaluate<string>("document.activeElement.textContent")).toBe("Help");
  });
});
