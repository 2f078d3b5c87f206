// A terminal of a program, in the page. The program repeats what is typed.
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import type { RuntimeHost, TerminalRequest } from "../../service/runtime/runtime.ts";
import { SimulatedRuntime } from "../../service/runtime/simulated.ts";
import { accessibilityProblems, hasBrowser, openPage, signIn, withService } from "./page.ts";

// Far more than the page can show at once.
const many = Array.from({ length: 200_000 }, (_, i) => `line ${i + 1} of many\r\n`).join("");

const runtime = (host: RuntimeHost) =>
  Object.assign(new SimulatedRuntime(host), {
    terminal(_: unknown, { columns }: TerminalRequest) {
      const [output, input] = [new PassThrough(), new PassThrough()];
      let exit: (code: number) => void = () => {};
      const exited = new Promise<number>((resolve) => (exit = resolve));
      output.write(`ready ${columns}\r\n`);
      input.on("data", (typed: Buffer) => {
        const text = typed.toString();
        if (text.includes("\x04")) exit(3);
        else if (text === "\x19") for (const part of many.match(/.{1,60000}/gs) ?? []) output.write(part);
        else output.write(text === "\t" ? "<tab>" : text);
      });
      return Promise.resolve({ output, input, exited, resize: () => {}, end: () => Promise.resolve() });
    },
  });

describe.runIf(hasBrowser)("a terminal of a program", () => {
  test("keys go to the program, also Tab; it says why it has ended, and another one can be opened", async () => {
    const service = await withService({ console: "write", runtime });
    const { call } = service;
    await call("POST", "/apps", { name: "web", org_slug: "personal" });
    const { id } = (await call("POST", "/apps/web/machines", { name: "one", config: { image: "nginx" } })).body;
    const page = await openPage(service, { viewport: { width: 800, height: 900 } });
    await signIn(page, service, `/console/apps/web/machines/${id}`);
    await page.getByRole("button", { name: "Terminal" }).click();
    const text = async () => (await page.locator(".xterm-rows").textContent())?.replaceAll("\u00A0", " ");
    await expect.poll(text).toContain("ready");
    await page.keyboard.type("hello");
    await page.keyboard.press("Tab");
    await expect.poll(text).toContain("hello<tab>");
    await page.keyboard.press("Control+y");
    await expect.poll(text).toContain("line 200000 of many");
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.keyboard.press("Control+Shift+F6");
    expect(await page.evaluate(`document.activeElement.tagName`)).toBe("BODY");
    await page.locator(".xterm").click();
    await page.keyboard.press("Control+d");
    await page.getByText("The program has ended with exit code 3.").waitFor();
    await page.getByRole("button", { name: "Open another" }).click();
    await expect.poll(text).toMatch(/^ready \d+\s*$/);
  });
});
