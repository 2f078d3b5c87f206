// Logs in the console: of all Machines by time, filtered, paused, and read as JSON.
import { describe, expect, test } from "vitest";
import { Output, WritingRuntime } from "../support/logs.ts";
import { accessibilityProblems, hasBrowser, withConsole } from "./page.ts";

async function withLogs(theme: "light" | "dark" = "light") {
  const output = new Output();
  const { page, url, call, service } = await withConsole({
    service: { runtime: (host) => new WritingRuntime(host, output) },
    browser: { colorScheme: theme },
  });
  await call("POST", "/apps", { name: "shop", org_slug: "personal" });
  const ids: string[] = [];
  for (const name of ["web", "worker", "mail", "cron"])
    ids.push((await call("POST", "/apps/shop/machines", { name, config: { image: "shop:1" } })).body.id);
  let at = Date.parse("2026-01-01T12:00:00Z");
  const write = (machine: number, text: string, ms = 10): void => output.write(ids[machine] ?? "", (at += ms), text);
  const lines = async (): Promise<readonly string[]> =>
    (await page.getByRole("log").locator(":scope > div").allInnerTexts()).map((text) =>
      text.replace(/^\S+ /, "").trim(),
    );
  return { page, url, write, lines, ids, service };
}

describe.runIf(hasBrowser)("logs", () => {
  test("lines of all Machines are by time, and are filtered by Machine, text and level", async () => {
    const { page, url, write, lines, ids } = await withLogs();
    for (let i = 0; i < 6; i++) write(i % 3, `step ${i}`);
    write(0, JSON.stringify({ level: 50, msg: "cannot pay", order: 17, time: 1 }));
    write(1, "[warn] the queue is long");
    await page.goto(`${url}/console/apps/shop?view=logs`);
    const all = [
      ...["web step 0", "worker step 1", "mail step 2", "web step 3", "worker step 4", "mail step 5"],
      ...["web error cannot pay order=17", "worker [warn] the queue is long"],
    ];
    await expect.poll(lines).toEqual(all);
    write(3, "new");
    await expect.poll(lines).toEqual([...all, "cron new"]);

    await page.getByLabel("Any level").selectOption("Warnings and errors");
    await expect.poll(lines).toEqual(all.slice(-2));
    await page.getByLabel("Any level").selectOption("Errors");
    await page.getByText("cannot pay").click();
    await page.getByText('{"level":50,"msg":"cannot pay","order":17,"time":1}').waitFor();
    await page.getByLabel("Search the logs").fill("nothing");
    await page.getByText("No line is like that.").waitFor();
    await page.getByLabel("Any level").selectOption("");
    await page.getByLabel("Search the logs").fill("STEP");
    await expect.poll(lines).toEqual(all.slice(0, 6));
    await page.getByLabel("Any Machine").selectOption("worker");
    await expect.poll(lines).toEqual(["worker step 1", "worker step 4"]);
    expect(new URL(page.url()).searchParams.get("machine")).toBe(ids[1]);
    await page.reload();
    await expect.poll(lines).toEqual(["worker step 1", "worker step 4"]);
    await page.getByLabel("Any Machine").selectOption("");
    await expect.poll(lines).toEqual(all.slice(0, 6));
  });

  test("while it is paused nothing moves, and it says how many lines wait", async () => {
    const { page, url, write, lines } = await withLogs();
    write(0, "before");
    await page.goto(`${url}/console/apps/shop?view=logs`);
    await expect.poll(lines).toEqual(["web before"]);
    await page.getByRole("button", { name: "Pause" }).click();
    for (let i = 0; i < 3; i++) write(i, `line ${i}`);
    await page.getByText("paused, 3 lines wait").waitFor();
    expect(await lines()).toEqual(["web before"]);
    for (let i = 0; i < 6000; i++) write(1, `flood ${i}`, 0);
    await page.getByText("paused, 5,000 lines wait, 1,003 older ones are left out").waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("5,000 of 5,000 lines, the newest 2,000 are shown").waitFor();
    await expect.poll(async () => (await lines()).at(-1)).toBe("worker flood 5999");
    expect((await lines()).length).toBe(2000);
  });

  test("after the connection was lost, the lines continue where they ended", async () => {
    const { page, url, write, lines, service } = await withLogs();
    write(0, "before");
    write(1, "also before");
    await page.goto(`${url}/console/apps/shop?view=logs`);
    await expect.poll(lines).toEqual(["web before", "worker also before"]);
    service.app.server.closeAllConnections();
    write(0, "meanwhile", 0);
    write(1, "after", 1000);
    await expect.poll(lines).toEqual(["web before", "worker also before", "web meanwhile", "worker after"]);
  });

  for (const theme of ["light", "dark"] as const)
    test(`the names of Machines can be read by everybody in the ${theme} theme, and on a telephone`, async () => {
      const { page, url, write, lines } = await withLogs(theme);
      for (const machine of [0, 1, 2, 3]) {
        write(machine, JSON.stringify({ level: "warn", msg: "slow", path: "/a/very/long/path/".repeat(20) }));
        write(machine, "ERROR it failed");
        write(machine, "a sentence");
      }
      await page.goto(`${url}/console/apps/shop?view=logs`);
      await expect.poll(async () => (await lines()).length).toBe(12);
      await page.getByText("slow").first().click();
      // The colours of Machines whose ids come out otherwise.
      await page.evaluate(`document.querySelector("[role=log]").insertAdjacentHTML("beforeend",
        [0, 1, 2, 3, 4, 5, 6, 7].map((hue) => '<div><b class="hue-' + hue + '">name</b></div>').join(""))`);
      await page.screenshot({ path: `node_modules/.cache/pulumi-machines/screens/app-logs-${theme}.png` });
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.setViewportSize({ width: 390, height: 844 });
      expect(await page.evaluate<number>("document.documentElement.scrollWidth")).toBeLessThanOrEqual(390);
    });
});
