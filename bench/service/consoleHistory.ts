// npm run bench:console -- --history: every view of the console in a browser, with 100,000 Machines and a history of a million entries.
// The service runs in a process of its own. Another client reads a Machine all the time. The browser needs the processors too, so the
// view's requests are then sent again without it: what the client waits meanwhile is what the service lets it wait.
import type { Browser, Page } from "playwright-core";
import { ask } from "./ask.ts";
import { command, start, stop, type Local } from "./command.ts";
import { longestWait } from "./consoleServing.ts";
import { fillHistory, fillMachines, idOfCopy } from "./fill.ts";
import { data, median, report, say } from "./run.ts";

const rounds = 10;
/** What the views may take, and other clients may wait. */
const [mostMs, mostWaitMs] = [300, 50];

interface Sizes {
  readonly machines: number;
  readonly entries: number;
}

/** Notes in the page when something is first there. */
const watch = (selector: string, text: string): string => `
  window.seenAt = new Promise((resolve) => {
    const look = () =>
      [...document.querySelectorAll(${JSON.stringify(selector)})].some((one) => one.textContent.includes(${JSON.stringify(text)})) &&
      resolve(performance.timeOrigin + performance.now());
    new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
    look();
  });
  undefined;`;

const seenAt = (page: Page): Promise<number> => page.evaluate<number>("window.seenAt");

/** Measures every view. */
export async function consoleWithHistory(browser: Browser, { machines, entries }: Sizes): Promise<void> {
  const config = { image: "registry.example.com/web:v1", guest: { cpu_kind: "shared", cpus: 1, memory_mb: 256 } };
  const empty = await start(data);
  await ask(empty, "/v1/apps", "POST", { name: "web", org_slug: "personal" });
  const { id } = JSON.parse(await ask(empty, "/v1/apps/web/machines", "POST", { config })) as { id: string };
  await ask(empty, `/v1/apps/web/machines/${id}/wait?state=started`);
  await stop(data);
  fillMachines(machines);
  const rollout = fillHistory(entries);
  say("filled");
  const local = await start(data, "--console", "read");
  const page = await (await browser.newContext({ viewport: { width: 1360, height: 900 } })).newPage();
  await page.goto((await command("console", "--no-open", "--data", data)).match(/http\S+/)?.[0] ?? "");
  await page.getByRole("button", { name: "Sign out" }).waitFor();

  await longestWait(local, id, () => new Promise((resolve) => setTimeout(resolve, 2000)));
  const alone = await longestWait(local, id, () => new Promise((resolve) => setTimeout(resolve, 3000)));
  const blank = await longestWait(local, id, async () => {
    for (let round = 0; round < rounds; round++) await page.goto(`${local.url}/console/icon.svg`).catch(() => {});
  });
  const asked: string[] = [];
  page.on("request", (request) => {
    const { pathname, search } = new URL(request.url());
    if (/^\/(console\/api|local|v1)\//.test(pathname) && request.method() === "GET") asked.push(pathname + search);
  });
  report("nothing", "", `${alone.toFixed(0)} ms at most`, "");
  report("a picture in the browser", "", `${blank.toFixed(0)} ms at most`, "");

  const [copy, other] = [idOfCopy(1), idOfCopy(machines)];
  const views: readonly (readonly [what: string, path: string, selector: string, text: string])[] = [
    ["overview", "/", "tr", "web"],
    ["App, Machines", "/console/apps/web", "[role=row]", "copy-"],
    ["App, Machines by a search", "/console/apps/web?text=copy-9999", "[role=row]", "copy-9999"],
    ["App, Machines by time of change", "/console/apps/web?sort=updated", "[role=row]", "copy-"],
    ["App, Rollouts", "/console/apps/web?view=rollouts", "tr", "succeeded"],
    ["App, Network", "/console/apps/web?view=network", "main", "addresses"],
    ["App, Secrets", "/console/apps/web?view=secrets", "main", "ecret keys"],
    ["App, Volumes", "/console/apps/web?view=volumes", "main", "volume"],
    ["App, Usage", "/console/apps/web?view=usage", "main", "Usage"],
    ["Rollouts", "/console/rollouts", "tr", "succeeded"],
    ["a rollout", `/console/rollouts/${rollout}`, "tr", "copy-"],
    ["Machine", `/console/apps/web/machines/${copy}`, "h1", "copy-1"],
    ["Machine, Rollouts", `/console/apps/web/machines/${other}?view=rollouts`, "tr", "succeeded"],
    ["Machine, Versions", `/console/apps/web/machines/${copy}?view=versions`, "main", "Versions 1"],
    ["Machine, Usage", `/console/apps/web/machines/${copy}?view=usage`, "h1", "copy-1"],
    ["Requests", "/console/requests", "main", "Requests"],
  ];
  for (const [what, path, selector, text] of views)
    await measure(local, id, asked, what, async () => {
      await page.goto("about:blank");
      await page.addInitScript(watch(selector, text));
      const before = Date.now();
      await page.goto(local.url + path);
      return (await seenAt(page)) - before;
    });
  await measure(local, id, asked, "search", async () => {
    await page.goto(local.url);
    await page.getByRole("link", { name: "web" }).first().waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search everything" }).waitFor();
    await page.evaluate(watch("[role=option]", "copy-99999"));
    const before = Date.now();
    await page.keyboard.insertText("copy-99999");
    return (await seenAt(page)) - before;
  });
}

async function measure(
  local: Local,
  id: string,
  asked: string[],
  what: string,
  once: () => Promise<number>,
): Promise<void> {
  // What runs for the first time is compiled.
  await once();
  asked.length = 0;
  await once();
  const paths = [...new Set(asked)];
  const [times, waits, withBrowser]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < rounds; round++) {
    withBrowser.push(await longestWait(local, id, async () => void times.push(await once())));
    waits.push(await longestWait(local, id, () => Promise.all(paths.map((path) => ask(local, path)))));
  }
  const [first, wait] = [median(times), Math.max(...waits)];
  report(
    what,
    `${first.toFixed(0)} ms, at most ${Math.max(...times).toFixed(0)} ms`,
    `${wait.toFixed(0)} ms at most, mostly ${median(waits).toFixed(0)} ms; with the browser mostly ${median(withBrowser).toFixed(0)} ms`,
    `${first <= mostMs && wait <= mostWaitMs ? "≤" : "not ≤"} ${mostMs} ms and ${mostWaitMs} ms`,
  );
}
