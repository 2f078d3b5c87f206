// The rate limiter against a service with the documented limits, on a shared clock.
import { afterEach, describe, expect, test } from "vitest";
import { createApi } from "../../provider/client/api.ts";
import { systemClock } from "../../provider/client/clock.ts";
import { httpTransport } from "../../provider/client/transport.ts";
import { readConfig } from "../../provider/client/config.ts";
import { ManualClock } from "../../service/index.ts";
import { makeApp } from "../support/around.ts";
import { startService, type TestService } from "../support/startService.ts";

describe("pace", () => {
  let service: TestService<ManualClock>;
  afterEach(() => service.close());

  /** A client on the service's clock, which advances whenever no request is under way. */
  const limited = async (rateLimits: "documented" | "off") => {
    const clock = new ManualClock();
    service = await startService({ clock, rateLimits });
    await makeApp(service, "fleet");
    const settings: Record<string, string> = { endpoint: service.url, token: service.token };
    const transport = httpTransport();
    let underWay = 0;
    const statuses: (number | undefined)[] = [];
    /** Aborts at the first 429. */
    const cancel = new AbortController();
    const api = createApi({
      config: readConfig((key) => settings[key], {}),
      connect: () => Promise.resolve({ url: service.url, token: service.token }),
      transport: Object.assign(
        async (sent: Parameters<typeof transport>[0]) => {
          underWay++;
          return transport(sent).finally(() => underWay--);
        },
        { close: () => transport.close() },
      ),
      clock: {
        now: () => clock.now(),
        random: () => 0.5,
        every: systemClock.every,
        sleep: (milliseconds, signal) =>
          new Promise((resolve, reject) => {
            const back = clock.after(milliseconds, resolve);
            const stop = () => (back(), reject(signal?.reason as Error));
            if (signal?.aborted) stop();
            else signal?.addEventListener("abort", stop, { once: true });
          }),
      },
      onRequest: ({ status }) => {
        statuses.push(status);
        if (status === 429) cancel.abort(new Error("stopped"));
      },
    });
    /** Advances the clock until the work is done, and returns how many seconds it took. */
    const run = async (work: Promise<unknown>): Promise<number> => {
      const started = clock.now();
      let done = false;
      const ended = work.finally(() => (done = true));
      ended.catch(() => undefined);
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        if (done) break;
        if (underWay === 0) clock.advance(10);
      }
      await ended;
      return (clock.now() - started) / 1000;
    };
    const create = (name: string) =>
      api.machines.create({ appName: "fleet", body: { name, config: { image: "registry.example.com/a:1" } } });
    return { api, cancel, create, run, statuses };
  };

  test("a hundred creates in one App take the time that the limit demands, with few repeated requests", async () => {
    const { create, run, statuses } = await limited("documented");
    const seconds = await run(Promise.all(Array.from({ length: 100 }, (_, i) => create(`m-${i}`))));
    // Three at once, then one per second.
    expect(seconds).toBeGreaterThanOrEqual(97);
    expect(seconds).toBeLessThan(97 * 1.1);
    // All were sent at once before the limit was known; after that none was refused.
    expect(statuses.filter((status) => status === 429).length).toBeLessThanOrEqual(97);
    expect(statuses.filter((status) => status === 200)).toHaveLength(100);
  });

  test("requests are sent in order, and other actions are not delayed", async () => {
    const { api, create, run } = await limited("documented");
    const order: number[] = [];
    const creates = Array.from({ length: 8 }, (_, i) => create(`m-${i}`).then(() => order.push(i)));
    let listed = 0;
    const list = api.apps.get({ appName: "fleet" }).then(() => (listed = order.length));
    await run(Promise.all([...creates, list]));
    expect(order.slice(3)).toEqual([...order.slice(3)].sort((a, b) => a - b));
    expect(listed).toBeLessThan(8);
  });

  test("nothing waits if there are no limits", async () => {
    const { create, run } = await limited("off");
    expect(await run(Promise.all(Array.from({ length: 100 }, (_, i) => create(`m-${i}`))))).toBe(0);
  });

  test("a cancelled request gives up its place in the queue", async () => {
    const { api, cancel, create, run } = await limited("documented");
    const bound = api.within({ at: Number.POSITIVE_INFINITY, allowed: "no limit", signal: cancel.signal });
    const burst = Array.from({ length: 6 }, (_, i) => create(`m-${i}`));
    const body = { config: { image: "registry.example.com/a:1" } };
    const stopped = expect(bound.machines.create({ appName: "fleet", body })).rejects.toThrow("stopped");
    expect(await run(Promise.all([...burst, stopped]))).toBeLessThan(4);
  });
});
