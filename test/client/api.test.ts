// How the client handles failed, lost and malformed answers, tested with planned faults of the real service.
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { CircuitBreaker } from "../../provider/client/circuitBreaker.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Api } from "../../provider/client/api.ts";
import { NetworkError } from "../../provider/client/errors.ts";
import { jumpingClient, jumpingClock } from "../support/jumpingClient.ts";
import { makeApp } from "../support/around.ts";
import { startService, type TestService } from "../support/startService.ts";

const config = { image: "registry.example.com/a:1" };

describe("failures of the service", () => {
  let service: TestService;
  let api: Api;
  let sent: string[];

  beforeAll(async () => {
    service = await startService();
    await makeApp(service, "app");
  });
  afterAll(() => service.close());
  beforeEach(() => ({ api, sent } = jumpingClient(service)));
  afterEach(() => service.service.faults.clear());

  const create = (name: string) => api.machines.create({ appName: "app", body: { name, config } });
  const named = async (name: string) =>
    (await api.machines.list({ appName: "app" })).filter((machine) => machine.name === name);

  test.each([503, 500, 502] as const)(
    "a create answered %d after it was applied is never sent again (F03)",
    async (status) => {
      service.fail({ operation: "machines.create", when: "after", status });
      const error: unknown = await create(`after-${status}`).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ status, code: "ambiguous" });
      expect(String(error)).toMatch(/It may have taken effect/);
      expect(sent).toEqual([`machines.create ${status}`]);
      expect(await named(`after-${status}`)).toHaveLength(1);
    },
  );

  test("a create whose answer was truncated is never sent again (F01)", async () => {
    service.fail({ operation: "machines.create", when: "after", status: "reset" });
    const error: unknown = await create("cut").catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(NetworkError);
    expect(error).toMatchObject({ ambiguous: true });
    expect(sent).toEqual(["machines.create lost"]);
    expect(await named("cut")).toHaveLength(1);
  });

  test.each([500, 502, 503, "reset"] as const)("a read that failed with %s is repeated", async (status) => {
    service.fail({ operation: "machines.list", when: "before", status, times: 2 });
    await expect(api.machines.list({ appName: "app" })).resolves.toBeDefined();
    expect(sent).toHaveLength(3);
  });

  describe("an outage", () => {
    const many = Array.from({ length: 100 }, (_, i) => i);

    test("an outage does not multiply the load: one request is retried on behalf of all, then all fail (F05)", async () => {
      service.fail({ operation: "apps.get", when: "before", status: 503, times: "always" });
      const failed = await Promise.allSettled(many.map(() => api.apps.get({ appName: "app" })));
      expect(failed.filter(({ status }) => status === "rejected")).toHaveLength(100);
      // Each is sent once, plus the few retried before the breaker opened, plus the one that retries for all.
      expect(sent.length).toBeLessThanOrEqual(100 + 10 + 5);
      // A request sent soon afterwards does not start over.
      await expect(api.apps.get({ appName: "app" })).rejects.toThrow(/503/);
      expect(sent.length).toBeLessThanOrEqual(100 + 10 + 5 + 1);
      service.service.faults.clear();
      await api.apps.get({ appName: "app" });
      service.fail({ operation: "apps.get", when: "before", status: 503 });
      await api.apps.get({ appName: "app" });
    });

    test("an outage that passes causes no failure", async () => {
      service.fail({ operation: "apps.get", when: "before", status: 503, times: 102 });
      await Promise.all(many.map(() => api.apps.get({ appName: "app" })));
      expect(sent.length).toBeLessThanOrEqual(102 + 100);
    });

    test("an outage ends for a cancelled request while another one retries", async () => {
      const outage = new CircuitBreaker(jumpingClock());
      for (const _ of many) outage.failed();
      expect(await outage.mayRepeat({}, 1000, { at: Number.POSITIVE_INFINITY, allowed: "1h" })).toBe(true);
      const cancel = new AbortController();
      const { signal } = cancel;
      const waiting = outage.mayRepeat({}, 1000, { at: Number.POSITIVE_INFINITY, allowed: "1h", signal });
      cancel.abort(new Error("cancelled"));
      await expect(waiting).rejects.toThrow("cancelled");
    });
  });

  test("one operation does not send requests for ever", async () => {
    const bound = api.within({ at: Number.MAX_SAFE_INTEGER, allowed: "1h", requests: 500 });
    const asking = async () => {
      for (;;) await bound.apps.get({ appName: "app" });
    };
    await expect(asking()).rejects.toThrow(/500 requests were sent in the 1h/);
    expect(sent).toHaveLength(500);
  });

  test.each([400, 401, 403, 404, 409, 412, 422])("status %d is final", async (status) => {
    service.fail({ operation: "apps.get", when: "before", status, body: { error: "no" } });
    await expect(api.apps.get({ appName: "app" })).rejects.toMatchObject({ status, reason: "no" });
    expect(sent).toHaveLength(1);
  });

  test("errors have the operation, the status, the service's text and the request id", async () => {
    const error: unknown = await api.machines
      .get({ appName: "app", machineId: "00000000000000" })
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      status: 404,
      operation: "machines.get",
      requestId: expect.stringMatching(/.+/) as unknown,
    });
    expect(String(error)).toMatch(
      /machines\.get answered 404: .*machine not found.*GET http.*\/v1\/apps\/app\/machines\/00000000000000, request /,
    );
  });
});

describe("answers that cannot be used", () => {
  let server: Server;
  let answer: RequestListener;
  let api: Api;
  let url: string;
  let sent: string[];

  beforeAll(async () => {
    server = createServer((request, response) => answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => ({ api, sent } = jumpingClient({ url, token: "the-token" })));

  test("HTML is an error, with status 200 and with an error's status", async () => {
    answer = (_, response) => void response.writeHead(200, { "content-type": "text/html" }).end("<html>hello</html>");
    await expect(api.apps.get({ appName: "a" })).rejects.toThrow(
      /answered 200 with something that is not JSON: "<html>hello/,
    );
    answer = (_, response) =>
      void response.writeHead(404, { "content-type": "text/html" }).end("<html>not here</html>");
    await expect(api.apps.get({ appName: "a" })).rejects.toThrow(
      /answered 404: an HTML page; is the endpoint the base URL/,
    );
  });

  test("JSON of the wrong form produces an error that names the mismatch", async () => {
    answer = (_, response) => void response.end('{"apps":{"no":"list"}}');
    await expect(api.apps.list({ orgSlug: "personal" })).rejects.toThrow(/answer of the wrong form \(apps: /);
  });

  test("unusable JSON is not quoted, because it may contain secrets", async () => {
    for (const text of [
      '{"id":"m","config":{"env":{"A":"s3cr3t-canary"}}}',
      '[{"config":{"env":{"A":"s3cr3t-canary',
      '{"surprise":"s3cr3t-canary"}',
    ]) {
      answer = (_, response) => void response.end(text);
      const error: unknown = await api.machines
        .get({ appName: "a", machineId: "m" })
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(NetworkError);
      expect(String(error)).not.toContain("canary");
    }
    answer = (_, response) => void response.writeHead(500).end('{"trace":"s3cr3t-canary"}');
    await expect(api.machines.stop({ appName: "a", machineId: "m", body: {} })).rejects.toThrow(
      /answered 500: \d+ characters of JSON/,
    );
  });

  test("actions without a result may answer anything", async () => {
    answer = (_, response) => void response.end("OK");
    await expect(api.machines.stop({ appName: "a", machineId: "m", body: {} })).resolves.toBeUndefined();
    answer = (_, response) => void response.end("<html>hello</html>");
    await expect(api.apps.create({ body: { name: "a", orgSlug: "personal" } })).rejects.toThrow(/is not JSON: "<html>/);
  });

  test("nulls, unknown fields and numeric durations are not errors", async () => {
    answer = (_, response) =>
      void response.end(
        '{"id":"m","state":"started","config":{"image":"x","env":null,"new_one":1,"stop_config":{"timeout":5000000000}},"checks":null,"surprise":{}}',
      );
    expect(await api.machines.get({ appName: "a", machineId: "m" })).toMatchObject({
      id: "m",
      config: { image: "x", new_one: 1, stopConfig: { timeout: "5s" } },
    });
  });

  test("a closed port is retried for any request, and the error names the address", async () => {
    const closed = jumpingClient({ url: "http://127.0.0.1:1", token: "t" });
    await expect(closed.api.apps.create({ body: { name: "a", orgSlug: "personal" } })).rejects.toThrow(
      /apps\.create: no answer from POST http:\/\/127\.0\.0\.1:1\/v1\/apps: .*ECONNREFUSED/,
    );
    expect(closed.sent).toHaveLength(6);
  });

  test("the token is sent unchanged and appears in no error", async () => {
    let authorization: string | undefined;
    answer = (request, response) => {
      ({ authorization } = request.headers);
      response.writeHead(500).end();
    };
    const error: unknown = await api.apps
      .create({ body: { name: "a", orgSlug: "personal" } })
      .catch((reason: unknown) => reason);
    expect(authorization).toBe("Bearer the-token");
    expect(`${String(error)} ${JSON.stringify(error)}`).not.toContain("the-token");
    expect(sent).toHaveLength(1);
  });

  test("a path in the endpoint is a prefix", async () => {
    let asked = "";
    answer = (request, response) => {
      asked = request.url ?? "";
      response.end('{"regions":[]}');
    };
    const { api: prefixed } = jumpingClient({ url: `${url}/some/prefix`, token: "t" });
    await prefixed.platform.regions({});
    expect(asked).toBe("/some/prefix/v1/platform/regions");
  });

  test("the star of a wildcard hostname is encoded", async () => {
    let asked = "";
    answer = (request, response) => {
      asked = request.url ?? "";
      response.end('{"hostname":"*.example.com"}');
    };
    await api.certificates.get({ appName: "a", hostname: "*.example.com" });
    expect(asked).toBe("/v1/apps/a/certificates/%2A.example.com");
  });
});
