// Progress of waits: reported to the engine beside the resource, about every ten seconds.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { withLease } from "../../provider/client/lease.ts";
import { waitForChecks, waitForMachine } from "../../provider/client/wait.ts";
import { create, remove } from "../../provider/core/verbs/index.ts";
import type { Resource, Values } from "../../provider/core/resource.ts";
import { Run } from "../../provider/core/run/run.ts";
import { resources } from "../../provider/registry.ts";
import { ManualClock } from "../../service/index.ts";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { drive, urnOf } from "../support/driver.ts";
import { jumpingClient, noIntents } from "../support/jumpingClient.ts";
import { startEngine, startPlugin } from "../support/plugin.ts";
import { toStruct } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

const config = { image: "registry.example.com/web:1" };

describe("progress", () => {
  let service: TestService;
  beforeEach(async () => {
    // Its clock stands still, so everything that takes time there never ends.
    service = await startService({ clock: new ManualClock(), delays: "believable" });
    await makeApp(service, "app");
  });
  afterEach(async () => {
    vi.useRealTimers();
    await service.close();
  });

  const reaches = "reaches the engine as a status message for the resource";
  test.each([
    [reaches, {}],
    [`F61 ${reaches}, also with a proxy that the user has set`, { http_proxy: "http://127.0.0.1:9", no_proxy: "" }],
  ])("progress is reported: %s", async (_, env: Record<string, string>) => {
    const engine = await startEngine();
    const plugin = await startPlugin({ args: [engine.address], env });
    try {
      const args = toStruct({ endpoint: service.url, token: service.token });
      await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
      const id = await makeMachine(service, "app", { config, skip_launch: true });
      await send(service, "POST", `/v1/apps/app/machines/${id}/lease`, { ttl: 600, description: "their deploy" });
      const machine = drive(plugin.client, urnOf("Machine", "web"));
      const state = { app: "app", machineId: id, name: "web", config, state: "stopped" };
      await expect(machine.delete({ id: `app/${id}`, state, timeout: 5 })).rejects.toThrow(/was not released/);
      await expect
        .poll(() => engine.logs)
        .toEqual([
          {
            severity: "info",
            urn: machine.urn,
            message: expect.stringMatching(/^waiting for the lease of Machine .* currently held by/) as unknown,
            ephemeral: true,
          },
        ]);
    } finally {
      await plugin.close();
      engine.close();
    }
  });

  describe("is reported every ten seconds", () => {
    /** Seconds at which progress was reported, during work that ends at a deadline of one minute. */
    const saidDuring = async (
      work: (within: ReturnType<typeof jumpingClient>["api"], progress: (message: string) => void) => Promise<unknown>,
      client = jumpingClient(service),
    ): Promise<number[]> => {
      const { api, clock } = client;
      const since = clock.now();
      const said: number[] = [];
      const progress = (): void => void said.push((clock.now() - since) / 1000);
      await expect(work(api.within({ at: since + 60_000, allowed: "1m0s" }), progress)).rejects.toThrow();
      return said;
    };
    const regular = (said: readonly number[]): void => {
      const gaps = [...said, 60].map((at, i) => at - (said[i - 1] ?? 0));
      expect(Math.max(...gaps)).toBeLessThanOrEqual(11);
      expect(said.length).toBeLessThanOrEqual(7);
    };
    const of = (type: string): Resource => {
      const resource = resources[type];
      if (!resource) throw new Error(type);
      return resource;
    };
    const caller = (api: ReturnType<typeof jumpingClient>["api"], progress: (message: string) => void) => ({
      api,
      run: new Run(() => noIntents),
      progress,
      warn: () => undefined,
      timeoutSeconds: 60,
    });

    test("progress of a lease is reported every ten seconds", async () => {
      const machineId = await makeMachine(service, "app", { config, skip_launch: true });
      await send(service, "POST", `/v1/apps/app/machines/${machineId}/lease`, { ttl: 600 });
      const key = { appName: "app", machineId };
      regular(
        await saidDuring((api, progress) =>
          withLease(api, key, { description: "test", progress }, () => Promise.resolve()),
        ),
      );
    });

    test("progress of checks is reported every ten seconds", async () => {
      const quick = await startService();
      try {
        await makeApp(quick, "app");
        const machineId = await makeMachine(quick, "app", {
          config: {
            ...config,
            env: { MACHINES_SIMULATE: "checks:critical" },
            checks: { alive: { type: "tcp", port: 1 } },
          },
        });
        await send(quick, "GET", `/v1/apps/app/machines/${machineId}/wait?state=started`);
        const key = { appName: "app", machineId };
        regular(await saidDuring((api, progress) => waitForChecks(api, key, progress), jumpingClient(quick)));
      } finally {
        await quick.close();
      }
    });

    test("for a volume that is being created, and for one that is not released", async () => {
      const inputs: Values = { app: "app", name: "data", region: "ams", sizeGb: 1, encrypted: true, fstype: "ext4" };
      regular(await saidDuring((api, progress) => create(of("Volume"), inputs, caller(api, progress))));
      const volumeId = await makeVolume(service, "app", "ams");
      service.fail({ operation: "volumes.delete", when: "before", status: 412, body: { error: "bound" }, times: 1000 });
      const state = { ...inputs, volumeId };
      regular(
        await saidDuring((api, progress) => remove(of("Volume"), `app/${volumeId}`, state, caller(api, progress))),
      );
    });

    test("for an App that is being deleted, and for one that does not appear yet", async () => {
      const said = await saidDuring((api, progress) =>
        remove(of("App"), "app", { name: "app" }, caller(api, progress)),
      );
      regular(said);
      service.fail({ operation: "apps.get", when: "before", status: 404, body: { error: "not yet" }, times: 1000 });
      regular(await saidDuring((api, progress) => create(of("App"), { name: "other" }, caller(api, progress))));
    });

    test("for a Machine, during a long poll", async () => {
      vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
      const machineId = await makeMachine(service, "app", { config });
      const said: string[] = [];
      const { api } = jumpingClient(service);
      const waiting = waitForMachine(api, { appName: "app", machineId }, ["started"], {
        progress: (message) => said.push(message),
      });
      await expect.poll(() => service.service.context.waits.size).toBe(1);
      for (const count of [1, 2, 3]) {
        vi.advanceTimersByTime(10_000);
        await expect.poll(() => said.length).toBe(count);
      }
      expect(said[0]).toMatch(/^waiting for Machine .* to be started for \d+ s/);
      (service.clock as ManualClock).advance(60_000);
      expect(await waiting).toBe("started");
      vi.advanceTimersByTime(60_000);
      expect(said).toHaveLength(3);
    });
  });
});
