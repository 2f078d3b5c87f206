// Every view: what it shows, in both themes and on a telephone, and whether everybody can use it.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { accessibilityProblems, hasBrowser, openPage, screen, withConsole } from "./page.ts";
import { fill, fillWithProblems } from "./shop.ts";
import type { Call } from "../service/client.ts";
import { allOr } from "../support/extent.mts";
import { thoroughTest } from "../support/thorough.ts";

/** The screenshots of the last run, to look at. */
const screens = "node_modules/.cache/pulumi-machines/screens";

/** Creates something for every view. */
const fillAll = async (call: Call) => ({ ...(await fill(call)), ...(await fillWithProblems(call)) });

/** The views with a text that each must show. */
const viewsOf = ({ first, second, cluster, failed }: Awaited<ReturnType<typeof fillAll>>) => ({
  overview: ["/", "Machine worker of broken"],
  machines: ["/console/apps/shop", "web-iad-5"],
  rollouts: ["/console/apps/shop?view=rollouts", "Fleet web"],
  "all-rollouts": ["/console/rollouts", "Machines of shop"],
  rollout: ["/console/rollouts/personal.update-1.shop", "prod"],
  volumes: ["/console/apps/shop?view=volumes", "10 GB"],
  network: ["/console/apps/shop?view=network", "shop.example.com"],
  secrets: ["/console/apps/shop?view=secrets", "PASSWORD"],
  logs: ["/console/apps/shop?view=logs", "start the service with --runtime docker", "i"],
  "empty-app": ["/console/apps/empty", "This App has no Machines"],
  machine: [`/console/apps/shop/machines/${first}`, "pulumi update"],
  "failed-machine": [`/console/apps/broken/machines/${failed}`, "Exited with code 3"],
  versions: [`/console/apps/shop/machines/${first}?view=versions`, "registry.example/shop:1.2"],
  inside: [`/console/apps/shop/machines/${second}?view=inside`, "Processes"],
  terminal: [`/console/apps/shop/machines/${second}?view=terminal`, "Each line is a command"],
  cluster: [`/console/clusters/${cluster}`, "Slow queries"],
  requests: ["/console/requests", "/v1/apps/shop/ip_assignments"],
  faults: ["/console/faults", "No fault is switched on"],
  nothing: ["/console/nothing", "There is no such page"],
});

async function show(page: Page, url: string, [path = "", text = "", flags]: readonly string[]): Promise<void> {
  await page.goto(url + path);
  await page
    .getByText(flags === undefined ? text : new RegExp(text, flags))
    .first()
    .waitFor();
}

const telephone = { width: 390, height: 844 };
/** Views that may be wider than that. */
const withWideContents: readonly string[] = ["terminal", "faults"];

const widthOf = (page: Page): Promise<number> => page.evaluate<number>("document.documentElement.scrollWidth");

describe.runIf(hasBrowser)("views of the console", () => {
  for (const theme of allOr<"light" | "dark">(["light", "dark"], ["light"]))
    test(`every view shows what there is, and axe finds nothing, in the ${theme} theme`, async () => {
      const options = { service: { console: "write" as const }, browser: { colorScheme: theme } };
      const { page, url, call, service } = await withConsole(options);
      service.faults.isOpen = true;
      const views = viewsOf(await fillAll(call));
      mkdirSync(screens, { recursive: true });
      const found: Record<string, readonly string[]> = {};
      const wide: string[] = [];
      for (const [name, view] of Object.entries(views)) {
        await show(page, url, view);
        await page.screenshot({ path: join(screens, `${name}-${theme}.png`) });
        found[name] = await accessibilityProblems(page);
        if (withWideContents.includes(name)) continue;
        await page.setViewportSize(telephone);
        if ((await widthOf(page)) > telephone.width) wide.push(name);
        await page.setViewportSize(screen);
      }
      expect(wide, "wider than a telephone").toEqual([]);
      await page.goto(`${url}/console/apps/shop?view=volumes`);
      await page.getByRole("button", { name: "All of it as code" }).click();
      await page.getByText("new machines.App").waitFor();
      await page.screenshot({ path: join(screens, `code-${theme}.png`) });
      found["code"] = await accessibilityProblems(page);
      expect(found).toEqual(Object.fromEntries(Object.keys(found).map((name) => [name, []])));
    });

  test("the page for signing in can be used by everybody", async () => {
    const { page, url } = await withConsole();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Or paste an access token").waitFor();
    await page.screenshot({ path: join(screens, "sign-in-light.png") });
    expect(await accessibilityProblems(page)).toEqual([]);
    const other = await openPage({ url });
    await other.goto(`${url}/console/requests`);
    await other.getByLabel("Or paste an access token").waitFor();
  });

  // The views above are as narrow in the same browser.
  thoroughTest("on a telephone no view is wider than the screen", async () => {
    const { page, url, call } = await withConsole({ browser: { viewport: telephone, isMobile: true } });
    const widths: Record<string, number> = {};
    for (const [name, view] of Object.entries(viewsOf(await fillAll(call)))) {
      if (withWideContents.includes(name)) continue;
      await show(page, url, view);
      widths[name] = await widthOf(page);
      if (["overview", "machine"].includes(name)) await page.screenshot({ path: join(screens, `${name}-small.png`) });
    }
    expect(Object.entries(widths).filter(([, width]) => width > telephone.width)).toEqual([]);
  });
});
