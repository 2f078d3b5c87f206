// Waits and leases of the client with the real service.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createApi, type Api } from "../../provider/client/api.ts";
import { systemClock } from "../../provider/client/clock.ts";
import { withLease } from "../../provider/client/lease.ts";
import { httpTransport } from "../../provider/client/transport.ts";
import { waitForMachine } from "../../provider/client/wait.ts";
import { readConfig } from "../../provider/client/config.ts";
import { ManualClock } from "../../service/index.ts";
import { makeApp, makeMachine, send } from "../support/around.ts";
import { startService, type TestService } from "../support/startService.ts";

const config = { image: "registry.example.com/a:1" };
const silent = (): void => undefined;

describe("waits and leases", () => {
  let service: TestService;
  let api: Api;
  const transport = httpTransport();

  beforeAll(async () => {
    service = await startService();
    await makeApp(service, "app");
    api = clientOf(service);
  });
  afterAll(async () => {
    await service.close();
    await transport.close();
  });

  const clientOf = ({ url, token }: TestService): Api => {
    const settings: Record<string, string> = { endpoint: url, token };
    return createApi({
      config: readConfig((key) => settings[key], {}),
      connect: () => Promise.resolve({ url, token }),
      transport,
      clock: systemClock,
    });
  };
  const machine = async () => ({ appName: "app", machineId: await makeMachine(service, "app", { config }) });
  const within = (seconds: number) => api.within({ at: Date.now() + seconds * 1000, allowed: `${seconds}s` });
  const path = ({ machineId }: { machineId: string }) => `/v1/apps/app/machines/${machineId}`;

  test("a wait for several states returns the one that is reached", async () => {
    const key = await machine();
    expect(await waitForMachine(api, key, ["stopped", "started"], { progress: silent })).toBe("started");
    const waiting = waitForMachine(api, key, ["failed", "stopped"], { progress: silent });
    await send(service, "POST", `${path(key)}/stop`);
    expect(await waiting).toBe("stopped");
  });

  test("waits that end with 408 are repeated until the deadline; the error shows the last event", async () => {
    const key = await machine();
    service.fail({
      operation: "machines.wait",
      when: "before",
      status: 408,
      body: { error: "deadline_exceeded: not yet" },
      times: 3,
    });
    expect(await waitForMachine(api, key, ["started"], { progress: silent })).toBe("started");
    await expect(waitForMachine(within(1), key, ["suspended"], { progress: silent })).rejects.toThrow(
      /was not suspended within 1s\. It is started; its last event is start \(started\)/,
    );
  });

  test("a version that another client replaced ends the wait", async () => {
    const key = await machine();
    const { version } = await api.machines.get(key);
    await send(service, "POST", path(key), { config: { ...config, env: { A: "1" } } });
    await expect(waitForMachine(within(60), key, ["stopped"], { version, progress: silent })).rejects.toThrow(
      /was updated by another client/,
    );
  });

  test("a missing Machine counts as destroyed when that is the awaited state", async () => {
    const key = await machine();
    await send(service, "DELETE", `${path(key)}?force=true`);
    expect(await waitForMachine(api, key, ["destroyed"], { progress: silent })).toBe("destroyed");
  });

  test("a lease is released when the work fails, and when it destroyed the Machine", async () => {
    const key = await machine();
    await expect(
      withLease(api, key, { description: "test", progress: silent }, () => Promise.reject(new Error("work failed"))),
    ).rejects.toThrow("work failed");
    await expect(send(service, "GET", `${path(key)}/lease`)).rejects.toThrow(/404/);
    await withLease(api, key, { description: "test", progress: silent }, async (lease) => {
      await api.machines.destroy({ ...key, force: true, leaseNonce: lease.nonce() });
    });
  });

  test("a lease whose answer was lost is waited for, not acquired twice (F08)", async () => {
    const clock = new ManualClock();
    const stopped = await startService({ clock });
    try {
      await makeApp(stopped, "app");
      const key = { appName: "app", machineId: await makeMachine(stopped, "app", { config }) };
      stopped.fail({ operation: "machines.acquireLease", when: "after", status: 503 });
      const working = withLease(clientOf(stopped), key, { description: "test", progress: silent }, () =>
        Promise.resolve("worked"),
      );
      await expect.poll(() => stopped.requests.filter(({ status }) => status === 409).length).toBeGreaterThan(0);
      clock.advance(14_000);
      expect(await working).toBe("worked");
    } finally {
      await stopped.close();
    }
  });

  test("a lease is renewed until the work ends", async () => {
    const key = await machine();
    const renewals = () =>
      service.requests.filter((seen) => seen.path === `${path(key)}/lease` && seen.status === 201).length;
    await withLease(api, key, { description: "test", progress: silent, ttl: 3 }, async (lease) => {
      await expect.poll(renewals).toBeGreaterThan(4);
      await api.machines.stop({ ...key, leaseNonce: lease.nonce(), body: {} });
    });
  });

  test("once renewals fail for longer than the lease lasts, its nonce is no longer used (F07)", async () => {
    const key = await machine();
    const work = withLease(api, key, { description: "test", progress: silent, ttl: 1 }, async (lease) => {
      service.fail({ operation: "machines.acquireLease", when: "before", status: 503, times: 1000 });
      const lost = () => {
        try {
          return lease.nonce() === "";
        } catch {
          return true;
        }
      };
      await expect.poll(lost).toBe(true);
      lease.nonce();
    });
    await expect(work).rejects.toThrow(
      /our lease of Machine .* was lost while we worked.* could not be taken again: .*503/,
    );
    service.service.faults.clear();
  });

  test("our writes need the lease, and other clients are refused while we hold it", async () => {
    const key = await machine();
    await withLease(api, key, { description: "test", progress: silent }, async (lease) => {
      await expect(send(service, "POST", `${path(key)}/stop`)).rejects.toThrow(/409 .*lease currently held by/);
      await api.machines.stop({ ...key, leaseNonce: lease.nonce(), body: {} });
    });
  });
});
