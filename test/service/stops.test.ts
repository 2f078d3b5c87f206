// A stop continues as it was requested after the service was started again, and others wait for its end. With random kills:
// test/service/reconciler/.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ManualClock } from "../../service/index.ts";
import { Reconciler } from "../../service/runtime/reconciler/reconciler.ts";
import type { Reports } from "../../service/runtime/reconciler/driver.ts";
import type { RuntimeHost, StoredStops } from "../../service/runtime/runtime.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { startService } from "../support/startService.ts";
import { caller, requestsOfWeb } from "./client.ts";
import { withModel } from "./reconciler/modelApp.ts";
import { ModelDriver, ModelEngine } from "./reconciler/modelEngine.ts";

const minute = 60_000;

test.each([
  ["stop", "stopped", "", { signal: "SIGTERM", timeout: "300s" }],
  ["restart", "started", "?signal=SIGTERM&timeout=300", undefined],
] as const)(
  "a requested %s keeps its signal and its time when the service is restarted",
  async (what, next, query, body) => {
    const clock = new ManualClock();
    const data = mkdtempSync(join(tmpdir(), "machines-stops-"));
    afterThisTest(() => rmSync(data, { recursive: true, force: true }));
    const engine = new ModelEngine({
      ...{ pauses: true, killsOnRemove: true, isPerStart: false, startsAgain: false, drainMs: undefined, answerMs: 0 },
    });
    /** A run of the service with the same data and the same engine. */
    const run = async () => {
      const made: { stops?: StoredStops; reports?: Reports } = {};
      const runtime = (host: RuntimeHost) => {
        made.stops = host.stops;
        return new Reconciler(host, (reports) => {
          made.reports = reports;
          return new ModelDriver(engine, host, reports);
        });
      };
      const service = await startService({ data, clock, delays: "none", runtime });
      afterThisTest(() => service.close());
      await expect.poll(() => engine.driver?.isReady).toBe(true);
      return {
        ...requestsOfWeb(caller(service.url, service.token)),
        close: () => service.close(),
        stop: (id: string) => made.stops?.of(id),
        /** Resolves when nothing is left to do for a Machine, until something changes. */
        idle: async (id: string) => (await made.reports?.hold(id))?.(),
      };
    };

    const first = await run();
    await first.call("POST", "/apps", { name: "web", org_slug: "personal" });
    const { id } = await first.machine();
    await expect.poll(() => first.state(id)).toBe("started");
    const [process] = engine.made;
    engine.isDeaf = true;
    expect((await first.call("POST", `${first.machines}/${id}/${what}${query}`, body)).status).toBe(200);
    const request = { signal: "SIGTERM", timeoutMs: 5 * minute };
    await expect.poll(() => first.stop(id)).toEqual({ request, asked: { instance: process?.id, leftMs: 5 * minute } });
    await first.close();

    clock.advance(4 * minute);
    const second = await run();
    await second.idle(id);
    expect(second.stop(id)).toEqual({ request, asked: { instance: process?.id, leftMs: minute } });
    expect([process?.state, process?.signals]).toEqual(["running", ["SIGTERM"]]);
    await second.close();

    clock.advance(minute);
    const third = await run();
    await expect.poll(() => third.state(id)).toBe(next);
    expect([process?.state, process?.signals]).toEqual(["ended", ["SIGTERM", "SIGKILL"]]);
    // The next stop starts from the beginning.
    expect(third.stop(id)).toBeUndefined();
  },
);

test.each([
  ["updated", "POST", "", { config: { image: "nginx" } }],
  ["destroyed", "DELETE", "?force=true", undefined],
] as const)(
  "no other Machine mounts a volume while a process that writes into it ends, also when its Machine is %s meanwhile",
  async (what, method, query, body) => {
    const app = await withModel({}, { killsOnRemove: false });
    const { engine, call, machines } = app;
    const mounts = [{ volume: (await app.volume()).id, path: "/data" }];
    const { id } = await app.machine({ mounts, stop_config: { timeout: "300s" } });
    await expect.poll(() => app.state(id)).toBe("started");
    const [process] = engine.made;
    engine.isDeaf = true;
    const config = { image: "nginx", stop_config: { timeout: "300s" } };
    expect((await call("POST", `${machines}/${id}`, { config })).status).toBe(200);
    await expect.poll(() => process?.signals).toHaveLength(1);
    expect((await call(method, `${machines}/${id}${query}`, body)).status).toBe(200);
    const claim = async () => (await call("POST", machines, { config: { image: "nginx", mounts } })).status;
    expect([await claim(), process?.state]).toEqual([412, "running"]);
    if (process) engine.end(process);
    await expect.poll(claim).toBe(200);
    await expect
      .poll(() => engine.made.filter(({ state }) => state === "running").length)
      .toBe(what === "updated" ? 2 : 1);
    expect(engine.mistakes).toEqual([]);
  },
);
