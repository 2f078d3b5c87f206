// The client as scripts use it: creation, leases, waits, lists, limits.
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import {
  ApiError,
  createClient,
  eachApp,
  eachCertificate,
  eachOrgMachine,
  eachOrgVolume,
  isNotFound,
  MachinesError,
  NetworkError,
  pages,
  waitUntil,
  withLease,
  type Client,
} from "../../provider/client/index.ts";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { startService, type TestService } from "../support/startService.ts";

const config = { image: "registry.example.com/a:1" };
let service: TestService;
let client: Client;
let machine: string;
const at = () => ({ app: "shop", machine });

beforeAll(async () => {
  service = await startService();
  client = createClient({ endpoint: service.url, token: service.token });
  await makeApp(service, "shop");
  machine = await makeMachine(service, "shop", { region: "ams", config });
  await waitUntil(client, at());
});
afterEach(() => {
  vi.unstubAllEnvs();
  service.service.faults.clear();
});
afterAll(async () => {
  await client.close();
  await service.close();
});

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "no failure",
    (error: unknown) => error,
  );

describe("createClient", () => {
  test("missing options come from the environment, as for the provider", async () => {
    vi.stubEnv("MACHINES_ENDPOINT", `${service.url}/v1/`);
    vi.stubEnv("MACHINES_TOKEN", service.token);
    vi.stubEnv("MACHINES_ORGANIZATION", "others");
    const fromThere = createClient();
    expect([fromThere.endpoint, fromThere.organization]).toEqual([service.url, "others"]);
    expect(await fromThere.apps.get({ appName: "shop" })).toMatchObject({ name: "shop" });
    expect(createClient({ organization: "personal" }).organization).toBe("personal");
    await fromThere.close();
  });

  test.each([
    [{}, /no endpoint: give createClient an `endpoint`, or set MACHINES_ENDPOINT/],
    [{ endpoint: "https://example.com" }, /no access token: give createClient a `token`, or set MACHINES_TOKEN/],
    [{ endpoint: "example.com", token: "t" }, /createClient: endpoint: got "example.com"; must begin with http/],
    [{ endpoint: "https://example.com", token: "t", retries: 21 }, /createClient: retries: got "21"; must be a whole/],
  ])("createClient refuses invalid options: %j", (options, message) => {
    for (const name of ["ENDPOINT", "TOKEN"]) vi.stubEnv(`MACHINES_${name}`, "");
    expect(() => createClient(options)).toThrow(message);
    expect(() => createClient(options)).toThrow(MachinesError);
  });

  test("the error for a refused token names the token's source and does not quote it", async () => {
    const other = createClient({ endpoint: service.url, token: "wr0ng-t0ken" });
    const error = await failureOf(other.apps.get({ appName: "shop" }));
    expect(error).toMatchObject({ status: 401, operation: "apps.get" });
    expect(String(error)).toContain("The token from createClient is not known to the service, or has expired");
    expect(String(error)).not.toContain("wr0ng");
    await other.close();
  });

  test("failures have kinds, and are retried as in the provider", async () => {
    const missing = await failureOf(client.apps.get({ appName: "none" }));
    expect([missing instanceof ApiError, isNotFound(missing)]).toEqual([true, true]);
    service.fail({ operation: "apps.get", status: 503 });
    expect(await client.apps.get({ appName: "shop" })).toMatchObject({ name: "shop" });
    const nowhere = createClient({ endpoint: "http://127.0.0.1:1", token: "t", retries: 0 });
    const unreachable = await failureOf(nowhere.apps.get({ appName: "shop" }));
    expect(unreachable).toBeInstanceOf(NetworkError);
    expect(unreachable).toMatchObject({ code: "network", ambiguous: false });
    await nowhere.close();
  });

  test("it reconnects after close", async () => {
    await client.close();
    await client.close();
    expect(await client.apps.get({ appName: "shop" })).toMatchObject({ name: "shop" });
  });

  test("within: many calls, one limit", async () => {
    const limited = client.within({ timeoutSeconds: 60 }).within({ timeoutSeconds: 600 });
    expect(await limited.apps.get({ appName: "shop" })).toMatchObject({ name: "shop" });
    service.fail({ operation: "apps.get", status: 429, times: "always", headers: { "retry-after": "90" } });
    expect(await failureOf(limited.apps.get({ appName: "shop" }))).toMatchObject({ status: 429 });
    const stopped = new AbortController();
    const stoppable = client.within({ signal: stopped.signal }).within({ signal: new AbortController().signal });
    stopped.abort(new Error("enough"));
    await expect(stoppable.apps.get({ appName: "shop" })).rejects.toThrow("enough");
  });
});

describe("withLease", () => {
  const path = () => `/v1/apps/shop/machines/${machine}/lease`;
  const isHeld = async () =>
    !isNotFound(await failureOf(client.machines.getLease({ appName: "shop", machineId: machine })));

  test("withLease keeps the lease while the work runs and releases it, also when the work fails", async () => {
    const key = { appName: "shop", machineId: machine };
    const done = await withLease(
      client,
      { app: "shop", machine: `shop/${machine}` },
      { description: "deploying" },
      async (lease) => {
        expect((await client.machines.getLease(key)).data).toMatchObject({ description: "deploying" });
        await expect(client.machines.cordon(key)).rejects.toMatchObject({ status: 409 });
        await client.machines.cordon({ ...key, leaseNonce: lease.nonce() });
        return "done";
      },
    );
    expect([done, await isHeld(), (await client.machines.get(key)).cordoned]).toEqual(["done", false, true]);
    const failing = withLease(client, at(), { description: "x" }, () => Promise.reject(new Error("broke")));
    await expect(failing).rejects.toThrow("broke");
    expect(await isHeld()).toBe(false);
  });

  test("withLease waits for a lease of another client, reports that, and times out without mentioning up", async () => {
    const { data } = await send<{ data: { nonce: string } }>(service, "POST", path(), { ttl: 60, description: "mine" });
    const heard: string[] = [];
    const options = { description: "x", timeoutSeconds: 2, onProgress: (message: string) => heard.push(message) };
    const error = await failureOf(withLease(client, at(), options, () => Promise.resolve("never")));
    expect(error).toMatchObject({ code: "lease-held" });
    expect(String(error)).toMatch(
      /was not released within 2s: .*lease currently held by.* more time with timeoutSeconds/,
    );
    expect(heard.join()).toContain(`waiting for the lease of Machine ${machine}`);
    await send(service, "DELETE", path(), undefined, { "svc-machine-lease-nonce": data.nonce });
    expect(await withLease(client, at(), { ...options, ttlSeconds: 5 }, () => Promise.resolve("now"))).toBe("now");
  });
});

describe("waitUntil", () => {
  test("waitUntil returns the state that was reached and its version", async () => {
    const { version } = await client.machines.get({ appName: "shop", machineId: machine });
    expect(await waitUntil(client, at())).toEqual({ state: "started", version });
    expect(await waitUntil(client, at(), ["stopped", "started"], { version })).toEqual({ state: "started", version });
  });

  test("waitUntil continues when a proxy ends the wait early, and times out without mentioning up", async () => {
    service.fail({ operation: "machines.wait", status: 504 });
    expect(await waitUntil(client, at(), "started")).toMatchObject({ state: "started" });
    const error = await failureOf(waitUntil(client, at(), "stopped", { timeoutSeconds: 1 }));
    expect(error).toMatchObject({ code: "wait-timeout" });
    expect(String(error)).toMatch(
      /was not stopped within 1s. It is started; .* Allow it more time with timeoutSeconds/,
    );
  });

  test("waitUntil ends when it is cancelled", async () => {
    const stop = new AbortController();
    const waiting = waitUntil(client, at(), "destroyed", { signal: stop.signal });
    setImmediate(() => stop.abort(new Error("enough")));
    await expect(waiting).rejects.toThrow("enough");
  });

  test("a client object that was not created by createClient is refused", () => {
    expect(() => waitUntil({ ...client }, at())).toThrow(/not created by createClient/);
  });
});

test("lists are read to their end, one page at a time as needed", async () => {
  const volume = await makeVolume(service, "shop", "ams");
  await makeApp(service, "other");
  for (const hostname of ["a.example.test", "b.example.test", "c.example.test"])
    await client.certificates.createAcme({ appName: "shop", body: { hostname } });
  const all = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
    const found: T[] = [];
    for await (const item of items) found.push(item);
    return found;
  };
  const apps = await all(eachApp(client, { limit: 1 }));
  expect(apps.map(({ name }) => name).sort()).toEqual(["other", "shop"]);
  const hostnames = await all(eachCertificate(client, { appName: "shop", limit: 1 }));
  expect(hostnames.map(({ hostname }) => hostname).sort()).toEqual([
    "a.example.test",
    "b.example.test",
    "c.example.test",
  ]);
  expect((await all(eachOrgMachine(client, { limit: 1 }))).map(({ id }) => id)).toEqual([machine]);
  expect((await all(eachOrgVolume(client, { organization: "personal" }))).map(({ id }) => id)).toEqual([volume]);
  const before = service.requests.length;
  for await (const { hostname } of eachCertificate(client, { appName: "shop", limit: 1 })) if (hostname !== "") break;
  expect(service.requests.length).toBe(before + 1);
  const byHand = pages(
    (cursor) => client.certificates.list({ appName: "shop", limit: 2, cursor }),
    ({ nextCursor }) => nextCursor,
  );
  expect((await all(byHand)).map(({ certificates }) => certificates.length)).toEqual([2, 1]);
});
