// An engine whose disk is full.
import { rmSync, statfsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { expectUnchanged } from "../support/invariants.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { counts, errorsOf, Stack } from "../support/stack.ts";
import { expectNothingRuns } from "./cleaning.ts";
import { image } from "./image.ts";
import { hasOwnEngines, startOwnEngine } from "./ownEngine.ts";
import { startReal } from "./real.ts";
import { fetchFrom } from "./requests.ts";

const mib = 2 ** 20;

const program = `
import * as machines from "pulumi-machines";
import * as pulumi from "@pulumi/pulumi";
const settings = new pulumi.Config();
const app = new machines.App("web", { name: "web" });
const data = new machines.Volume("data", { app: app.id, region: "ams" });
const mounting = (name: string, volume: pulumi.Input<string>, port: number) =>
  new machines.Machine(name, {
    app: app.id,
    region: "ams",
    config: {
      image: settings.require("image"),
      mounts: [{ volume, path: "/data" }],
      services: [{
        protocol: "tcp",
        internalPort: 8080,
        ports: [{ port, handlers: ["http"] }],
        checks: [{ type: "http", path: "/", interval: "1s", timeout: "1s" }],
      }],
    },
  });
mounting("store", data.id, 80);
if (settings.getBoolean("copies")) {
  const fork = new machines.Volume("fork", { app: app.id, region: "ams", sourceVolumeId: data.id });
  mounting("of-fork", fork.id, 81);
}
if (settings.getBoolean("more"))
  new machines.Machine("more", { app: app.id, region: "ams", config: { image: settings.require("image") } });
`;

describe.runIf(hasOwnEngines)("an engine without space", () => {
  test("a failed write is reported, and the next up continues", async () => {
    const engine = await startOwnEngine({ disk: 100 * mib });
    afterThisTest(() => engine.remove());
    const real = await startReal();
    afterThisTest(() => real.end());
    const stack = new Stack(inject("installed"), "space");
    stack.program(program);
    const { url, token } = real.service;
    await stack.init({ "machines:endpoint": url, "machines:token": token, image });
    await stack.up();
    const large = "x".repeat(8 * mib);
    const put = { method: "PUT", body: large };
    expect(await fetchFrom(real.port, "/file/data/large", put)).toMatchObject({ status: 200 });

    const filler = join(engine.folder, "data", "filler");
    /** Leaves only so many bytes. What an attempt had written before it failed is free again a moment later. */
    const fill = (left: number): void => {
      rmSync(filler, { force: true });
      const { bavail, bsize } = statfsSync(dirname(filler));
      writeFileSync(filler, Buffer.alloc(bavail * bsize - left));
    };
    const failing = async () => errorsOf(await stack.fails("up", "--yes", "--skip-preview"));
    fill(0);
    await stack.set({ more: "true" });
    expect((await failing())["more"]).toMatch(/its main process exited \(code 127, .*no space left on device/);
    await stack.set({ copies: "true" });
    expect((await failing())["of-fork"]).toMatch(/volume \w+ could not be written: .*no space left on device/);
    // There is space for the container, and too little for what it copies.
    fill(4 * mib);
    expect((await failing())["of-fork"]).toMatch(/volume \w+ could not be written: .*no space left on device/);
    rmSync(filler);
    const { updated = 0, ...others } = counts(await stack.up());
    expect([updated > 0, Object.keys(others)]).toEqual([true, ["unchanged"]]);
    expect((await fetchFrom(real.port, "/file/data/large", { app: "81.web" })).text).toBe(large);
    await expectUnchanged(stack);
    await stack.destroy();
    await expectNothingRuns(real.dataId);
  });
});
