// Commands in a Machine, typed into the terminal of the page.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { hasBrowser, openPage, signIn, withService } from "./page.ts";

/** The rows of the terminal, without the empty ones. */
const rows = async (page: Page): Promise<readonly string[]> =>
  (await page.locator(".xterm-rows > div").allTextContents())
    .map((row) => row.replaceAll("\u00A0", " ").trimEnd())
    .filter((row) => row !== "");

/** Waits until the last rows are these. */
const ends = (page: Page, ...last: readonly string[]) =>
  expect.poll(async () => (await rows(page)).slice(-last.length)).toEqual(last);

/** Pastes a text, as the browser does. */
const paste = (page: Page, text: string) =>
  page.evaluate(`(() => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", ${JSON.stringify(text)});
    document.activeElement.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  })()`);

async function terminal() {
  const service = await withService({ console: "write" });
  const { call } = service;
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const config = { image: "nginx", env: { GREETING: "hello" } };
  const { id } = (await call("POST", "/apps/web/machines", { name: "one", config })).body;
  const page = await openPage(service, { viewport: { width: 800, height: 900 } });
  await signIn(page, service, `/console/apps/web/machines/${id}`);
  await page.getByRole("button", { name: "Terminal" }).click();
  await ends(page, "$");
  return { ...service, page, id };
}

describe.runIf(hasBrowser)("the terminal", () => {
  test("the terminal runs what is typed, shows what it wrote and its exit code, and remembers it", async () => {
    const { page, requests, id } = await terminal();
    const { keyboard } = page;
    await keyboard.type("echo one\n");
    await ends(page, "$ echo one", "one", "$");
    await keyboard.type("exit 3\n");
    await ends(page, "exit code 3", "$");
    await keyboard.type("nonsense\n");
    await ends(page, "nonsense: command not found", "exit code 127", "$");
    await keyboard.press("Enter");
    await ends(page, "$", "$");

    for (const [key, wanted] of [
      ["ArrowUp", "$ nonsense"],
      ["ArrowUp", "$ exit 3"],
      ["ArrowUp", "$ echo one"],
      ["ArrowUp", "$ echo one"],
      ["ArrowDown", "$ exit 3"],
      // Keys without a meaning here write nothing.
      ["ArrowLeft", "$ exit 3"],
      ["Home", "$ exit 3"],
      ["Delete", "$ exit 3"],
      ["Control+a", "$ exit 3"],
      ["Backspace", "$ exit"],
    ] as const) {
      await keyboard.press(key);
      await ends(page, wanted);
    }
    await keyboard.press("Control+c");
    await ends(page, "$ exit ^C", "$");
    await paste(page, "echo é漢👍x");
    await keyboard.press("Backspace");
    await keyboard.press("Backspace");
    await keyboard.press("Enter");
    await ends(page, "é漢", "$");
    const long = "0123456789".repeat(20);
    await keyboard.type(`echo ${long}`);
    await keyboard.press("ArrowUp");
    await ends(page, "é漢", "$ echo é漢");
    const sent = requests.filter(({ path }) => path === `/v1/apps/web/machines/${id}/exec`);
    expect(sent.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });

  test("the terminal ends a command with ^C, and runs what was typed or pasted meanwhile", async () => {
    const { page, service } = await terminal();
    const { keyboard } = page;
    const held = (n: number) => expect.poll(() => service.context.waits.size).toBe(n);
    await keyboard.type("sleep 50\n");
    await held(1);
    await keyboard.type("echo lost\n");
    await keyboard.press("Control+c");
    await ends(page, "$ sleep 50", "^C", "$");
    // The command has ended with its request.
    await held(0);
    await paste(page, "echo one\necho two\necho rest");
    await ends(page, "one", "$ echo two", "two", "$ echo rest");
  });

  test("the terminal lets the focus out with Tab, says why a command is refused, and ends with its Machine", async () => {
    const { page, call, id, fail } = await terminal();
    const { keyboard } = page;
    fail({ operation: "machines.exec", status: 503, body: { error: "no host answers" } });
    await keyboard.type("echo one\n");
    await ends(page, "no host answers", "$");
    await keyboard.press("Shift+Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Terminal");
    await call("POST", `/apps/web/machines/${id}/stop`, {});
    await page.getByText("A command needs a Machine that runs; this one is stopped.").waitFor();
    await call("POST", `/apps/web/machines/${id}/start`, {});
    await ends(page, "$");
  });
});
