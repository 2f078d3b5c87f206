// What the console shows only of Machines that really run: what they write, their processes, and where they can be opened.
import { describe, expect, test } from "vitest";
import { accessibilityProblems, hasBrowser, openPage, signIn } from "../console/page.ts";
import { send } from "../service/console/browser.ts";
import type { AppRow } from "../../service/store/rows.ts";
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
    const link = page
      .getByRole("main")
      .getByRole("link", { name: /^http:/ })
      .first();
    const { port } = new URL((await link.getAttribute("href")) ?? "");
    const answer = await send(`http://127.0.0.1:${port}`, "GET", "/", { headers: { host: "web.localhost" } });
    expect(answer.status).toBe(200);
  });

  test("it shows what a Machine uses, and what the proxy answers for its App", async () => {
    const app = await withRuntime("docker", { console: "read" });
    const ports = [{ port: 80, handlers: ["http"] }];
    const guest = { cpu_kind: "shared", cpus: 1, memory_mb: 256 };
    const id = await app.create({ guest, services: [{ protocol: "tcp", internal_port: 8080, ports }] });
    await app.reaches(id, "started");
    const { usage, proxy, context } = app.service;
    const found = context.store.get<AppRow>("SELECT * FROM apps WHERE name = 'web'");
    const [address] = (found && (await proxy?.addressesOf(found))) ?? [];
    const { port } = new URL(address?.url ?? "");
    const ask = (path: string) => send(`http://127.0.0.1:${port}`, "GET", path, { headers: { host: "web.localhost" } });
    // What was read first is what the rates begin with.
    await usage.sample();
    await app.exec(
      id,
      "sh",
      "-c",
      "head -c 30000000 /dev/zero | tail -c 1; head -c 2000000 /dev/zero > /tmp/file; sync",
    );
    for (let i = 0; i < 20; i++) expect((await ask("/")).status).toBe(200);
    await expect.poll(() => ask("/no-such-path").then(({ status }) => status)).toBeGreaterThanOrEqual(200);
    await usage.sample();

    const page = await openPage(app);
    await signIn(page, app, `/console/apps/web/machines/${id}?view=usage`);
    await page.getByRole("img", { name: /^Processors that the Machine used.* Now: used 0\.?\d*, of 1$/ }).waitFor();
    await page
      .getByRole("img", { name: /^Memory that the Machine used.* Now: used [\d.]+ MB, of 268\.4 MB$/ })
      .waitFor();
    await page
      .getByRole("img", { name: /^Bytes a second that the Machine received.* Now: received [\d.]+ k?B\/s/ })
      .waitFor();
    await page.getByRole("img", { name: /^Bytes a second that the Machine read/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.goto(`${app.url}/console/apps/web?view=usage`);
    await page.getByRole("img", { name: /^Requests a second.* Now: requests [\d.]+\/s, errors 0\/s$/ }).waitFor();
    await page
      .getByRole("img", { name: /^Time within.* Now: half within [\d.]+ ms, 95 % within [\d.]+ ms$/ })
      .waitFor();
    await page.getByLabel("All addresses").selectOption("http://web.localhost");
    await page.getByRole("img", { name: /^Requests a second.* Now: requests [\d.]+\/s/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await app.call("DELETE", `${app.machines}/${id}?force=true`);
    await expect.poll(async () => (await context.runtime.usage?.())?.size).toBe(0);
  });
});
