// The engine ends while Machines run and while an `up` is at work.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { answers } from "../../tools/setup/daemon.mjs";
import { send } from "../support/around.ts";
import { expectUnchanged } from "../support/invariants.ts";
import { counts, errorsOf, Stack } from "../support/stack.ts";
import { expectNothingRuns } from "./cleaning.ts";
import { image, nextImage } from "./image.ts";
import { hasOwnEngines, startOwnEngine } from "./ownEngine.ts";
import { startReal, type Real } from "./real.ts";
import { fetchFrom } from "./requests.ts";

const rounds = 10;

/** Milliseconds after which a restarted program counts as one that keeps running. */
const settled = 3000;

interface Seen {
  readonly events: readonly { readonly timestamp: number }[];
}

const program = `
import * as machines from "pulumi-machines";
import * as pulumi from "@pulumi/pulumi";
const settings = new pulumi.Config();
const app = new machines.App("web", { name: "web" });
const data = new machines.Volume("data", { app: app.id, region: "ams" });
const options = { customTimeouts: { update: settings.get("patience") ?? "10m" } };
const machine = (name: string, more: object) =>
  new machines.Machine(name, {
    app: app.id,
    region: "ams",
    config: { image: settings.require("image"), restart: { policy: "always" }, ...more },
  }, options);
machine("store", {
  mounts: [{ volume: data.id, path: "/data" }],
  services: [{
    protocol: "tcp",
    internalPort: 8080,
    ports: [{ port: 80, handlers: ["http"] }],
    checks: [{ type: "http", path: "/", interval: "1s", timeout: "1s" }],
  }],
});
machine("one", {});
machine("other", {});
`;

test.runIf(hasOwnEngines)(
  "an engine ends, and its folder goes, when kill -9 ends the process that started it",
  async () => {
    const script = `
    import { createDaemon } from "./tools/setup/daemon.mjs";
    const daemon = createDaemon();
    console.log(JSON.stringify({ problem: await daemon.start(), folder: daemon.folder, host: daemon.host }));
    setInterval(() => {}, 60_000);
  `;
    const owner = spawn(process.execPath, ["--input-type=module", "--eval", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = (await once(owner.stdout, "data")) as [Buffer];
    const { problem, folder, host } = JSON.parse(line.toString()) as Record<string, string>;
    expect(problem).toBeUndefined();
    owner.kill("SIGKILL");
    await expect.poll(() => existsSync(folder ?? ""), { interval: 20 }).toBe(false);
    expect(await answers(host)).toBe(false);
  },
);

describe.runIf(hasOwnEngines)("the end of the engine", () => {
  let engine: Awaited<ReturnType<typeof startOwnEngine>>;
  let real: Real;
  let stack: Stack;
  beforeAll(async () => {
    engine = await startOwnEngine();
    real = await startReal();
    stack = new Stack(inject("installed"), "loss");
    stack.program(program);
    const { url, token } = real.service;
    await stack.init({ "machines:endpoint": url, "machines:token": token, image });
    await stack.up();
  });
  afterAll(async () => {
    await real?.end();
    await engine?.remove();
    expect(existsSync(engine?.folder ?? "")).toBe(false);
  });

  const keep = async (text: string) =>
    expect(await fetchFrom(real.port, "/file/data/note", { method: "PUT", body: text })).toMatchObject({ status: 200 });
  const note = async () => (await fetchFrom(real.port, "/file/data/note").catch(() => ({ text: "" }))).text;

  /** Milliseconds for which all Machines have run. One that was restarted a moment ago counts as failed. */
  const runFor = async () => {
    const machines = await send<Seen[]>(real.service, "GET", "/v1/apps/web/machines");
    return Date.now() - Math.max(...machines.map(({ events: [last] }) => last?.timestamp ?? 0));
  };

  test(`kill -9, ${rounds} rounds: all Machines run again, and no data is lost`, async () => {
    for (let round = 0; round < rounds; round++) {
      await keep(`${round}`);
      await engine.kill();
      await engine.start();
      const running = async () => (await engine.docker.listContainers()).length;
      await expect.poll(running, { interval: 50 }).toBe(3);
      await expect.poll(note, { interval: 50 }).toBe(`${round}`);
    }
    await expect.poll(runFor).toBeGreaterThan(settled);
    await expectUnchanged(stack);
  });

  test("a program that exits with 0 when the engine is stopped starts again; one that was stopped by hand does not", async () => {
    const machines = "/v1/apps/calm/machines";
    const stateOf = async (id: string) =>
      (await send<{ readonly state: string }>(real.service, "GET", `${machines}/${id}`)).state;
    const create = async () => {
      const config = { image, env: { MACHINES_SIMULATE: "orderly" } };
      const { id } = await send<{ readonly id: string }>(real.service, "POST", machines, { config });
      await expect.poll(() => stateOf(id), { interval: 20 }).toBe("started");
      return id;
    };
    const containersOf = (id: string) =>
      engine.docker.listContainers({ all: true, filters: { label: [`machines-service.machine=${id}`] } });
    await send(real.service, "POST", "/v1/apps", { name: "calm", org_slug: "personal" });
    const [ended, byHand] = [await create(), await create()];
    for (const { Id } of await containersOf(byHand)) await engine.docker.getContainer(Id).stop();
    await expect.poll(() => stateOf(byHand), { interval: 20 }).toBe("stopped");
    await engine.stop();
    await engine.start();
    const states = async () => (await containersOf(ended)).map(({ State }) => State);
    await expect.poll(states, { interval: 50 }).toContain("running");
    await expect.poll(() => stateOf(ended), { interval: 20 }).toBe("started");
    const { events } = await send<{
      readonly events: readonly { readonly request?: { readonly exit_event?: object } }[];
    }>(real.service, "GET", `${machines}/${ended}`);
    const exits = events.flatMap(({ request }) => request?.exit_event ?? []);
    expect(exits).toMatchObject([{ exit_code: 0, error: "it ended with its container engine" }]);
    expect(await stateOf(byHand)).toBe("stopped");
    expect((await containersOf(byHand)).map(({ State }) => State)).toEqual(["exited"]);
    await send(real.service, "DELETE", "/v1/apps/calm?force=true");
  });

  test("an up continues when the engine that was stopped meanwhile is back", async () => {
    await stack.set({ image: nextImage });
    const before = real.service.requests.length;
    const up = stack.start(["up", "--yes", "--skip-preview"]);
    const updates = () => real.service.requests.slice(before).some(({ operation }) => operation === "machines.update");
    await expect.poll(updates, { interval: 10 }).toBe(true);
    await engine.stop();
    await engine.start();
    const { output } = await up.ended;
    expect(counts(output), output).toEqual({ updated: 3, unchanged: 3 });
  });

  test("an up without an engine reports that, and the next one continues", async () => {
    await stack.set({ image, patience: "3s" });
    await engine.stop();
    const errors = errorsOf(await stack.fails("up", "--yes", "--skip-preview"));
    for (const name of ["store", "one", "other"])
      expect(errors[name]).toMatch(/the container engine does not answer \(ENOENT\)/);
    await engine.start();
    await stack.set({ patience: "10m" });
    expect(counts(await stack.up())).toEqual({ updated: 3, unchanged: 3 });
    await expectUnchanged(stack);
    await stack.destroy();
    await expectNothingRuns(real.dataId);
  });
});
