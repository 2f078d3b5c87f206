// Rollouts in the console: the list, and the course of each Machine while it happens.
import { describe, expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import { hasBrowser, withConsole } from "./page.ts";

const urn = "urn:pulumi:prod::shop::machines:index:Fleet::web";
const by = (update: string) => ({ "pulumi-update": update, "pulumi-urn": urn });
const config = (image: string) => ({
  image,
  metadata: { "pulumi-fleet": "web", "pulumi-fleet-phase": "serving" },
  checks: { alive: { type: "http", port: 8080, path: "/" } },
});

describe.runIf(hasBrowser)("rollouts", () => {
  test("the course of a rollout is shown while it happens, with who began it, and why it ended", async () => {
    const clock = new ManualClock();
    const { page, url, token, call } = await withConsole({ service: { clock, delays: "believable" } });
    await call("POST", "/apps", { name: "shop", org_slug: "personal" });
    const ids: string[] = [];
    for (const name of ["web-1", "web-2"])
      ids.push((await call("POST", "/apps/shop/machines", { name, config: config("shop:1") })).body.id);
    for (let i = 0; i < 40; i++) clock.advance(1000);
    const report = async (body: object): Promise<void> => {
      const said = { fleet: "web", strategy: "rolling", from: "shop:1", to: "shop:2", ...body };
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...by("u1") };
      const init = { method: "PUT", headers, body: JSON.stringify(said) };
      expect((await fetch(`${url}/local/apps/shop/rollouts`, init)).status).toBe(204);
    };
    const row = (name: RegExp) => page.getByRole("row", { name });

    await page.getByRole("link", { name: "Rollouts" }).click();
    await page.getByText("No run of Pulumi has changed Machines yet").waitFor();
    await report({ phase: "rolling out" });
    await row(/under way shop\/web shop:1 to shop:2 .* rolling .*2 waiting .*shop\/prod/).waitFor();
    await page.getByRole("link", { name: "shop/web" }).click();
    await row(/^web-1 .*waiting/).waitFor();
    clock.advance(2000);
    await call("POST", `/apps/shop/machines/${ids[0]}`, { config: config("shop:2") }, by("u1"));
    await row(/^web-1 .*updating/).waitFor();
    await page.getByText("updating", { exact: true }).first().waitFor();
    for (let i = 0; i < 40; i++) clock.advance(1000);
    await row(/^web-1 .*healthy/).waitFor();
    await page.getByRole("img", { name: /^waiting .*updating .*healthy/ }).waitFor();
    const failing = { ...config("shop:2"), env: { MACHINES_SIMULATE: "crash" }, restart: { policy: "no" } };
    await call("POST", `/apps/shop/machines/${ids[1]}`, { config: failing }, by("u1"));
    for (let i = 0; i < 40; i++) clock.advance(1000);
    await row(/^web-2 .*failed.*Exited with code 1/).waitFor();
    await report({ phase: "rolling back" });
    await page.getByText("under way, rolling back").waitFor();
    for (const id of ids) await call("POST", `/apps/shop/machines/${id}`, { config: config("shop:1") }, by("u1"));
    for (let i = 0; i < 40; i++) clock.advance(1000);
    await report({ phase: "rolling back", result: "rolled back", reason: "update web-2: its main process exited." });
    await row(/^web-1 .*rolled back/).waitFor();
    await page.getByText("update web-2: its main process exited.").waitFor();
    await row(/POST \/v1\/apps\/shop\/machines\/.*200 .*Fleet web of shop\/prod/)
      .first()
      .waitFor();

    await page.getByRole("link", { name: "shop", exact: true }).click();
    await page.getByRole("button", { name: "Rollouts" }).click();
    await row(/^rolled back shop\/web/).waitFor();
    await expect.poll(() => page.getByText("under way").count()).toBe(0);
  });
});
