// What the console shows only of Machines that really run: what they write, their processes, and where they can be opened.
import { describe, expect, test } from "vitest";
import { hasBrowser, openPage, signIn } from "../console/page.ts";
import { send } from "../service/console/browser.ts";
import { hasEngine, withRuntime } from "./runtimes.ts";

describe.runIf(hasEngine && hasBrowser)("the console with containers", () => {
  test("the console follows what a Machine writes, finds a line, and shows its processes and its address", async () => {
    const app = await withRuntime("docker", { console: "read" });
    const ports = [{ port: 80, handlers: ["http"] }];
    const id = await app.create({ services: [{ protocol: "tcp", internal_port: 8080, ports }] });
    await app.reaches(id, "started");
    const page = await openPage(app);
    await signIn(page, app, `/console/apps/web/machines/${id}?view=logs`);
    const lines = page.getByRole("log").getByText("listening on 8080");
    await expect.poll(() => lines.count()).toBe(1);
    await app.post(id, "restart");
    await expect.poll(() => lines.count()).toBe(2);
    await page.getByLabel("Search the logs").fill("nothing like that");
    await page.getByText("No line has this text.").waitFor();
    await page.getByLabel("Search the logs").fill("LISTENING");
    await expect.poll(() => lines.count()).toBe(2);
    await page.getByRole("button", { name: "Processes and memory" }).click();
    await page.getByRole("cell", { name: "/app" }).first().waitFor();

    await page.goto(`${app.url}/console/apps/web?view=network`);
    const link = page.getByRole("main").getByRole("link", { name: /^http:/ });
    const { port } = new URL((await link.getAttribute("href")) ?? "");
    const answer = await send(`http://127.0.0.1:${port}`, "GET", "/", { headers: { host: "web.localhost" } });
    expect(answer.status).toBe(200);
  });
});
