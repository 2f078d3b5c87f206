// The course of rollouts of a fleet in the console, with the real CLI, on Machines that really run. A check that answers only when the
// test lets it holds each Machine where it is, so that the page must show it there.
import type { Page } from "playwright-core";
import { describe, expect, inject, test } from "vitest";
import { accessibilityProblems, hasBrowser, openPage, signIn } from "../console/page.ts";
import { send } from "../support/around.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { Stack, type Running } from "../support/stack.ts";
import { image, nextImage } from "./image.ts";
import { startReal } from "./real.ts";
import { hasEngine } from "./runtimes.ts";

const program = `
import * as machines from "pulumi-machines";
import * as pulumi from "@pulumi/pulumi";
const settings = new pulumi.Config();
const app = new machines.App("web", { name: "web" });
new machines.Fleet("web", {
  app: app.id,
  regions: { ams: 3 },
  config: {
    image: settings.require("image"),
    env: { MACHINES_SIMULATE: settings.get("simulate") ?? "" },
    services: [
      {
        protocol: "tcp",
        internalPort: 8080,
        ports: [{ port: 80, handlers: ["http"] }],
        checks: [{ type: "http", path: settings.require("check"), interval: "1s", timeout: "10m" }],
      },
    ],
  },
  strategy: settings.requireObject("strategy"),
  onFailure: settings.get("onFailure") ?? "rollback",
  passDeadline: settings.get("passDeadline"),
});
`;

const canary = JSON.stringify({ type: "canary", count: 1, observe: "1s" });
const bluegreen = JSON.stringify({ type: "bluegreen" });
/** Answers when the file exists. */
const held = "/when/tmp/ready";

/** A fleet of three Machines that runs, and a page that shows the rollouts. */
async function deployed(strategy: string) {
  const real = await startReal({ console: "read" });
  afterThisTest(() => real.end());
  const { service } = real;
  const stack = new Stack(inject("installed"), "watched");
  stack.program(program);
  const connection = { "machines:endpoint": service.url, "machines:token": service.token };
  await stack.init({ ...connection, image, strategy, check: "/" });
  await stack.up();
  const page = await openPage(service);
  await signIn(page, service, "/console/rollouts");
  await page.getByRole("row", { name: /^succeeded web\/web/ }).waitFor();
  return {
    ...{ page, stack },
    /** Lets the check of a Machine pass. */
    async pass(name: string): Promise<void> {
      const all = await send<{ id: string; name: string }[]>(service, "GET", "/v1/apps/web/machines");
      const { id = "" } = all.find((one) => one.name === name) ?? {};
      // One that is rolled back starts meanwhile.
      await send(service, "GET", `/v1/apps/web/machines/${id}/wait?state=started&timeout=60`);
      await real.exec("web", id, ["write", "/tmp/ready", "644"], "yes");
    },
  };
}

/** Begins an update, and opens its rollout while it is under way. */
async function watch(page: Page, stack: Stack, settings: Record<string, string>): Promise<Running> {
  await stack.set(settings);
  const running = stack.start(["up", "--yes", "--skip-preview"]);
  await page.getByRole("link", { name: "Rollouts" }).first().click();
  await page
    .getByRole("row", { name: /^under way/ })
    .getByRole("link", { name: "web/web" })
    .click();
  return running;
}

/** The row of a Machine that does something now. */
const rowOf = (page: Page, name: string, now: string) =>
  page.getByRole("row", { name: new RegExp(`^${name} (\\S )?${now} `) });

/** The words of the bar of each Machine. */
async function courses(page: Page): Promise<Record<string, string>> {
  const rows = page.getByRole("group", { name: "Timeline of each Machine" }).getByRole("row");
  const found: Record<string, string> = {};
  for (const row of (await rows.all()).slice(1)) {
    const words = (await row.getByRole("img").getAttribute("aria-label")) ?? "";
    found[(await row.getByRole("rowheader").textContent()) ?? ""] = words.replaceAll(
      / [\d.]+ \w+(?: \d+ s)?(?=,|$)/g,
      "",
    );
  }
  return found;
}

const ended = (page: Page, result: string) => page.locator("header.title").getByText(result).waitFor();

describe.runIf(hasEngine && hasBrowser)("the course of a rollout on containers", () => {
  test("a canary goes first, each Machine passes through its steps, and one that crashes goes back with its reason", async () => {
    const { page, stack, pass } = await deployed(canary);
    const names = ["web-ams-1", "web-ams-2", "web-ams-3"];
    const running = await watch(page, stack, { image: nextImage, check: held });
    for (const [i, name] of names.entries()) {
      await rowOf(page, name, "checks").waitFor();
      for (const later of names.slice(i + 1)) await rowOf(page, later, "waiting").waitFor();
      if (i === 0) expect(await accessibilityProblems(page)).toEqual([]);
      await pass(name);
      await rowOf(page, name, "healthy").waitFor();
    }
    expect(await running.ended).toMatchObject({ code: 0 });
    await ended(page, "succeeded");
    const whole = "waiting, updating, starting, checks, healthy";
    expect(await courses(page)).toEqual(Object.fromEntries(names.map((name) => [name, whole])));

    const failing = await watch(page, stack, { image, simulate: "crash" });
    await rowOf(page, "web-ams-1", "rolling back").waitFor();
    await page.getByText("under way, rolling back").waitFor();
    await pass("web-ams-1");
    expect((await failing.ended).code).not.toBe(0);
    await ended(page, "rolled back");
    await page.getByText(/^update web-ams-1: .*its main process exited \(code 1\)/).waitFor();
    await page.getByRole("row", { name: /^web-ams-1 .*rolled back/ }).waitFor();
    const { "web-ams-1": failed, ...others } = await courses(page);
    expect(failed).toMatch(/^waiting, updating, starting, .*rolling back, rolled back$/);
    expect(others).toEqual({ "web-ams-2": "waiting", "web-ams-3": "waiting" });
  });

  test("a canary whose check does not pass ends the rollout, and the page says that it failed", async () => {
    const { page, stack } = await deployed(canary);
    const running = await watch(page, stack, {
      image: nextImage,
      check: "/file/none",
      onFailure: "stop",
      passDeadline: "3s",
    });
    expect((await running.ended).code).not.toBe(0);
    await ended(page, "failed");
    await rowOf(page, "web-ams-1", "failed").waitFor();
    await page.getByRole("row", { name: /^web-ams-1 .*a check is critical/ }).waitFor();
    await page.getByText(/^update web-ams-1: /).waitFor();
    for (const name of ["web-ams-2", "web-ams-3"]) await rowOf(page, name, "waiting").waitFor();
  });

  test("the new Machines of a blue/green rollout pass through their steps, and the old ones are destroyed", async () => {
    const { page, stack, pass } = await deployed(bluegreen);
    const [old, fresh] = [
      [1, 2, 3],
      [4, 5, 6],
    ].map((all) => all.map((n) => `web-ams-${n}`)) as [string[], string[]];
    const each = (names: readonly string[], now: string) =>
      Promise.all(names.map((name) => rowOf(page, name, now).waitFor()));
    const running = await watch(page, stack, { image: nextImage, check: held });
    await each(fresh, "checks");
    await each(old, "waiting");
    for (const name of fresh) await pass(name);
    expect(await running.ended).toMatchObject({ code: 0 });
    await ended(page, "succeeded");
    await each(fresh, "healthy");
    await each(old, "destroyed");
    const course = await courses(page);
    for (const name of fresh) expect(course[name]).toBe("updating, starting, checks, healthy");
    for (const name of old) expect(course[name]).toBe("waiting, stopped, destroying, destroyed");

    const failing = await watch(page, stack, { image, simulate: "crash" });
    expect((await failing.ended).code).not.toBe(0);
    await ended(page, "rolled back");
    await page.getByText(/^create web-ams-\d without traffic: .*its main process exited \(code 1\)/).waitFor();
    await each(fresh, "waiting");
    await each(old, "destroyed");
    // Its restart policy starts each again until the fleet gives up.
    for (const name of old)
      await page
        .getByRole("row", { name: new RegExp(`^${name} .*Exited with code 1; last words: crashing`) })
        .waitFor();
    const back = await courses(page);
    for (const name of old) expect(back[name]).toMatch(/^updating, starting, .*destroying, destroyed$/);
  });
});
