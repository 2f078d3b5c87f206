import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { untilActive } from "../../provider/certificates/certificateValidation.ts";
import { setDns } from "../../service/runtime/dns.ts";
import { bind, type Bound } from "../support/binding.ts";
import { makeApp, send } from "../support/around.ts";
import { jumpingClient } from "../support/jumpingClient.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { startService, type TestService } from "../support/startService.ts";

const ask = (service: TestService, app: string, hostname: string) =>
  send(service, "POST", `/v1/apps/${app}/certificates/acme`, { hostname });

lifecycle("CertificateValidation", {
  // The hostname is not changed.
  survives: "untouched",
  writeOnly: ["triggers"],
  given: async (service) => {
    for (const [app, hostname] of [
      ["life-valid", "www.example.com"],
      ["life-valid", "app.example.com"],
      ["other-valid", "other.example.com"],
    ] as const) {
      await makeApp(service, app).catch(() => undefined);
      await ask(service, app, hostname);
    }
    return { app: "life-valid", hostname: "life-valid/www.example.com", triggers: { certificate: "one" } };
  },
  changes: () =>
    Promise.resolve([
      { set: { triggers: { certificate: "two" } }, expect: "update" },
      { set: { triggers: undefined }, expect: "update" },
      { set: { app: "other-valid" }, expect: "replace", diffOnly: true },
      { set: { hostname: "life-valid/app.example.com" }, expect: "replace" },
      // A hostname belongs to one App at a time.
      { set: { app: "other-valid", hostname: "other-valid/other.example.com" }, expect: "replace" },
    ]),
  steady: { triggers: "the program's alone" },
});

describe("CertificateValidation", () => {
  let service: TestService;
  let validation: Bound;
  beforeAll(async () => {
    service = await startService();
    validation = bind("CertificateValidation", service);
    await makeApp(service, "app");
  });
  afterAll(() => service.close());

  const key = (hostname: string) => ({ appName: "app", hostname });
  const wait = async (hostname: string, create: string) => {
    const news = { app: "app", hostname, __context: { name: "v", timeouts: { create } } };
    return validation.create((await validation.check({}, news)).inputs);
  };
  const within = ({ api, clock }: ReturnType<typeof jumpingClient>, minutes: number) =>
    api.within({ at: clock.now() + minutes * 60_000, allowed: `${minutes}m` });
  const asked = (sent: readonly string[]) => sent.filter((request) => request.includes("check")).length;

  test("on timeout the error says what is wrong and what to do, and nothing is created", async () => {
    await ask(service, "app", "www.example.invalid");
    await expect(wait("www.example.invalid", "2s")).rejects.toThrow(
      /www\.example\.invalid of App app did not become active within 2s: it is pending_validation\. www\.example\.invalid does not lead to the app\. Create a CNAME record .* Nothing was created/,
    );
  });

  test("it waits until the DNS is corrected, and then requests a check itself", async () => {
    const hostname = "later.example.com";
    const { store } = service.service.context;
    setDns(store, hostname, {});
    await ask(service, "app", hostname);
    const client = jumpingClient(service);
    const said: string[] = [];
    const progress = (message: string) => {
      said.push(message);
      setDns(store, hostname, undefined);
    };
    expect((await untilActive({ api: within(client, 30), progress }, key(hostname))).status).toBe("active");
    expect(said[0]).toMatch(
      /^waiting for later\.example\.com: it is pending_validation\. later\.example\.com does not lead/,
    );
    expect(asked(client.sent)).toBe(2);
  });

  test("it requests at most five DNS checks in half an hour", async () => {
    const hostname = "never.example.invalid";
    await ask(service, "app", hostname);
    const client = jumpingClient(service);
    const waiting = untilActive({ api: within(client, 30), progress: () => undefined }, key(hostname));
    await expect(waiting).rejects.toThrow(/cannot become active in time: .*The time limit of 30m ends before that/s);
    expect(asked(client.sent)).toBeLessThanOrEqual(5);
    // Until then it reads every few seconds, because another client may have requested a check.
    expect(client.sent.length).toBeGreaterThan(asked(client.sent) * 10);
  });

  test("no check is requested while the service demands a pause, and the message says how long", async () => {
    const hostname = "limited.example.invalid";
    await ask(service, "app", hostname);
    for (let i = 0; i < 4; i++) await send(service, "POST", `/v1/apps/app/certificates/${hostname}/check`);
    const short = jumpingClient(service);
    await expect(untilActive({ api: within(short, 30), progress: () => undefined }, key(hostname))).rejects.toThrow(
      /The service accepts no further check before \d{4}-.*Z\./,
    );
    // The pause ends after the deadline, so waiting is pointless.
    expect(short.clock.slept).toEqual([]);
    const long = jumpingClient(service);
    const until = long.clock.now() + 55 * 60_000;
    const atCheck: number[] = [];
    const api = within(long, 90);
    const { check } = api.certificates;
    const watched = {
      ...api,
      certificates: {
        ...api.certificates,
        check: (args: Parameters<typeof check>[0]) => (atCheck.push(long.clock.now()), check(args)),
      },
    };
    await expect(untilActive({ api: watched, progress: () => undefined }, key(hostname))).rejects.toThrow(
      /within 1?h?90m|90m/,
    );
    expect(atCheck.length).toBeGreaterThan(1);
    expect(atCheck.slice(1).every((at) => at > until)).toBe(true);
  });

  test("a validation whose certificate is no longer active is gone, and the next up waits again", async () => {
    const hostname = "lapsed.example.com";
    await ask(service, "app", hostname);
    const { id, state } = await wait(hostname, "20s");
    expect(state).toMatchObject({ status: "active", expiresAt: expect.any(String) });
    await send(service, "DELETE", `/v1/apps/app/certificates/${hostname}/acme`);
    expect(await validation.read(id, state)).toBeUndefined();
  });

  test("deletion sends no request", async () => {
    const before = service.requests.length;
    await validation.delete("app/www.example.com", {});
    expect(service.requests.length).toBe(before);
  });
});
