// The real CLI, on Machines that really run: the page is fetched through the proxy, the data stays, and rollouts lose no request.
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { counts, Stack } from "../support/stack.ts";
import { expectNothingRuns } from "./cleaning.ts";
import { image, nextImage } from "./image.ts";
import { fetchFrom, load } from "./requests.ts";
import { startReal, type Real } from "./real.ts";
import { hasEngine } from "./runtimes.ts";

/** Requests that rollouts must not lose. */
const leastAnswered = 50_000;

const checked = `{ type: "http", path: "/", interval: "1s", timeout: "1s" }`;

const shop = `
import * as machines from "pulumi-machines";
import * as pulumi from "@pulumi/pulumi";
const settings = new pulumi.Config();
const app = new machines.App("web", { name: "web" });
const data = new machines.Volume("data", { app: app.id, region: "ams", sizeGb: settings.requireNumber("size") });
const snapshot = settings.getBoolean("copies") ? new machines.VolumeSnapshot("snapshot", { app: app.id, volume: data.id }) : undefined;
const mounting = (name: string, volume: pulumi.Input<string>, port: number) =>
  new machines.Machine(name, {
    app: app.id,
    region: "ams",
    config: {
      image: settings.require("image"),
      mounts: [{ volume, path: "/data" }],
      services: [{ protocol: "tcp", internalPort: 8080, ports: [{ port, handlers: ["http"] }], checks: [${checked}] }],
    },
  });
mounting("store", data.id, 80);
if (snapshot) {
  const restored = new machines.Volume("restored", { app: app.id, region: "ams", snapshotId: snapshot.id });
  const fork = new machines.Volume("fork", { app: app.id, region: "fra", sourceVolumeId: data.id });
  mounting("of-restored", restored.id, 81);
}
`;

const fleet = `
import * as machines from "pulumi-machines";
import * as pulumi from "@pulumi/pulumi";
const settings = new pulumi.Config();
const app = new machines.App("web", { name: "web" });
new machines.Fleet("web", {
  app: app.id,
  regions: { ams: settings.requireNumber("count") },
  config: {
    image: settings.require("image"),
    services: [{ protocol: "tcp", internalPort: 8080, ports: [{ port: 80, handlers: ["http"] }], checks: [${checked}] }],
  },
  strategy: settings.requireObject("strategy"),
  promoted: true,
});
`;

describe.runIf(hasEngine)("pulumi up on containers", () => {
  describe("a Machine with a volume", () => {
    let running: Real;
    let stack: Stack;
    beforeAll(async () => {
      running = await startReal();
      const { service } = running;
      stack = new Stack(inject("installed"), "containers");
      stack.program(shop);
      await stack.init({ "machines:endpoint": service.url, "machines:token": service.token, image, size: "1" });
    });
    afterAll(() => running.end());

    const get = (path: string, options: Parameters<typeof fetchFrom>[2] = {}) => fetchFrom(running.port, path, options);

    test("its page opens, and it keeps what it is given", async () => {
      expect(counts(await stack.up())).toEqual({ created: 4 });
      expect(await get("/file/data/note", { method: "PUT", body: "first" })).toMatchObject({ status: 200 });
      expect(await get("/file/data/note")).toEqual({ status: 200, text: "first" });
      expect(await get("/release")).toEqual({ status: 200, text: "1\n" });
    });

    test("a new image and a larger volume keep the data", async () => {
      await stack.set({ image: nextImage, size: "2" });
      expect(counts(await stack.up())).toMatchObject({ updated: 2 });
      expect(await get("/release")).toEqual({ status: 200, text: "2\n" });
      expect(await get("/file/data/note")).toEqual({ status: 200, text: "first" });
    });

    test("a snapshot, a restored volume and a fork in another region have the data", async () => {
      await stack.set({ copies: "true" });
      expect(counts(await stack.up())).toMatchObject({ created: 4 });
      await get("/file/data/note", { method: "PUT", body: "second" });
      expect(await get("/file/data/note", { app: "81.web" })).toEqual({ status: 200, text: "first" });
      expect(counts(await stack.up())).toEqual({ unchanged: 8 });
      expect(counts(await stack.ok("refresh", "--yes", "--skip-preview"))).toEqual({ unchanged: 8 });
    });

    test("an image that no one has is refused at the right resource, and nothing changes", async () => {
      await stack.set({ image: "machines-test/none:1" });
      const { code, output } = await stack.run(["up", "--yes", "--skip-preview"]);
      expect(code).not.toBe(0);
      expect(output).toContain(
        'invalid config.image, got "machines-test/none:1", the engine does not have it and cannot fetch it: ',
      );
      expect(await get("/file/data/note")).toEqual({ status: 200, text: "second" });
      await stack.set({ image: nextImage });
      await stack.up();
    });

    test("destroy leaves no container", async () => {
      await stack.ok("destroy", "--yes", "--skip-preview");
      expect(await get("/")).toMatchObject({ status: 404 });
      await expectNothingRuns(running.dataId);
    });
  });

  test("rollouts and a scale-down lose no request", async () => {
    const { service, port, end } = await startReal();
    const stack = new Stack(inject("installed"), "rollouts");
    try {
      stack.program(fleet);
      const strategies = [
        { type: "rolling", maxUnavailable: "50%" },
        { type: "canary", count: 1, observe: "1s" },
        { type: "bluegreen" },
      ];
      await stack.init({
        "machines:endpoint": service.url,
        "machines:token": service.token,
        image,
        count: "4",
        strategy: JSON.stringify(strategies[0]),
      });
      await stack.up();
      const requests = load(port, "/release", { app: "web" });
      for (let round = 0; round < strategies.length || requests.seen.answered < leastAnswered; round++) {
        const strategy = JSON.stringify(strategies[round % strategies.length]);
        await stack.set({ image: round % 2 === 0 ? nextImage : image, strategy });
        await stack.up();
      }
      await stack.set({ count: "2" });
      await stack.up();
      const { answered, lost, texts } = await requests.stop();
      expect(lost).toEqual([]);
      // Each release has answered.
      expect([...texts.keys()].sort()).toEqual(["1\n", "2\n"]);
      expect(answered).toBeGreaterThan(leastAnswered);
      await stack.ok("destroy", "--yes", "--skip-preview");
    } finally {
      await end();
    }
  });
});
