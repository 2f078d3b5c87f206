// Unusable (F24), oversized (F25), slow (F26) or terminal-controlling (F49) answers, from a server that sends exact bytes.
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { createApi } from "../../provider/client/api.ts";
import { systemClock } from "../../provider/client/clock.ts";
import { readConfig } from "../../provider/client/config.ts";
import { MachinesError, NetworkError } from "../../provider/client/errors.ts";
import { httpTransport, type Transport } from "../../provider/client/transport.ts";
import { bindings } from "../support/binding.ts";
import { jumpingClient, noIntents } from "../support/jumpingClient.ts";

fc.configureGlobal({ seed: 1 });

const secret = "s3cr3t-canary";
const token = "t0ken-canary";
const machine = {
  id: "148e21ea7e46e8",
  name: "web",
  state: "started",
  region: "fra",
  config: { image: "registry.example.com/a:1", env: { PASSWORD: secret }, surprise: { kept: true } },
};

let server: Server;
let url: string;
/** How the server handles a complete request. */
let answer: (socket: Socket, request: string) => void;
let asked: string[];
const open = new Set<Socket>();
let transport: Transport;

beforeAll(async () => {
  server = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => undefined).on("close", () => open.delete(socket));
    socket.on("data", (bytes) => {
      const request = bytes.toString("latin1");
      asked.push(request.slice(0, request.indexOf(" HTTP/")));
      answer(socket, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  asked = [];
  // Connections are kept alive, so each test has its own client.
  transport = httpTransport({});
});
afterEach(async () => {
  for (const socket of open) socket.destroy();
  await transport.close();
});
afterAll(() => server.close());

const whole = (body: string | Buffer, { status = "200 OK", headers = "" } = {}): Buffer =>
  Buffer.concat([
    Buffer.from(`HTTP/1.1 ${status}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${headers}\r\n`),
    Buffer.from(body),
  ]);
const answering = (bytes: Buffer | string) => (answer = (socket) => void socket.write(bytes));

/** A client that gives up on an answer after ten minutes by default. */
const client = (settings: Readonly<Record<string, string>> = {}) =>
  jumpingClient({ url, token }, noIntents, { settings: { requestTimeoutSeconds: "600", ...settings }, transport }).api;
/** A client that gives up after a second. */
const shortTimeout = (settings: Readonly<Record<string, string>> = {}) =>
  client({ requestTimeoutSeconds: "1", ...settings });
const key = { appName: "app", machineId: machine.id };
const get = () => client().machines.get(key);
const create = () => client().machines.create({ appName: "app", body: { config: { image: "x" } } });
async function failure(work: Promise<unknown>): Promise<MachinesError> {
  const error = await work.then(
    () => new Error("it succeeded"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(MachinesError);
  const text = `${String(error)} ${JSON.stringify(error)}`;
  expect(text).not.toContain(secret);
  expect(text).not.toContain(token);
  return error as MachinesError;
}

describe("F24 unusable answers", () => {
  const json = JSON.stringify(machine);
  const corpus: [name: string, bytes: Buffer, words: RegExp][] = [
    ["empty", whole(""), /answered 200 with an answer of the wrong form/],
    ["cut off", whole(json.slice(0, 90)), /answered 200 with something that is not JSON: 90 characters of JSON/],
    ["HTML", whole("<html><h1>Welcome</h1>"), /is not JSON: "<html><h1>Welcome<\/h1>"/],
    ["a page that shows JSON", whole(`<pre>${json}</pre>`), /is not JSON: "<pre>…"/],
    ["text", whole("error code: 1020"), /is not JSON: "error code: 1020"/],
    ["long text", whole("x".repeat(500)), /is not JSON: "x{200}…"\./],
    ["JSON after other text", whole(`)]}',\n${json}`), /is not JSON: \d+ characters of JSON/],
    ["a list", whole(`[${json}]`), /of the wrong form \(body: .*\): \d+ characters of JSON/],
    ["a string", whole(JSON.stringify(secret)), /of the wrong form .*: \d+ characters of JSON/],
    ["a number", whole("17"), /of the wrong form .*: "17"/],
    ["null", whole("null"), /of the wrong form/],
    ["a field of the wrong type", whole(json.replace('"web"', "{}")), /of the wrong form \(name: /],
    ["no id", whole(JSON.stringify({ ...machine, id: undefined })), /of the wrong form \(id: /],
    ["packed", whole(gzipSync(json), { headers: "content-encoding: gzip\r\n" }), /something encoded with gzip/],
    ["bytes", whole(Buffer.from([0, 255, 1, 254])), /is not JSON/],
    ["text that contains the token", whole(`who is ${token}?`), /"who is \[token\]\?"/],
  ];

  test.each(corpus)(
    "F24 %s: a read is sent once more, then fails with an excerpt of the answer",
    async (_, bytes, words) => {
      answering(bytes);
      const error = await failure(get());
      expect(error).toMatchObject({ code: "network", ambiguous: false });
      expect(error.message).toMatch(words);
      expect(error.message).toMatch(
        /^machines\.get: GET http:.* Is the endpoint the base URL of a Machines Control Service/,
      );
      expect(asked).toEqual(Array.from({ length: 2 }, () => `GET /v1/apps/app/machines/${machine.id}`));
    },
  );

  test.each(corpus)("F24 %s: a create is ambiguous and is not sent again", async (_, bytes, words) => {
    answering(bytes);
    const error = await failure(create());
    expect(error).toMatchObject({ code: "ambiguous" });
    expect(error.message).toMatch(words);
    expect(asked).toHaveLength(1);
  });

  test("F24 an unusable answer followed by a valid one has no effect", async () => {
    answer = (socket) => void socket.write(whole(asked.length === 1 ? "<html>" : json));
    expect(await get()).toMatchObject({ id: machine.id });
    expect(asked).toHaveLength(2);
  });

  test.each([
    ["a body shorter than its length", `HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n${json}`],
    ["a chunk cut off", `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n${json.slice(0, 40)}`],
    ["no final chunk", `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n{"id\r\n`],
    ["half a head", "HTTP/1.1 200 OK\r\ncontent-le"],
    ["no head", "hello\r\n\r\n"],
    ["nothing", ""],
  ])("F24 %s, then the end: retried like any lost answer; a create is ambiguous", async (_, bytes) => {
    answer = (socket) => void socket.end(bytes);
    expect(await failure(get())).toMatchObject({ code: "network" });
    expect(asked).toHaveLength(6);
    expect(await failure(create())).toMatchObject({ code: "ambiguous" });
    expect(asked).toHaveLength(7);
  });

  test("F24 unknown fields are kept if a program could have set them, and otherwise ignored", async () => {
    answering(whole(JSON.stringify({ ...machine, surprise: [1], checks: null })));
    expect((await get()).config).toMatchObject({ image: "registry.example.com/a:1", surprise: { kept: true } });
  });

  test("F24 errors in any format become text, never JSON", async () => {
    for (const [body, words] of [
      [`{"error":"no such thing","status":"unknown"}`, /answered 418: no such thing \(GET/],
      [`{"message":"no such thing"}`, /answered 418: no such thing \(GET/],
      [`{"error":{"text":"${secret}"}}`, /answered 418: \d+ characters of JSON/],
      [`[{"error":"${secret}"}]`, /answered 418: \d+ characters of JSON/],
      [`{"error":"token ${token} is wrong"}`, /answered 418: token \[token\] is wrong/],
      ["I am a teapot", /answered 418: "I am a teapot"/],
      ["", /answered 418: no text/],
    ] as const) {
      answering(whole(body, { status: "418 No", headers: "svc-request-id: r-1\r\n" }));
      expect((await failure(get())).message).toMatch(words);
      expect((await failure(get())).message).toContain("request r-1");
    }
  });

  test("F24 every error has the request, the answer, the request id, and what to do", async () => {
    for (const status of [400, 401, 403, 404, 408, 409, 410, 412, 413, 418, 422, 429, 451, 500, 501, 502, 503, 504]) {
      answering(whole('{"error":"the reason"}', { status: `${status} x`, headers: "svc-request-id: r-1\r\n" }));
      for (const [work, asked] of [
        [get, `machines.get answered ${status}: the reason (GET ${url}/v1/apps/app/machines/${machine.id}`],
        [create, `machines.create answered ${status}: the reason (POST ${url}/v1/apps/app/machines`],
      ] as const) {
        const { message } = await failure(work());
        expect(message.startsWith(`${asked}, request r-1). `), message).toBe(true);
        // A whole sentence.
        expect(message.slice(asked.length)).toMatch(/r-1\)\. [A-Z].{10,}[.?]$/);
      }
    }
  });

  // All operations with an answer body, with slightly changed answers.
  const rows = Object.values(contract)
    .flatMap((group): Operation[] => Object.values(group))
    .filter((row) => row.answer !== undefined && row.held !== true)
    .map((row) => [row.id, row] as const);
  const rowsById = new Map(rows);
  const argumentsOf = (row: Operation): Record<string, unknown> => ({
    ...Object.fromEntries(
      Object.keys(row.params.shape).map((name) => [
        name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
        name === "hostname" ? "www.example.com" : "app",
      ]),
    ),
    orgSlug: "personal",
    body: undefined,
  });
  const scalar = fc.oneof(fc.integer(), fc.boolean(), fc.constant(null), fc.constant(secret), fc.constant("0s"));
  const value = fc.oneof(scalar, fc.array(scalar, { maxLength: 2 }), fc.dictionary(fc.constantFrom("a", "id"), scalar));
  const keys = "id name state region config env apps machines volumes data status nonce ips secrets value".split(" ");
  const body = fc
    .record({
      object: fc.dictionary(
        fc.constantFrom(...keys),
        fc.oneof(value, fc.array(fc.constant(machine), { maxLength: 2 })),
      ),
      list: fc.boolean(),
      cut: fc.option(fc.nat(400), { nil: undefined }),
    })
    .map(({ object, list, cut }) =>
      JSON.stringify(list ? [object] : { ...machine, ...object }).slice(0, cut ?? Number.MAX_SAFE_INTEGER),
    );

  test("F24 with any JSON answer, an operation succeeds or fails with a readable error", async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...rowsById.keys()), body, async (id, text) => {
        const row = rowsById.get(id) as Operation;
        asked = [];
        answering(whole(text));
        const [group = "", method = ""] = row.id.split(".");
        const api = client() as unknown as Record<string, Record<string, (args: unknown) => Promise<unknown>>>;
        const outcome = await api[group]?.[method]?.(argumentsOf(row)).then(
          () => "answered",
          (error: unknown) => error,
        );
        expect([1, row.repeat === "read" ? 2 : 1]).toContain(asked.length);
        if (outcome === "answered") return;
        expect(outcome).toBeInstanceOf(NetworkError);
        expect(String(outcome)).toMatch(new RegExp(`${row.id}: ${row.method} .* answered 200 with`));
        expect(`${String(outcome)} ${JSON.stringify(outcome)}`).not.toContain(secret);
      }),
      { numRuns: 400 },
    );
  });
});

describe("F25 oversized answers", () => {
  const MiB = 2 ** 20;
  /** Sends while the client reads, at its speed; returns how much it read. */
  function flood(socket: Socket, head: string, piece: Buffer): { taken: () => number } {
    let taken = 0;
    const more = () => {
      while (!socket.destroyed) {
        taken += piece.length;
        if (!socket.write(piece)) return;
      }
    };
    socket.write(head);
    socket.on("drain", more);
    more();
    return { taken: () => taken };
  }
  /** Bytes of buffers and strings in this process, after a garbage collection. */
  const held = () => process.memoryUsage().arrayBuffers + process.memoryUsage().external;
  const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
  const chunk = Buffer.from(`${(64 * 1024).toString(16)}\r\n${"x".repeat(64 * 1024)}\r\n`);

  test("F25 an endless answer is truncated at 32 MiB, and not requested again", async () => {
    let flooded = { taken: () => 0 };
    answer = (socket) => (flooded = flood(socket, chunked, chunk));
    const before = held();
    const error = await failure(client().machines.get(key));
    expect(error.message).toMatch(/the answer is larger than 32 MiB/);
    expect(error).toMatchObject({ code: "network" });
    expect(asked).toHaveLength(1);
    // The connection's buffers add to that.
    expect(flooded.taken()).toBeLessThan(64 * MiB);
    expect(held() - before).toBeLessThan(128 * MiB);
    await expect.poll(() => open.size).toBe(0);
  });

  test("F25 a create with such an answer is ambiguous", async () => {
    answer = (socket) => void flood(socket, `HTTP/1.1 200 OK\r\ncontent-length: ${10 ** 12}\r\n\r\n`, chunk);
    const error = await failure(client().machines.create({ appName: "app", body: { config: { image: "x" } } }));
    expect(error).toMatchObject({ code: "ambiguous" });
    expect(asked).toHaveLength(1);
  });

  test("F25 compressed answers are never unpacked, and never requested", async () => {
    const bomb = gzipSync(Buffer.alloc(200 * MiB, 0x20));
    expect(bomb.length).toBeLessThan(MiB);
    let request = "";
    answer = (socket, text) => {
      request = text;
      socket.write(whole(bomb, { headers: "content-encoding: gzip\r\n" }));
    };
    const before = held();
    expect((await failure(get())).message).toMatch(/something encoded with gzip, which was not requested/);
    expect(request).toMatch(/accept-encoding: identity/i);
    expect(held() - before).toBeLessThan(64 * MiB);
  });

  test.each([
    ["one header", `x-flood: ${"y".repeat(1000)}`],
    ["endless headers", "x-flood: y\r\n"],
  ])("F25 endless %s are cut off, and not requested again", async (_, piece) => {
    let flooded = { taken: () => 0 };
    answer = (socket) => (flooded = flood(socket, "HTTP/1.1 200 OK\r\n", Buffer.from(piece)));
    const error = await failure(client().machines.get(key));
    expect(error.message).toMatch(/no answer from GET .*Header.*Overflow/i);
    expect(asked).toHaveLength(1);
    expect(flooded.taken()).toBeLessThan(16 * MiB);
    await expect.poll(() => open.size).toBe(0);
  });
});

describe("F49 answers with terminal control characters", () => {
  const clears = "\u001b[2J\u001b]0;title\u0007\u001b]8;;http://evil.example\u0007click\u001b]8;;\u0007";
  const foreign = `${clears}\r\nerror: fake line\u202e\u009b31m\u200b ${"x".repeat(3_000_000)}`;
  const harmful = /[\p{Cc}\p{Cf}]/u;
  const refusing = (): void => {
    answer = (socket) =>
      void socket.write(
        whole(JSON.stringify({ error: foreign }), { status: "422 No", headers: "svc-request-id: a\u00a0b\u009bm\r\n" }),
      );
  };

  test("F49 an error shows them escaped, on one line, and quotes the beginning", async () => {
    refusing();
    const { message } = await failure(create());
    expect(message).not.toMatch(harmful);
    expect(message).toContain("\\u001b[2J\\u001b]0;title\\u0007");
    expect(message).toContain("click\\u001b]8;;\\u0007\\r\\nerror: fake line\\u202e\\u009b31m\\u200b xxx");
    expect(message.length).toBeLessThan(1500);
  });

  test.each(bindings)("F49 the $name binding passes none of them to the engine", async ({ start }) => {
    refusing();
    const { bound, close } = await start("App", { url, token });
    try {
      const { inputs } = await bound.check({}, { name: "shop" });
      const error = await bound.create(inputs).catch((reason: unknown) => reason);
      expect(String(error)).toContain("fake line");
      expect(String(error)).not.toMatch(harmful);
    } finally {
      await close();
    }
  });
});

describe("F26 slow answers", () => {
  const json = JSON.stringify(machine);
  const slow = (bytes: string): Promise<MachinesError> => {
    answering(bytes);
    return failure(shortTimeout({ retries: "0" }).machines.get(key));
  };

  test.each([
    ["no head", ""],
    ["part of the headers", "HTTP/1.1 200 OK\r\nconte"],
    ["only the headers", `HTTP/1.1 200 OK\r\ncontent-length: ${json.length}\r\n\r\n`],
    ["part of the body", `HTTP/1.1 200 OK\r\ncontent-length: ${json.length}\r\n\r\n${json.slice(0, 40)}`],
  ])("F26 %s, then nothing: the request fails after its time limit", async (_, bytes) => {
    const error = await slow(bytes);
    expect(error.message).toMatch(/no answer from GET .*: no answer within 1 s\./);
    await expect.poll(() => open.size).toBe(0);
  });

  test("F26 occasional bytes do not extend the time limit", async () => {
    const timers: NodeJS.Timeout[] = [];
    answer = (socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n");
      timers.push(setInterval(() => socket.write("{"), 20));
    };
    const error = await failure(shortTimeout().machines.get(key));
    for (const timer of timers) clearInterval(timer);
    expect(error.message).toMatch(/no answer within 1 s/);
    // Each try ended although bytes kept arriving.
    expect(timers).toHaveLength(6);
  });

  test("F26 the operation's deadline limits a request more tightly than the configuration", async () => {
    answering("");
    const api = createApi({
      config: readConfig((name) => ({ endpoint: url, token, retries: "0" })[name], {}),
      connect: () => Promise.resolve({ url, token }),
      transport,
      clock: systemClock,
    });
    const bound = api.within({ at: api.clock.now() + 200, allowed: "200ms" });
    expect((await failure(bound.machines.get(key))).message).toMatch(
      /no answer within 1 s\. The time limit of 200ms ended the attempts\./,
    );
  });

  test("F26 a long poll may take its own time plus fifteen seconds, any other request thirty", async () => {
    const timeouts: number[] = [];
    const recording = Object.assign(
      (sent: { timeout: number }) => {
        timeouts.push(sent.timeout);
        return Promise.resolve({ kind: "answer", status: 200, headers: {}, text: json } as const);
      },
      { close: () => Promise.resolve() },
    );
    const { api } = jumpingClient({ url, token }, noIntents, { transport: recording });
    await api.machines.get(key);
    await api.machines.wait({ ...key, state: ["started"], timeout: 60 });
    expect(timeouts).toEqual([30_000, 75_000]);
  });
});
