// Measures the console in a browser: `npm run bench:console`. How long its first rows take with 100,000 Machines is compared with
// ten Machines; how long a change takes to appear, with a client that reads the same answer after each commit. It needs Chromium.
// `-- --history` measures every view with a long history instead (consoleHistory.ts).
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chromium, type Browser, type Page } from "playwright-core";
import { provideChromium } from "../../tools/setup/chromium.mjs";
import { startService } from "../../test/support/startService.ts";
import { fillWith } from "../../test/console/many.ts";
import { caller } from "../../test/service/client.ts";
import { root } from "../workbench.ts";
import { consoleWithHistory } from "./consoleHistory.ts";
import { milliseconds, report, run } from "./run.ts";

const { values: options } = parseArgs({
  options: {
    history: { type: "boolean", default: false },
    machines: { type: "string", default: "100000" },
    entries: { type: "string", default: "1000000" },
  },
});

const rounds = 20;
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

/** Notes in the page when a text is first there. */
const watch = (text: string): string => `
  window.seenAt = new Promise((resolve) => {
    const look = () => document.body?.innerText.includes(${JSON.stringify(text)}) && resolve(performance.timeOrigin + performance.now());
    new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
    look();
  });
  undefined;`;

const seenAt = (page: Page): Promise<number> => page.evaluate<number>("window.seenAt");

// The service looks for its page beside its own command.
process.argv[1] = join(root, "service/main.ts");

const heads = options.history
  ? ["view", "first rows", "another client waits", "aim"]
  : ["what", "figure", "floor in the same run", "ratio"];

void run(heads, async () => {
  const { file, reason } = await provideChromium();
  if (file === undefined) throw new Error(reason);
  const browser = await chromium.launch({
    executablePath: file,
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
  });
  try {
    const sizes = { machines: Number(options.machines), entries: Number(options.entries) };
    await (options.history ? consoleWithHistory(browser, sizes) : measure(browser));
  } finally {
    await browser.close();
  }
});

async function measure(browser: Browser): Promise<void> {
  const opened = async (total: number) => {
    const service = await startService({ audit: false, console: "read" });
    const call = caller(service.url, service.token);
    await fillWith(total, service.service, call);
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${service.url}/#code=${service.service.consoleCode()}`);
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    return { ...service, call, page };
  };
  const firstRows = async ({ page, url }: Awaited<ReturnType<typeof opened>>, path: string, text: string) => {
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      await page.addInitScript(watch(text));
      const before = Date.now();
      await page.goto(url + path);
      times.push((await seenAt(page)) - before);
    }
    return median(times);
  };
  const ms = (value: number): string => `${value.toFixed(0)} ms`;
  const [few, many] = [await opened(10), await opened(100_000)];
  const compare = (what: string, figure: number, floor: number): void =>
    report(what, ms(figure), ms(floor), (figure / floor).toFixed(2));
  for (const [what, path, text] of [
    ["first rows of an App", "/console/apps/large", "web-000009"],
    ["overview", "/", "large"],
  ] as const)
    compare(`${what} with 100,000 Machines`, await firstRows(many, path, text), await firstRows(few, path, text));

  for (const [what, { page, url, call, token }] of [
    ["10 Machines", few],
    ["100,000 Machines", many],
  ] as const) {
    const { body } = await call("POST", "/apps/large/machines", {
      name: "aaa",
      config: { image: "registry.example/large:1" },
    });
    await page.goto(`${url}/console/apps/large/machines/${body.id}`);
    await page.getByRole("heading", { name: "aaa" }).waitFor();
    const machine = `/apps/large/machines/${body.id}`;
    const [shown, read]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      const image = `registry.example/large:round-${round}`;
      await page.evaluate(watch(image));
      await call("POST", machine, { config: { image } });
      const committed = Date.now();
      const headers = { authorization: `Bearer ${token}` };
      read.push(await milliseconds(async () => (await fetch(`${url}/console/api${machine}`, { headers })).text()));
      shown.push((await seenAt(page)) - committed);
    }
    compare(`from the commit of a change until the page shows it, ${what}`, median(shown), median(read));
    report(`the slowest of ${rounds}`, ms(Math.max(...shown)), ms(Math.max(...read)), "");
  }
  for (const opened of [few, many]) await opened.close();
}
