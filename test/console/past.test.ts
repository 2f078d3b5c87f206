// The view of an App as it was at a moment, of members as real processes.
import { join } from "node:path";
import { mkdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { momentOf, serverForTests } from "../service/replication/serverForTests.ts";
import { callOf, leaderOf, serviceOn, type Member } from "../service/replication/processes.ts";
import { accessibilityProblems, hasBrowser, openPage, signInWith, withConsole } from "./page.ts";

const screens = "node_modules/.cache/pulumi-machines/screens";

describe.runIf(hasBrowser)("an App as it was at a moment", () => {
  const server = serverForTests();

  test("is shown with what differs now, through a standby, also once it is deleted", async () => {
    const service = serviceOn(server.url);
    const members = [await service.start(), await service.start()];
    const leader = await leaderOf(members);
    const standby = members.find((one) => one !== leader) as Member;
    const call = callOf(standby);
    await call("POST", "/apps", { name: "shop", org_slug: "personal" });
    const made = await call("POST", "/apps/shop/machines", {
      name: "web",
      config: { image: "shop:1", env: { COLOR: "red", PASSWORD: "hidden-value" } },
    });
    const { id } = made.body as { id: string };
    await call("POST", "/apps/shop/secrets", { values: { KEY: "some value" } });
    const then = await momentOf(server);
    await call("POST", `/apps/shop/machines/${id}`, { config: { image: "shop:2", env: { COLOR: "blue" } } });
    await call("POST", "/apps/shop/machines", { name: "more", config: { image: "shop:2" } });

    const page = await openPage(standby);
    await page.goto(`${standby.url}/console/apps/shop`);
    await signInWith(page, standby.token);
    await page.getByRole("button", { name: "Past", exact: true }).click();
    await page.getByText("Choose a moment").waitFor();
    // The field has seconds; the address has the exact moment.
    await page.goto(`${standby.url}/console/apps/shop?view=past&at=${then}`);
    const machines = page.getByRole("region", { name: "Machines" });
    await machines.getByText("1 changed since, 1 created since").waitFor();
    const changed = machines.getByRole("row").filter({ hasText: id });
    expect(await changed.textContent()).toContain("shop:1 → shop:2");
    await page.getByRole("region", { name: "Secrets", exact: true }).getByText("1 unchanged").waitFor();
    await machines.getByRole("button", { name: `Configuration differs, ${id}` }).click();
    const difference = page.getByLabel(`Configuration of ${id}`).locator(".diff span");
    await expect.poll(() => difference.filter({ hasText: "red" }).textContent()).toMatch(/^- .*"COLOR": "red"/m);
    expect(await page.content()).not.toContain("hidden-value");
    mkdirSync(screens, { recursive: true });
    expect(await changed.textContent()).toContain("Configuration differs");
    await page.getByText("None then and none now: Volumes, IP addresses,").waitFor();
    await page.screenshot({ path: join(screens, "past.png"), fullPage: true });
    expect(await accessibilityProblems(page)).toEqual([]);

    await call("DELETE", "/apps/shop?force=true");
    await page.goto(`${standby.url}/console/apps/shop?at=${then}`);
    await page.getByText("The App was deleted since then.").waitFor();
    await page.getByLabel("Where this is").getByRole("link", { name: "Overview" }).waitFor();
    await page.goto(`${standby.url}/console/apps/shop?at=2020-01-01T00:00:00.000Z`);
    await page.getByText("the log has nothing of that time").waitFor();
    await page.getByLabel("As it was at").fill("2020-01-02T00:00:00");
    await page.getByRole("button", { name: "Show" }).click();
    await expect.poll(() => page.url()).toContain("at=2020-01-0");
  });
});

test.runIf(hasBrowser)("a service without a log has no view of the past", async () => {
  const { page, call, url } = await withConsole();
  await call("POST", "/apps", { name: "shop", org_slug: "personal" });
  await page.goto(`${url}/console/apps/shop`);
  await page.getByRole("button", { name: "Logs" }).waitFor();
  expect(await page.getByRole("button", { name: "Past" }).count()).toBe(0);
});
