// Services with delayed, incomplete or excessive answers: waits that end (F09), new objects not found yet (F13), incomplete
// lists (F14), pages (F16), slow deletions (F20).
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createApi, type Api } from "../../provider/client/api.ts";
import { systemClock } from "../../provider/client/clock.ts";
import { everyApp, everyCertificate, everyOrgMachine, everyOrgVolume, pages } from "../../provider/client/pages.ts";
import { httpTransport } from "../../provider/client/transport.ts";
import { waitForMachine } from "../../provider/client/wait.ts";
import { readConfig } from "../../provider/client/config.ts";
import { ManualClock } from "../../service/index.ts";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { startFaultProxy } from "../support/faultProxy.ts";
import { handled } from "../support/handled.ts";
import { jumpingClient } from "../support/jumpingClient.ts";
import { startService, type TestService } from "../support/startService.ts";

fc.configureGlobal({ seed: 1 });

const image = "registry.example.com/a:1";
const silent = (): void => undefined;
let service: TestService;
let app = "";
let count = 0;

beforeAll(async () => (service = await startService()));
afterAll(() => service.close());
afterEach(() => service.service.faults.clear());

const newApp = async () => (app = await makeApp(service, `seen-${++count}`));
const machines = () => send<{ id: string }[]>(service, "GET", `/v1/apps/${app}/machines`);

describe("F09 a long poll that ends early", () => {
  const jumping = async () => {
    const key = { appName: await newApp(), machineId: await makeMachine(service, app, { config: { image } }) };
    return { key, ...jumpingClient(service) };
  };
  const bound = (api: Api, seconds: number) =>
    api.within({ at: api.clock.now() + seconds * 1000, allowed: `${seconds}s` });
  const started = (api: Api, key: { appName: string; machineId: string }) =>
    waitForMachine(api, key, ["started"], { progress: silent });
  const waits = (sent: readonly string[]) => sent.filter((one) => one.startsWith("machines.wait"));

  test.each([
    ["408", { status: 408, body: { error: "deadline_exceeded: not yet" } }],
    ["504", { status: 504, body: "<html>gateway timeout</html>" }],
    ["a dropped connection", { status: "reset" }],
    ["an empty reply", { status: 200, body: "" }],
  ] as const)("F09 by %s, repeatedly: the wait continues until the state is reached", async (_, fault) => {
    const { key, api, clock, sent } = await jumping();
    service.fail({ operation: "machines.wait", when: "before", times: 20, ...fault });
    expect(await started(bound(api, 600), key)).toBe("started");
    expect(waits(sent)).toHaveLength(21);
    // A service that ends a poll at once is not polled again at once.
    expect(clock.slept.reduce((a, b) => a + b, 0)).toBeGreaterThan(2000);
  });

  test("F09 a state that is never reached is polled for at most 60 s each, and the wait ends at the deadline", async () => {
    const clock = new ManualClock();
    const held = await startService({ clock });
    const proxy = await startFaultProxy(held.url);
    try {
      await makeApp(held, "app");
      const key = { appName: "app", machineId: await makeMachine(held, "app", { config: { image } }) };
      const settings: Record<string, string> = { endpoint: proxy.url, token: held.token };
      const api = createApi({
        config: readConfig((name) => settings[name], {}),
        connect: () => Promise.resolve({ url: proxy.url, token: held.token }),
        transport: httpTransport({}),
        clock: { ...systemClock, now: () => clock.now() },
      });
      let end = "";
      void waitForMachine(bound(api, 150), key, ["suspended"], { progress: silent }).catch(
        (error: unknown) => (end = String(error)),
      );
      // As fast as the client sends: no time passes by itself.
      await expect
        .poll(() => {
          if (proxy.open() > 0) clock.advance(5000);
          return end;
        })
        .toMatch(/was not suspended within 150s\. It is started/);
      const holds = proxy.arrived
        .filter((request) => request.includes("/wait?"))
        .map((request) => Number(/timeout=(\d+)/.exec(request)?.[1]));
      expect(holds.length).toBeGreaterThanOrEqual(3);
      expect(Math.max(...holds)).toBe(60);
    } finally {
      await proxy.close();
      await held.close();
    }
  });

  test("F09 a create whose wait never succeeds keeps its id, and the next update continues", async () => {
    const type = handled("Machine", service, { jump: true, timeoutSeconds: 60 });
    service.fail({ operation: "machines.wait", when: "before", status: 504, times: "always" });
    const program = { app: await newApp(), config: { image } };
    const failed = await type.create(program).then(
      () => Promise.reject(new Error("it succeeded")),
      (error: unknown) => error as Error & { id: string; properties: Record<string, unknown> },
    );
    expect(failed).toMatchObject({ name: "InitializationFailed", id: expect.stringMatching(`^${app}/`) as unknown });
    expect(failed.message).toMatch(/was not started within 1m.*The next up continues from here/);
    service.service.faults.clear();
    const state = await type.update({ id: failed.id, state: failed.properties }, program);
    expect(state).toMatchObject({ state: "started" });
    expect(await machines()).toHaveLength(1);
  });
});

describe("F13 a Machine that is not found yet", () => {
  test.each(["machines.wait", "machines.get"])(
    "F13 a 404 from %s right after its creation is retried",
    async (operation) => {
      const type = handled("Machine", service, { jump: true });
      service.fail({ operation, when: "before", status: 404, times: 5, body: { error: "machine not found" } });
      const { id, state } = await type.create({ app: await newApp(), config: { image } });
      expect(state).toMatchObject({ state: "started" });
      expect((await machines()).map((machine) => `${app}/${machine.id}`)).toEqual([id]);
    },
  );

  test("F13 for ten seconds; then it counts as gone, and its id is kept", async () => {
    const type = handled("Machine", service, { jump: true });
    for (const operation of ["machines.wait", "machines.get"])
      service.fail({ operation, when: "before", status: 404, times: "always", body: { error: "machine not found" } });
    const before = service.requests.length;
    const error: unknown = await type
      .create({ app: await newApp(), config: { image } })
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: "InitializationFailed" });
    expect(String(error)).toMatch(/Machine .* is destroyed and not started: it is gone/);
    const asked = service.requests.slice(before).filter((seen) => seen.operation === "machines.wait");
    expect(asked.length).toBeGreaterThan(5);
    expect(asked.length).toBeLessThan(15);
  });

  test.each(["read", "update", "delete"] as const)(
    "F13 a 404 from the %s of another run soon afterwards forgets nothing",
    async (verb) => {
      const program = { app: await newApp(), config: { image } };
      const made = await handled("Machine", service, { jump: true }).create(program);
      for (const operation of ["machines.list", "machines.get"] as const) service.fail({ operation, hiddenForMs: 500 });
      const type = handled("Machine", service, { jump: false });
      if (verb === "read") expect(await type.read(made)).toMatchObject({ state: "started" });
      if (verb === "update")
        expect(await type.update(made, { ...program, cordoned: true })).toMatchObject({ cordoned: true });
      if (verb === "delete") await type.delete(made);
      service.service.faults.clear();
      expect(await machines()).toHaveLength(verb === "delete" ? 0 : 1);
    },
  );

  test("F13 a later 404 is final, and requested once", async () => {
    const type = handled("Machine", service, { jump: true });
    const made = await type.create({ app: await newApp(), config: { image } });
    const [live] = await machines();
    await send(service, "DELETE", `/v1/apps/${app}/machines/${live?.id ?? ""}?force=true`);
    service.fail({
      operation: "machines.get",
      when: "before",
      status: 404,
      times: "always",
      body: { error: "not found" },
    });
    const before = service.requests.length;
    const olderMachine = { ...made, state: { ...made.state, createdAt: "2026-01-01T00:00:00Z" } };
    expect(await type.read(olderMachine)).toBeUndefined();
    expect(service.requests.slice(before).filter((seen) => seen.operation === "machines.get")).toHaveLength(1);
  });
});

describe("F14 incomplete lists", () => {
  test.each([0, 1])(
    "F14 a list of Machines truncated to %i: no state is lost, and each is read by its id",
    async (keep) => {
      const type = handled("Machine", service, { jump: true });
      await newApp();
      const made = await Promise.all([1, 2, 3].map((i) => type.create({ app, name: `web-${i}`, config: { image } })));
      service.fail({ operation: "machines.list", list: { keep }, times: "always" });
      const read = await Promise.all(made.map((one) => type.read(one)));
      expect(read).toEqual(made.map(({ state }) => state));
    },
  );

  test("F14 an empty list of volumes, and a list of addresses that is empty once", async () => {
    const volumes = handled("Volume", service, { jump: true });
    const volume = await volumes.create({ app: await newApp(), region: "fra", sizeGb: 1 });
    const ips = handled("IpAssignment", service, { jump: true });
    const ip = await ips.create({ app, type: "v6" });
    service.fail(
      { operation: "volumes.list", list: { keep: 0 }, times: "always" },
      { operation: "ipAssignments.list", list: { keep: 0 } },
    );
    expect(await volumes.read(volume)).toEqual(volume.state);
    expect(await ips.read(ip)).toEqual(ip.state);
  });

  test("F14 an App that its organization's list omits is not forgotten while it answers", async () => {
    const type = handled("App", service, { jump: true });
    const made = await type.create({ name: `seen-${++count}` });
    service.fail({ operation: "apps.list", list: { keep: 0 }, times: "always" });
    expect(await type.read(made)).toEqual(made.state);
  });

  test("F14 an ambiguous create whose Machine the lists omit is not repeated", async () => {
    const type = handled("Machine", service, { jump: true });
    service.fail(
      { operation: "machines.create", when: "after", status: 503 },
      { operation: "machines.list", list: { keep: 0 }, times: 12 },
    );
    const { id } = await type.create({ app: await newApp(), name: "web", config: { image } });
    service.service.faults.clear();
    expect((await machines()).map((machine) => `${app}/${machine.id}`)).toEqual([id]);
  });
});

describe("F16 paged lists", () => {
  /** A service's list as pages of ids, each with the cursor of the next page. */
  const book = fc
    .record({
      sizes: fc.array(fc.nat(3), { minLength: 1, maxLength: 12 }),
      repeats: fc.array(fc.nat(20), { maxLength: 6 }),
      loop: fc.option(fc.nat(11), { nil: undefined }),
    })
    .map(({ sizes, repeats, loop }) => {
      let next = 0;
      const all = sizes.map((size, page) => ({
        ids: Array.from({ length: size }, () => next++),
        next: page + 1 < sizes.length ? `c${page + 1}` : loop === undefined ? undefined : `c${Math.min(loop, page)}`,
      }));
      // Objects that change meanwhile appear again on another page.
      for (const [i, id] of repeats.entries()) if (id < next) all[i % all.length]?.ids.push(id);
      return { all, ids: Array.from({ length: next }, (_, id) => id) };
    });

  test("F16 empty pages, repeated ids and circular cursors: all items are returned, and the list ends", async () => {
    await fc.assert(
      fc.asyncProperty(book, async ({ all, ids }) => {
        let asked = 0;
        const found = new Set<number>();
        const ask = (cursor: string | undefined) => {
          asked++;
          const page = all[Number(cursor?.slice(1) ?? 0)];
          return page ? Promise.resolve(page) : Promise.reject(new Error("no such page"));
        };
        for await (const page of pages(ask, (one) => one.next)) for (const id of page.ids) found.add(id);
        expect([...found].sort((a, b) => a - b)).toEqual(ids);
        // A circle may be read a second time, but no more.
        expect(asked).toBeLessThanOrEqual(all.length * 2);
      }),
    );
  });

  test("F16 an endless list ends with an error", async () => {
    let asked = 0;
    const ask = () => Promise.resolve({ next: `c${++asked}` });
    const read = async () => {
      for await (const page of pages(ask, ({ next }) => next)) void page;
    };
    await expect(read()).rejects.toThrow(/the service's list does not end: each of 10000 pages/);
    expect(asked).toBe(10_000);
  });

  test("F16 items repeated in another order and with repeated cursors are returned once", async () => {
    const whole = await startService();
    try {
      for (const name of ["one", "two", "three"]) await makeApp(whole, name);
      await makeMachine(whole, "one", { config: { image } });
      await makeVolume(whole, "one", "fra");
      await send(whole, "POST", "/v1/apps/one/certificates/acme", { hostname: "www.example.com" });
      const { api, sent } = jumpingClient(whole);
      for (const operation of ["apps.list", "certificates.list", "orgs.machines", "orgs.volumes"])
        whole.fail({ operation, list: { repeat: 2, reverse: true, next: "" }, times: 1 });
      const orgSlug = "personal";
      expect((await everyApp(api, { orgSlug })).map(({ name }) => name).sort()).toEqual(["one", "three", "two"]);
      expect(await everyCertificate(api, { appName: "one" })).toHaveLength(1);
      expect((await everyOrgMachine(api, { orgSlug })).machines).toHaveLength(1);
      expect(await everyOrgVolume(api, { orgSlug })).toHaveLength(1);
      expect(sent).toHaveLength(4);
    } finally {
      await whole.close();
    }
  });
});

describe("F20 a slow deletion", () => {
  const path = (id: string) => `/v1/apps/${app}/machines/${id.split("/")[1] ?? ""}`;

  test("F20 a Machine that remains after the answer is waited for until it is gone", async () => {
    const slow = await startService({ delays: "believable" });
    try {
      const type = handled("Machine", slow);
      const made = await type.create({ app: await makeApp(slow, "app"), config: { image } });
      await type.delete(made);
      expect(await type.read(made)).toBeUndefined();
      const last = slow.requests.findLast(({ operation }) => operation === "machines.wait");
      expect(last?.status).toBe(200);
    } finally {
      await slow.close();
    }
  });

  test("F20 a Machine that never disappears causes an error at the deadline, and stays in the state", async () => {
    const type = handled("Machine", service, { jump: true, timeoutSeconds: 60 });
    const made = await type.create({ app: await newApp(), config: { image } });
    service.fail(
      { operation: "machines.destroy", when: "before", status: 200, body: { ok: true } },
      { operation: "machines.wait", nth: 2, when: "before", status: 408, times: "always", body: { error: "not yet" } },
    );
    await expect(type.delete(made)).rejects.toThrow(/was not destroyed within 1m\. It is stopped/);
    service.service.faults.clear();
    await type.delete(made);
    expect(await machines()).toEqual([]);
  });

  test("F20 a 409 for a running Machine is final, and the error says what to do; the next try continues", async () => {
    const type = handled("Machine", service, { jump: true });
    const made = await type.create({ app: await newApp(), config: { image } });
    service.fail({
      operation: "machines.destroy",
      when: "before",
      status: 409,
      body: { error: "failed_precondition: unable to destroy machine, not currently stopped" },
    });
    await expect(type.delete(made)).rejects.toThrow(/machines\.destroy answered 409: .*not currently stopped/);
    expect(await send(service, "GET", path(made.id))).toMatchObject({ state: "stopped" });
    await type.delete(made);
    expect(await machines()).toEqual([]);
  });

  test("F20 forceDestroy kills a Machine that does not stop", async () => {
    const type = handled("Machine", service, { jump: true });
    const made = await type.create({ app: await newApp(), config: { image }, forceDestroy: true });
    service.fail({ operation: "machines.stop", when: "before", status: 409, body: { error: "it does not stop" } });
    await type.delete(made);
    expect(type.warnings.join()).toMatch(/it is killed, as forceDestroy allows/);
    expect(await machines()).toEqual([]);
  });

  test("F20 a deletion answered with 404 succeeded", async () => {
    const type = handled("Machine", service, { jump: true });
    const proxy = await startFaultProxy(service.url);
    try {
      const through = handled("Machine", { url: proxy.url, token: service.token }, { jump: true });
      const made = await type.create({ app: await newApp(), config: { image } });
      // Its answer is lost, and the second request gets 404.
      proxy.plan({ on: /^DELETE .*machines\/[^/]+$/, do: { cutAnswer: 0 } });
      await through.delete(made);
      expect(proxy.arrived.filter((one) => /^DELETE .*machines\/[^/]+$/.test(one)).length).toBeGreaterThan(1);
      expect(await machines()).toEqual([]);
    } finally {
      await proxy.close();
    }
  });
});
