// Hostile and extreme input: names with paths (F34), text that could become headers or queries (F35), redirecting servers
// (F36), and programs too large or with unknown values (F38).
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer, request as httpRequest, type Server } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import type { Sent, Transport } from "../../provider/client/transport.ts";
import { readConfig } from "../../provider/client/config.ts";
import { MachinesError } from "../../provider/client/errors.ts";
import { resources } from "../../provider/registry.ts";
import { addToken } from "../../service/store/tokens.ts";
import { makeApp } from "../support/around.ts";
import { bind } from "../support/binding.ts";
import { drive, urnOf } from "../support/driver.ts";
import { handled } from "../support/handled.ts";
import { jumpingClient, noIntents } from "../support/jumpingClient.ts";
import { startPlugin } from "../support/plugin.ts";
import { toStruct, unknown, type Properties } from "../support/properties.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";

fc.configureGlobal({ seed: 1 });

const image = "registry.example.com/a:1";

/** A client that sends nothing, and the requests it would have sent. */
function unsent() {
  const sent: Sent[] = [];
  const transport: Transport = Object.assign(
    (request: Sent) => {
      sent.push(request);
      return Promise.resolve({ kind: "answer", status: 404, headers: {}, text: "" } as const);
    },
    { close: () => Promise.resolve() },
  );
  const url = "http://127.0.0.1:4280";
  const { api } = jumpingClient({ url, token: "t" }, noIntents, { transport, settings: { retries: "0" } });
  const call = (row: Operation, args: Record<string, unknown>): Promise<unknown> => {
    const [group = "", method = ""] = row.id.split(".");
    const methods = api as unknown as Record<string, Record<string, (args: unknown) => Promise<unknown>>>;
    return (methods[group]?.[method]?.(args) ?? Promise.reject(new Error("no such operation"))).catch(
      (error: unknown) => error,
    );
  };
  return { sent, call };
}

const rows = new Map(
  Object.values(contract)
    .flatMap((group): Operation[] => Object.values(group))
    .map((row) => [row.id, row]),
);
const camel = (name: string): string => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** The text as it is transferred: a lone surrogate is not encodable. */
const wholeOf = (text: string): string => Buffer.from(text).toString();

/** Text with a special meaning in some part of the transfer. */
const evil = fc.oneof(
  { arbitrary: fc.string({ unit: "binary" }), weight: 2 },
  fc
    .array(fc.constantFrom(..."./\\%?#&=:@; \r\n\t\u0000*é\ud800".split(""), "..", "%2e", "%2F", "%00", "a", "www."), {
      minLength: 1,
      maxLength: 8,
    })
    .map((parts) => parts.join("")),
  fc.constantFrom("..", ".", "%2e%2e", "../x", "a/b", "..%2f..", "//evil.example", "x".repeat(1_000_000)),
);

describe("F34 names with paths", () => {
  test("F34 every operation refuses a name, or keeps it as one segment of its path", async () => {
    const { sent, call } = unsent();
    const named = [...rows.values()].filter((row) => Object.keys(row.params.shape).length > 0);
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...named.map(({ id }) => id)), evil, fc.nat(3), async (id, text, at) => {
        const row = rows.get(id) as Operation;
        const names = Object.keys(row.params.shape);
        const bad = names[at % names.length] ?? "";
        const good = (name: string) => (name === "hostname" ? "www.example.com" : "app");
        const args = Object.fromEntries(names.map((name) => [camel(name), name === bad ? text : good(name)]));
        sent.length = 0;
        const outcome = await call(row, args);
        if (sent.length === 0) {
          expect(outcome).toMatchObject({ name: "MachinesError", code: "invalid-input" });
          expect(String(outcome).length).toBeLessThan(500);
          return;
        }
        const { pathname } = new URL(sent[0]?.url ?? "");
        const expected = row.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === bad ? "*" : good(name)));
        const [before = "", after = ""] = `/v1${expected.replace(/^\/v1/, "")}`.split("*");
        expect(pathname.startsWith(before)).toBe(true);
        expect(pathname.endsWith(after)).toBe(true);
        const segment = pathname.slice(before.length, pathname.length - after.length);
        expect(segment).not.toContain("/");
        expect(decodeURIComponent(segment)).toBe(text);
      }),
      { numRuns: 3000 },
    );
  });

  test("F34 the service refuses a name that passed a client, and touches no file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "machines-names-"));
    const service = await startService({ data: join(folder, "data") });
    try {
      // Refused requests are in the history.
      const listed = () =>
        readdirSync(folder, { recursive: true })
          .map(String)
          .filter((name) => !name.startsWith("data/history.db"))
          .sort();
      const before = listed();
      const paths = [...rows.values()].filter(({ path }) => path.includes("{"));
      const segment = fc.oneof(
        evil.map((text) => encodeURIComponent(wholeOf(text))),
        evil.map((text) => text.replaceAll(/[\s\u0000]/g, "%00").slice(0, 3000)),
      );
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...paths.map(({ id }) => id)), segment, async (id, text) => {
          const row = rows.get(id) as Operation;
          const path = row.path.replaceAll(/\{\w+\}/g, () => text).slice(0, 20_000);
          const { status, body } = await raw(
            service.url,
            `${row.method} /v1${path.replace(/^\/v1/, "")} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${service.token}\r\nConnection: close\r\n\r\n`,
          );
          expect(status).toBeGreaterThanOrEqual(200);
          expect(status).toBeLessThan(500);
          expect(body).not.toMatch(/at .*\.ts:|node:internal/);
        }),
        { numRuns: 400 },
      );
      expect(listed()).toEqual(before);
      expect(existsSync(join(folder, "x"))).toBe(false);
    } finally {
      await service.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("F34 a manipulated id in a state causes no other request", async () => {
    const service = await startService();
    try {
      const bound = bind("Machine", service);
      for (const id of [
        "app/../other",
        "app/..",
        "app/%2e%2e",
        "../app/x",
        "app/a\u0000b",
        "app",
        `app/${"x".repeat(1e6)}`,
      ])
        await expect(bound.read(id, {})).rejects.toThrow(/has the form <app>\/<machineId>/);
      expect(service.requests).toEqual([]);
    } finally {
      await service.close();
    }
  });
});

/** Sends raw bytes; returns the answer's status and body. */
function raw(url: string, request: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    let text = "";
    socket.setEncoding("latin1").on("data", (part: string) => (text += part));
    socket.on("error", (error: NodeJS.ErrnoException) => (error.code === "ECONNRESET" ? undefined : reject(error)));
    socket.on("close", () =>
      resolve({
        status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]),
        body: text.slice(text.indexOf("\r\n\r\n") + 4),
      }),
    );
    socket.write(request);
  });
}

describe("F35 text that could become a header or a query", () => {
  const split = ["a\r\nx-evil: 1", "a\nb", "a\rb", "a\u0000b", "a\u007fb", "tökén", " "];

  test.each(split)("F35 a token like %j is refused before anything is sent", (token) => {
    const read = () => readConfig((key) => ({ endpoint: "http://127.0.0.1:1", token })[key], {});
    expect(read).toThrow(MachinesError);
    expect(read).toThrow(/^machines:token: the token contains a line break or another character that no token has/);
  });

  test.each(["x-nonce: 1\r\nx-evil", "a b", "", "x".repeat(100)])(
    "F35 a lease header like %j is refused too",
    (leaseHeader) => {
      const settings: Record<string, string> = { endpoint: "http://127.0.0.1:1", token: "t", leaseHeader };
      if (leaseHeader === "")
        expect(readConfig((key) => settings[key], {}).leaseHeader).toBe("svc-machine-lease-nonce");
      else
        expect(() => readConfig((key) => settings[key], {})).toThrow(
          /machines:leaseHeader.*must be the name of an HTTP header/,
        );
    },
  );

  test("F35 a nonce is refused too, in every operation that has one", async () => {
    const { sent, call } = unsent();
    const leased = [...rows.values()].filter(({ lease }) => lease !== undefined);
    expect(leased.length).toBeGreaterThan(5);
    for (const row of leased)
      for (const leaseNonce of split) {
        const names = Object.keys(row.params.shape);
        const args = { ...Object.fromEntries(names.map((name) => [camel(name), "app"])), leaseNonce, body: {} };
        const outcome = await call(row, args);
        expect(outcome).toMatchObject({ name: "MachinesError", code: "invalid-input" });
        expect(String(outcome)).toMatch(new RegExp(`${row.id}: the lease's nonce`));
        expect(String(outcome)).not.toContain(leaseNonce.trim() || "never");
      }
    expect(sent).toEqual([]);
  });

  test("F35 nothing is written to a service that answers such a nonce", async () => {
    const service = await startService();
    try {
      await makeApp(service, "app");
      const type = handled("Machine", service, { jump: true });
      const made = await type.create({ app: "app", config: { image } });
      service.fail({
        operation: "machines.acquireLease",
        when: "after",
        rewrite: (body) => ({ ...(body as object), data: { nonce: "a\r\nauthorization: Bearer x" }, nonce: undefined }),
      });
      const before = service.requests.length;
      await expect(type.update(made, { app: "app", config: { image, env: { A: "1" } } })).rejects.toThrow(
        /machines\.update: the lease's nonce contains a character that is not allowed in a header/,
      );
      const written = service.requests
        .slice(before)
        .filter(isWrite)
        .map(({ operation }) => operation);
      expect(written).toEqual(["machines.acquireLease"]);
    } finally {
      await service.close();
    }
  });

  test("F35 a query parameter stays one value, whatever it contains", async () => {
    const { sent, call } = unsent();
    await fc.assert(
      fc.asyncProperty(evil, async (text) => {
        fc.pre(text.length < 10_000);
        sent.length = 0;
        const row = rows.get("orgs.machines") as Operation;
        await call(row, { orgSlug: "personal", region: text, cursor: text });
        const query = new URL(sent[0]?.url ?? "").searchParams;
        expect([...query.keys()].sort()).toEqual(["cursor", "region"]);
        expect(query.get("region")).toBe(wholeOf(text));
      }),
      { numRuns: 500 },
    );
  });
});

describe("F36 redirecting servers", () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });
  const listening = async (server: Server): Promise<string> => {
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };

  test.each([301, 302, 303, 307, 308])(
    "F36 a %d to another port is not followed, and nothing arrives there",
    async (status) => {
      const visits: (string | undefined)[] = [];
      const elsewhere = await listening(
        createServer((request, response) => {
          visits.push(request.headers.authorization);
          response.end("{}");
        }),
      );
      const url = await listening(
        createServer((request, response) => {
          request.resume();
          response.writeHead(status, { location: `${elsewhere}/v1/apps/app` }).end();
        }),
      );
      const { api, sent } = jumpingClient({ url, token: "canary" });
      for (const work of [
        () => api.apps.get({ appName: "app" }),
        () => api.apps.create({ body: { name: "app", orgSlug: "personal" } }),
      ]) {
        const error: unknown = await work().catch((reason: unknown) => reason);
        expect(String(error)).toMatch(
          new RegExp(`answered ${status} to ${elsewhere}/v1/apps/app: .*Redirects are not followed; set the endpoint`),
        );
        expect(String(error)).not.toContain("canary");
      }
      expect(sent).toHaveLength(2);
      expect(visits).toEqual([]);
    },
  );

  test("F36 the service refuses a foreign host name that resolves to this computer, with any token", async () => {
    const service = await startService();
    try {
      const { hostname, port } = new URL(service.url);
      const asked = (host: string) =>
        new Promise<number | undefined>((resolve, reject) => {
          const headers = { host, authorization: `Bearer ${service.token}` };
          httpRequest({ hostname, port, path: "/v1/platform/regions", headers }, (answer) => {
            answer.resume();
            resolve(answer.statusCode);
          })
            .on("error", reject)
            .end();
        });
      for (const host of [
        "rebound.example",
        `rebound.example:${port}`,
        "127.0.0.1.rebound.example",
        "localhost.",
        "0.0.0.0",
      ])
        expect([host, await asked(host)]).toEqual([host, 403]);
      expect(await asked(`127.0.0.1:${port}`)).toBe(200);
    } finally {
      await service.close();
    }
  });
});

describe("F38 programs that are too large, or have unknown values", () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService();
    await makeApp(service, "app");
  });
  afterAll(() => service.close());

  test("F38 a preview of any type with unknown inputs writes nothing, with a read-only token", async () => {
    const token = "may-only-read-0123456789";
    addToken(service.service.context.store, token, { slug: "personal", role: "read", expiresAt: null }, Date.now());
    const plugin = await startPlugin();
    try {
      const args = toStruct({ endpoint: service.url, token, retries: 0 });
      await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
      const before = service.requests.length;
      for (const [type, { inputFields }] of Object.entries(resources)) {
        const resource = drive(plugin.client, urnOf(type, "unknown"));
        const program: Properties = Object.fromEntries(Object.keys(inputFields).map((name) => [name, unknown()]));
        const { inputs, failures } = await resource.check(program, { preview: true });
        expect([type, failures]).toEqual([type, []]);
        const previewed = await resource.previewCreate(inputs);
        expect([type, previewed.id]).toEqual([type, expect.any(String)]);
      }
      expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
    } finally {
      await plugin.close();
    }
  });

  test("F38 a configuration of 8 MB results in one clear error, and nothing is created", async () => {
    const type = handled("Machine", service, { jump: true });
    const before = service.requests.length;
    const env = { BIG: "x".repeat(8 * 2 ** 20) };
    const error: unknown = await type
      .create({ app: "app", name: "big", config: { image, env } })
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(MachinesError);
    expect(String(error)).toMatch(/machines\.create.*413|larger than/);
    expect(String(error).length).toBeLessThan(1000);
    expect(
      service.requests.slice(before).filter(({ operation }) => operation === "machines.create").length,
    ).toBeLessThan(2);
    const { api } = jumpingClient(service);
    expect((await api.machines.list({ appName: "app" })).filter(({ name }) => name === "big")).toEqual([]);
  });

  test("F38 5,000 Machines are checked and compared without a request", async () => {
    const bound = bind("Machine", service);
    const before = service.requests.length;
    for (let i = 0; i < 5000; i++) {
      const program = { app: "app", name: `web-${i}`, config: { image, env: { I: String(i) } } };
      const { inputs, failures } = await bound.check({}, program);
      expect(failures).toEqual([]);
      expect(await bound.diff(`app/${i}`, { ...inputs, machineId: `${i}` }, inputs)).toBe("same");
    }
    expect(service.requests.length).toBe(before);
  });
});
