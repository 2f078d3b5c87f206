// The wall around answers: a Machine that sends what is no proper HTTP harms no one else.
import { createServer } from "node:http";
import { describe, expect, test } from "vitest";
import { bind } from "../support/binding.ts";
import { answering, bodyOf, get, listening, plain, raw, statusesOf, withStandIns } from "./standIns.ts";

describe("F77: a Machine answers something that is no proper HTTP", () => {
  const invalid: readonly (readonly [string, string])[] = [
    ["no HTTP at all", "hello\r\n\r\n"],
    ["another version of HTTP", "HTTP/2.0 200 OK\r\n\r\n"],
    ["a status that is no number", "HTTP/1.1 abc OK\r\n\r\n"],
    ["a status below 100", "HTTP/1.1 042 OK\r\nContent-Length: 0\r\n\r\n"],
    ["a header name with a space", "HTTP/1.1 200 OK\r\nbad name: 1\r\n\r\n"],
    ["a control character in a header", "HTTP/1.1 200 OK\r\nx: a\u0001b\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nok\n"],
    ["a length and chunks", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["a transfer coding besides chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok\n"],
    ["headers that are too long", `HTTP/1.1 200 OK\r\nx: ${"a".repeat(100_000)}\r\n\r\n`],
    ["another protocol, unasked", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"],
    ["another protocol, unasked and unnamed", "HTTP/1.1 101 Switching Protocols\r\n\r\n"],
  ];
  test("F77: it is 502, and no other Machine is asked", async () => {
    const app = await withStandIns();
    const machines = [0, 1].map(() => answering((head) => invalid[Number(/\/(\d+)/.exec(head)?.[1])]?.[1] ?? ""));
    const [first, second] = [await machines[0], await machines[1]];
    for (const machine of [first, second]) await app.machineAt(machine?.port ?? 0);
    for (const [i, [what]] of invalid.entries()) {
      const answer = await app.send(get(`/${i}`));
      expect(answer, what).toMatch(/^HTTP\/1\.1 502 /);
      expect(bodyOf(answer), what).toMatch(/^Machine \w+ of App web answered with invalid HTTP \([A-Z\d_]+\)\n$/);
      expect([...(first?.seen ?? []), ...(second?.seen ?? [])], what).toHaveLength(i + 1);
    }
    expect(app.failures()).toEqual([]);
  });

  test("F77: a Machine that ends within the headers is 502, and no other Machine is asked", async () => {
    const app = await withStandIns();
    let asked = 0;
    const end = () =>
      raw((socket) =>
        socket.once("data", () => {
          asked++;
          socket.end("HTTP/1.1 200 OK\r\nContent-Le");
        }),
      );
    for (let i = 0; i < 2; i++) await app.machineAt(await end());
    for (let i = 1; i <= 4; i++) {
      const answer = await app.send(get());
      expect(bodyOf(answer)).toMatch(/^Machine \w+ of App web (answered with invalid HTTP|ended the connection)/);
      expect(answer).toMatch(/^HTTP\/1\.1 502 /);
      expect(answer).not.toContain("undefined");
      expect(asked).toBe(i);
    }
  });

  test("F77: a Machine that refuses an upload before it has read it is heard", async () => {
    const app = await withStandIns();
    const server = createServer((_, response) => response.writeHead(413).end("too large"));
    await app.machineAt(await listening(server));
    const body = "a".repeat(2_000_000);
    for (let i = 0; i < 3; i++) {
      const head = `POST / HTTP/1.1\r\nHost: web.localhost\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`;
      expect(await app.send(head + body)).toMatch(/^HTTP\/1\.1 413 [^]*too large/);
    }
  });

  test("F77: an answer that breaks off is broken off for the client too, and never completed by another Machine", async () => {
    const app = await withStandIns();
    const cut = [
      "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\nzz\r\n",
    ];
    let turn = 0;
    const port = await raw((socket) => socket.once("data", () => socket.end(cut[turn++ % cut.length] ?? "")));
    await app.machineAt(port);
    for (const bytes of cut) {
      const answer = await app.send(get());
      expect(answer, bytes).toMatch(/^(?:HTTP\/1\.1 200 [^]*begun[^]*)?$/);
      expect(answer, bytes).not.toMatch(/\r\n0\r\n\r\n$/);
    }
    expect(turn).toBe(cut.length);
  });

  test("F77: unasked answers that are only a notice are left out, and the real answer passes", async () => {
    const app = await withStandIns();
    const notices = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    const { port } = await answering(`${notices}HTTP/1.1 100 Continue\r\n\r\n${plain}`);
    await app.machineAt(port);
    for (let i = 0; i < 3; i++) {
      const answer = await app.send(get());
      expect(statusesOf(answer)).toEqual([200]);
      expect(bodyOf(answer)).toBe("ok\n");
    }
  });

  test("F77: odd texts of a status and bytes of headers do not fail the proxy", async () => {
    const app = await withStandIns();
    const texts = ["", "\u00fcber", "\u00ff\u0080", "a\tb", "O".repeat(5000), "\u20ac".repeat(3)];
    const { port } = await answering((head) => {
      const text = texts[Number(/\/(\d+)/.exec(head)?.[1])] ?? "";
      return `HTTP/1.1 200 ${text}\r\nx-odd: \u00fc\u00ff\r\nContent-Length: 3\r\n\r\nok\n`;
    });
    await app.machineAt(port);
    for (const i of texts.keys()) {
      const answer = await app.send(get(`/${i}`));
      expect(answer, `text ${i}`).toMatch(/^HTTP\/1\.1 200 /);
      expect(answer).toContain("x-odd: \u00fc\u00ff\r\n");
      expect(bodyOf(answer)).toBe("ok\n");
    }
    expect(app.failures()).toEqual([]);
  });

  test("F77: what a Machine sends after its answer reaches no later request", async () => {
    const app = await withStandIns();
    let count = 0;
    const port = await raw((socket) =>
      socket.on("data", () => {
        count++;
        socket.write(plain, () =>
          setImmediate(() => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nextra")),
        );
      }),
    );
    await app.machineAt(port);
    for (let i = 0; i < 20; i++) expect(bodyOf(await app.send(get()))).toBe("ok\n");
    expect(count).toBe(20);
  });
});

describe("F78: a configuration asks for headers of answers that are no headers", () => {
  const bad: readonly (readonly [string, unknown])[] = [
    ["bad name", "1"],
    ["", "1"],
    ["x-\u20ac", "1"],
    ["x-line", "a\r\nset-cookie: evil=1"],
    ["x-zero", "a\u0000"],
    ["x-euro", "\u20ac"],
    ["x-list", ["fine", "a\nb"]],
    ["x-object", { a: 1 }],
    ["x-deep", [["a"]]],
    ["Content-Length", "5"],
    ["transfer-encoding", "chunked"],
    ["Connection", "close"],
    ["connection", false],
    ["upgrade", "h2c"],
    ["trailer", "x"],
  ];
  const services = (headers: object) => [
    {
      protocol: "tcp",
      internal_port: 8080,
      ports: [{ port: 80, handlers: ["http"], http_options: { response: { headers } } }],
    },
  ];

  test("F78: they are refused by name when they are set", async () => {
    const app = await withStandIns();
    const { id } = await app.machine();
    for (const [name, value] of bad) {
      const config = { image: "nginx", services: services({ [name]: value }) };
      for (const path of [app.machines, `${app.machines}/${id}`]) {
        const { status, body } = await app.call("POST", path, { config });
        expect([name, status]).toEqual([name, 400]);
        expect(body.error).toContain(
          `invalid config.services[0].ports[0].http_options.response.headers[${JSON.stringify(name)}], `,
        );
      }
    }
  });

  test("F78: such a header is refused before anything is sent, at preview", async () => {
    const app = await withStandIns();
    const bound = bind("Machine", app);
    const check = async (headers: object) => {
      const ports = [{ port: 80, handlers: ["http"], httpOptions: { response: { headers } } }];
      const services = [{ protocol: "tcp", internalPort: 8080, ports }];
      return (await bound.check({}, { app: "web", config: { image: "nginx", services } })).failures;
    };
    const [failure = "", ...more] = await check({ snake_case: "a\nsecret" });
    expect(failure).toMatch(/config\.services\[0\]\.ports\[0\]\.httpOptions\.response\.headers.*snake_case/);
    expect(failure).toContain("got the character U+000A in its value");
    expect(failure).not.toContain("secret");
    expect(more).toEqual([]);
    expect(await check({ "x-fine": "a", "x-gone": false })).toEqual([]);
    for (const [name, value] of bad) expect(await check({ [name]: value }), name).toHaveLength(1);
  });

  test("F78: headers that are fine are set, replaced and removed", async () => {
    const app = await withStandIns();
    const { port } = await answering(
      "HTTP/1.1 200 OK\r\nX-Gone: 1\r\nX-Old: 1\r\nX-Old: 2\r\nContent-Length: 3\r\n\r\nok\n",
    );
    const headers = { "X-Gone": false, "X-Old": "new", "X-More": ["a", "b"], "X-Number": 5, "X-True": true };
    await app.machineAt(port, "web", { http_options: { response: { headers } } });
    const answer = await app.send(get());
    expect(answer).not.toContain("X-Gone");
    expect([...answer.matchAll(/^(x-[^\r]*)\r$/gim)].map(([, line]) => line?.toLowerCase())).toEqual([
      ...["x-old: new", "x-more: a", "x-more: b", "x-number: 5", "x-true: true"],
    ]);
  });

  test("F78: such headers of an older configuration are not set, and the answer passes", async () => {
    const app = await withStandIns();
    const { port } = await answering(plain);
    const headers = { "X-Fine": "1" };
    const id = await app.machineAt(port, "web", { http_options: { response: { headers } } });
    const { store, configs } = app.service.context;
    const older = '"X-Fine":"1","bad name":"1","x-line":"a\\r\\nb","content-length":"1"';
    await store.write(() =>
      store.run(
        'UPDATE machine_versions SET config = replace(config, \'"X-Fine":"1"\', ?) WHERE machine = ?',
        older,
        id,
      ),
    );
    configs.clear();
    app.service.proxy?.changed(new Set([id]));
    const answer = await app.send(get());
    expect(answer).toMatch(/^X-Fine: 1\r$/m);
    expect(answer).not.toMatch(/bad name|x-line/i);
    expect(bodyOf(answer)).toBe("ok\n");
    expect(app.failures()).toEqual([]);
  });
});
