// A terminal of a program, in the page. The program repeats what is typed.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import type { RuntimeHost, TerminalRequest } from "../../service/runtime/runtime.ts";
import { SimulatedRuntime } from "../../service/runtime/simulated.ts";
import { accessibilityProblems, hasBrowser, openPage, signIn, withService } from "./page.ts";

/** The screenshots of the last run, to look at. */
const screens = "node_modules/.cache/pulumi-machines/screens";

// Far more than the page can show at once.
const many = Array.from({ length: 200_000 }, (_, i) => `line ${i + 1} of many\r\n`).join("");

// Each colour of a terminal as text, bold, as ground, and inverse; black inverse is black on black in every terminal.
const coloured = Array.from({ length: 16 }, (_, i) => {
  const [text, ground] = i < 8 ? [30 + i, 40 + i] : [82 + i, 92 + i];
  return `\x1b[${text}mtext\x1b[0m \x1b[1;${text}mbold\x1b[0m \x1b[${ground}mground\x1b[0m ${i === 0 ? "" : `\x1b[7;${text}minverse`}\x1b[0m\r\n`;
}).join("");
const shades = Array.from({ length: 240 }, (_, i) => `\x1b[38;5;${16 + i}mx\x1b[0m `).join("");
// The other way to say a colour, which is no name of a class.
const whole = "\x1b[38;2;255;128;0morange\x1b[0m \x1b[38;2;20;0;60mdark\x1b[0m \x1b[48;2;200;255;200mlight\x1b[0m ";

/** In the page: each text of the terminal that is hard to read, with its contrast. */
const hardToRead = `(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const over = ([r, g, b, a = 1], ground) => [r, g, b].map((part, i) => a * part + (1 - a) * ground[i]);
  const groundOf = (element) => {
    if (!element) return [255, 255, 255];
    const [r, g, b, a = 1] = parse(getComputedStyle(element).backgroundColor);
    return a === 1 ? [r, g, b] : over([r, g, b, a], groundOf(element.parentElement));
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (element) => {
    const ground = groundOf(element);
    const [a, b] = [light(ground), light(over(parse(getComputedStyle(element).color), ground))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  return [...document.querySelectorAll(".xterm-rows span")]
    .filter((span) => span.textContent.trim() !== "" && contrast(span) < 4.5)
    .map((span) => span.textContent + " " + span.className + " " + getComputedStyle(span).color + " " + contrast(span).toFixed(2));
})()`;

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
        else if (text === "\x07") output.write(`${coloured}${shades}${whole}coloured`);
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

  test.each(["light", "dark"] as const)("each colour of a program can be read in the %s theme", async (colorScheme) => {
    const service = await withService({ console: "write", runtime });
    const { call } = service;
    await call("POST", "/apps", { name: "web", org_slug: "personal" });
    const { id } = (await call("POST", "/apps/web/machines", { name: "one", config: { image: "nginx" } })).body;
    const page = await openPage(service, { colorScheme });
    await signIn(page, service, `/console/apps/web/machines/${id}?view=terminal`);
    const rows = page.locator(".xterm-rows");
    await expect.poll(() => rows.textContent()).toContain("ready");
    await page.keyboard.press("Control+g");
    await expect.poll(() => rows.textContent()).toContain("coloured");
    expect(await page.evaluate(hardToRead)).toEqual([]);
    const texts = `[...document.querySelectorAll(".xterm-rows span")]`;
    const orange = `${texts}.filter(({ textContent }) => textContent === "orange").map((one) => getComputedStyle(one).color)`;
    expect(await page.evaluate(orange)).toEqual(["rgb(255, 128, 0)"]);
    mkdirSync(screens, { recursive: true });
    await page.screenshot({ path: join(screens, `terminal-${colorScheme}.png`) });
  });
});
