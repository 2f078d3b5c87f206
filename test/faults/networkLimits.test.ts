// Services that refuse temporarily (F04, F05) or permanently (F21): which refusals are retried, and how often.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Api } from "../../provider/client/api.ts";
import { ApiError } from "../../provider/client/errors.ts";
import { ManualClock } from "../../service/index.ts";
import { addToken } from "../../service/store/tokens.ts";
import { makeApp } from "../support/around.ts";
import { handled } from "../support/handled.ts";
import { jumpingClient } from "../support/jumpingClient.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/a:1";
let service: TestService;
beforeAll(async () => {
  service = await startService();
  await makeApp(service, "app");
});
afterAll(() => service.close());
afterEach(() => service.service.faults.clear());

/** The error's message; @throws when there is none. */
const messageOf = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => Promise.reject(new Error("it succeeded")),
    (error: unknown) => String(error),
  );

describe("F04 a rate limit with Retry-After", () => {
  const limit = (header: string, times = 1) =>
    service.fail({
      operation: "machines.create",
      when: "before",
      status: 429,
      times,
      headers: { "retry-after": header },
      body: { error: "rate limit exceeded" },
    });
  const create = (api: Api) => api.machines.create({ appName: "app", body: { config: { image } } });

  test.each([
    ["seconds", () => "7", 7000],
    ["a date", (now: number) => new Date(now + 7000).toUTCString(), 7000],
    ["a date in the past", (now: number) => new Date(now - 7000).toUTCString(), 0],
    ["nothing", () => "0", 0],
    // Half of the first backoff step, according to the clock's random numbers, which is its minimum.
    ["a negative number", () => "-5", 150],
    ["nonsense", () => "soon", 150],
  ] as const)("F04 %s: nothing is sent before that time", async (_, header, milliseconds) => {
    const { api, clock, sent } = jumpingClient(service);
    limit(header(clock.now()));
    await create(api);
    expect(sent).toEqual(["machines.create 429", "machines.create 200"]);
    const slept = clock.slept.reduce((a, b) => a + b, 0);
    // A date has no milliseconds.
    expect(slept).toBeGreaterThan(milliseconds - 1000);
    expect(slept).toBeLessThanOrEqual(milliseconds);
  });

  test.each(["61", "1000000000"])("F04 %s s, longer than the operation's deadline: fails at once", async (header) => {
    const { api, clock, sent } = jumpingClient(service);
    limit(header, 100);
    const bound = api.within({ at: clock.now() + 60_000, allowed: "1m" });
    const message = await messageOf(create(bound));
    expect(message).toMatch(/machines\.create answered 429: rate limit exceeded \(POST .*\/machines, request .*\)/);
    expect(message).toContain(`still limits requests (Retry-After: ${header}); try again later`);
    expect(sent).toHaveLength(1);
    expect(clock.slept).toEqual([]);
  });

  test("F04 other operations continue meanwhile", async () => {
    await makeApp(service, "other");
    const { api, sent } = jumpingClient(service);
    limit("1000000000");
    const bound = api.within({ at: api.clock.now() + 60_000, allowed: "1m" });
    const [limited, ...others] = await Promise.allSettled([
      create(bound),
      bound.apps.list({ orgSlug: "personal" }),
      bound.machines.list({ appName: "app" }),
      bound.machines.create({ appName: "other", body: { config: { image } } }),
    ]);
    expect(limited.status).toBe("rejected");
    expect(others.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
    expect(sent.filter((one) => one.endsWith("429"))).toHaveLength(1);
  });

  test("F04 a repeated limit is waited for until the retries are used up", async () => {
    const { api, clock, sent } = jumpingClient(service);
    limit("3", 100);
    await expect(create(api)).rejects.toBeInstanceOf(ApiError);
    expect(sent).toHaveLength(6);
    expect(clock.slept.reduce((a, b) => a + b, 0)).toBeGreaterThanOrEqual(15_000);
  });
});

describe("F05 a series of 429 without Retry-After", () => {
  test("F05 all calls together stay within their retries, with growing pauses, and end", async () => {
    const { api, clock, sent } = jumpingClient(service);
    service.fail({ when: "before", status: 429, times: "always" });
    const began = clock.now();
    const works = Array.from({ length: 20 }, (_, i) => [
      api.apps.get({ appName: `app-${i}` }),
      api.machines.create({ appName: `app-${i}`, body: { config: { image } } }),
      api.volumes.list({ appName: `app-${i}` }),
    ]).flat();
    const ends = await Promise.allSettled(works);
    expect(ends.every((end) => end.status === "rejected" && end.reason instanceof ApiError)).toBe(true);
    expect(sent).toHaveLength(60 * 6);
    expect(clock.now() - began).toBeGreaterThan(1000);
  });

  test("F05 a resource fails with one error that names the limit and what to do", async () => {
    service.fail({ when: "before", status: 429, times: "always" });
    const message = await messageOf(handled("App", service, { jump: true }).create({ name: "stormy" }));
    expect(message).toMatch(
      /apps\.get answered 429: .*GET http.*still limits requests; try again later, or with a smaller --parallel/,
    );
  });
});

describe("F21 a token that is no longer valid", () => {
  const source = "machines:token";

  test.each([
    [401, /not known to the service, or has expired\. Set a new one/],
    [
      403,
      /may not do this: it is for another organization, App or network, or its role is too low \(machines:organization is personal\)/,
    ],
  ])(
    "F21 a request that is answered %d during a run is not sent again, and the message names the token's source",
    async (status, hint) => {
      const type = handled("Machine", service, { jump: true });
      const made = await type.create({ app: "app", name: `refused-${status}`, config: { image } });
      const before = service.requests.length;
      service.fail({ when: "before", status, times: "always", body: { error: `token ${service.token} is not good` } });
      for (const work of [
        () => type.read(made),
        () => type.update(made, { app: "app", config: { image, env: { A: "1" } } }),
        () => type.delete(made),
        () => type.create({ app: "app", config: { image } }),
      ]) {
        const message = await messageOf(work());
        expect(message).toMatch(new RegExp(`answered ${status}: token \\[token\\] is not good`));
        expect(message).toMatch(hint);
        expect(message).toContain(source);
        expect(message).not.toContain(service.token);
      }
      const asked = service.requests.slice(before).map(({ method, path }) => `${method} ${path}`);
      // One request each: the initial list or lease, or the create.
      expect(asked).toHaveLength(4);
    },
  );

  test("F21 a token that expires during a create of a Machine: its id is kept, and a new token repairs it", async () => {
    const type = handled("Machine", service, { jump: true });
    service.fail({
      operation: "machines.wait",
      when: "before",
      status: 401,
      times: "always",
      body: { error: "expired" },
    });
    const error: unknown = await type
      .create({ app: "app", name: "half", config: { image } })
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: "InitializationFailed", id: expect.stringMatching(/^app\//) as unknown });
    expect(String(error)).toMatch(/machines\.wait answered 401: expired .*machines:token/);
  });

  test("F21 a token that expires between two requests is refused from then on", async () => {
    const clock = new ManualClock();
    const lasting = await startService({ clock });
    try {
      await makeApp(lasting, "app");
      const passing = { url: lasting.url, token: "passing-token-0123456789" };
      const now = clock.now();
      addToken(lasting.service.context.store, passing.token, { slug: "personal", expiresAt: now + 60_000 }, now);
      const { api, sent } = jumpingClient(passing);
      const { id } = await api.machines.create({ appName: "app", body: { config: { image } } });
      clock.advance(60_000);
      const message = await messageOf(api.machines.get({ appName: "app", machineId: id }));
      expect(message).toMatch(/machines\.get answered 401.*machines:token is not known to the service, or has expired/);
      expect(message).not.toContain(passing.token);
      expect(sent).toEqual(["machines.create 200", "machines.get 401"]);
    } finally {
      await lasting.close();
    }
  });
});
