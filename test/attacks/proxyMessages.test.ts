// The wall around messages: what a client or a Machine sends that is no proper HTTP harms no one else.
import { describe, expect, test } from "vitest";
import { bind } from "../support/binding.ts";
import { answering, bodyOf, exchange, get, headEnd, raw, statusesOf, withStandIns } from "./standIns.ts";

const plain = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";

/** A service with one Machine that answers every request properly. */
async function withProper() {
  const app = await withStandIns();
  const { port, seen } = await answering(plain);
  await app.machineAt(port);
  return { ...app, seen };
}

/** The values of a header in the head of a request. */
const valuesOf = (head: string | undefined, name: string): string[] =>
  [...(head ?? "").matchAll(new RegExp(`^${name}: ?(.*)\\r$`, "gim"))].map(([, value]) => value ?? "");

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
  test.each(invalid)("F77: %s is 502, and no other Machine is asked", async (_, bytes) => {
    const app = await withStandIns();
    const machines = [await answering(bytes), await answering(bytes)];
    for (const { port } of machines) await app.machineAt(port);
    const answer = await app.send(get());
    expect(answer).toMatch(/^HTTP\/1\.1 502 /);
    expect(bodyOf(answer)).toMatch(/^Machine \w+ of App web answered with invalid HTTP \([A-Z\d_]+\)\n$/);
    expect(machines.flatMap(({ seen }) => seen)).toHaveLength(1);
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
    const reset = () =>
      raw((socket) =>
        socket.once("data", () => {
          asked++;
          socket.write("HTTP/1.1 20", () => setImmediate(() => socket.resetAndDestroy()));
        }),
      );
    for (const machine of [end, reset]) for (let i = 0; i < 2; i++) await app.machineAt(await machine());
    for (let i = 1; i <= 8; i++) {
      const answer = await app.send(get());
      expect(bodyOf(answer)).toMatch(/^Machine \w+ of App web (answered with invalid HTTP|ended the connection)/);
      expect(answer).toMatch(/^HTTP\/1\.1 502 /);
      expect(answer).not.toContain("undefined");
      expect(asked).toBe(i);
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

  test.each(bad)("F78: the header %j is refused when it is set, by its name", async (name, value) => {
    const app = await withStandIns();
    const config = { image: "nginx", services: services({ [name]: value }) };
    const refused = await app.call("POST", app.machines, { config });
    expect(refused.status).toBe(400);
    expect(refused.body.error).toContain(
      `invalid config.services[0].ports[0].http_options.response.headers[${JSON.stringify(name)}], `,
    );
    const { id } = await app.machine();
    expect((await app.call("POST", `${app.machines}/${id}`, { config })).status).toBe(400);
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
});

describe("F79: a request can be understood in two ways", () => {
  const refused: readonly (readonly [string, string])[] = [
    ["two hosts", "GET / HTTP/1.1\r\nHost: web.localhost\r\nHost: other.localhost\r\n\r\n"],
    ["the same host twice", "GET / HTTP/1.1\r\nHost: web.localhost\r\nhost: web.localhost\r\n\r\n"],
    ["no host", "GET / HTTP/1.1\r\n\r\n"],
    ["a host with user and password", "GET / HTTP/1.1\r\nHost: other.localhost@web.localhost\r\n\r\n"],
    ["a host with a path", "GET / HTTP/1.1\r\nHost: web.localhost/x\r\n\r\n"],
    ["two hosts in one header", "GET / HTTP/1.1\r\nHost: web.localhost, other.localhost\r\n\r\n"],
    ["a port of too many digits", `GET / HTTP/1.1\r\nHost: web.localhost:${"1".repeat(9000)}\r\n\r\n`],
    ["a target with another host", "GET http://other.localhost/ HTTP/1.1\r\nHost: web.localhost\r\n\r\n"],
    ["a target with a user", "GET http://other.localhost@web.localhost/ HTTP/1.1\r\nHost: web.localhost\r\n\r\n"],
    ["a target that is no path", "GET ftp://web.localhost/ HTTP/1.1\r\nHost: web.localhost\r\n\r\n"],
    ["a target that is an authority", "GET web.localhost:80 HTTP/1.1\r\nHost: web.localhost\r\n\r\n"],
    ["a star", "GET * HTTP/1.1\r\nHost: web.localhost\r\n\r\n"],
    [
      "a length and chunks",
      "POST / HTTP/1.1\r\nHost: web.localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: web.localhost\r\n\r\n",
    ],
    [
      "chunks and a length",
      "POST / HTTP/1.1\r\nHost: web.localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 50\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: web.localhost\r\n\r\n",
    ],
    ["two lengths", "POST / HTTP/1.1\r\nHost: web.localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy"],
    ["a length with a sign", "POST / HTTP/1.1\r\nHost: web.localhost\r\nContent-Length: +1\r\n\r\nx"],
    ["a folded header", "GET / HTTP/1.1\r\nHost: web.localhost\r\nX: a\r\n  Transfer-Encoding: chunked\r\n\r\n"],
    ["a space before a colon", "GET / HTTP/1.1\r\nHost: web.localhost\r\nTransfer-Encoding : chunked\r\n\r\n"],
    ["lines that end without CR", "GET / HTTP/1.1\nHost: web.localhost\n\n"],
    [
      "one line that ends without CR",
      "GET / HTTP/1.1\r\nHost: web.localhost\r\nX: a\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    [
      "a chunk whose size is no number",
      "POST / HTTP/1.1\r\nHost: web.localhost\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
    ],
    ["chunks in HTTP/1.0", "POST / HTTP/1.0\r\nHost: web.localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    [
      "a coding and chunks",
      "POST / HTTP/1.1\r\nHost: web.localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ],
    [
      "chunks twice",
      "POST / HTTP/1.1\r\nHost: web.localhost\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ["an unknown coding", "POST / HTTP/1.1\r\nHost: web.localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"],
    ["another version of HTTP", "GET / HTTP/2.0\r\nHost: web.localhost\r\n\r\n"],
    ["no version of HTTP", "GET /\r\n\r\n"],
    ["HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ];
  test.each(refused)("F79: %s is refused, and no Machine sees it", async (_, bytes) => {
    const app = await withProper();
    const answer = await app.send(bytes);
    expect(statusesOf(answer).map((status) => [400, 501].includes(status))).toEqual([true]);
    expect(app.seen).toEqual([]);
  });

  test("F79: CONNECT is refused", async () => {
    const app = await withProper();
    expect(await app.send("CONNECT web.localhost:80 HTTP/1.1\r\nHost: web.localhost:80\r\n\r\n")).toMatch(
      /^HTTP\/1\.1 405 /,
    );
    expect(app.seen).toEqual([]);
  });

  test("F79: a target that names the host reaches the Machine as a path", async () => {
    const app = await withProper();
    for (const target of ["http://web.localhost/x?y", "HTTP://WEB.localhost:80/x?y"])
      expect(bodyOf(await app.send(get(target)))).toBe("ok\n");
    expect(app.seen.map((head) => head.split("\r\n")[0])).toEqual(["GET /x?y HTTP/1.1", "GET /x?y HTTP/1.1"]);
  });

  test("F79: what begins another protocol with a body, by POST or by HTTP/1.0 is an ordinary request", async () => {
    const app = await withProper();
    const asked = "Host: web.localhost\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n";
    const inner = "GET /smuggled HTTP/1.1\r\nHost: web.localhost\r\n\r\n";
    for (const [line, more] of [
      ["GET / HTTP/1.1", `Content-Length: ${inner.length}\r\n\r\n${inner}`],
      ["POST / HTTP/1.1", `Content-Length: ${inner.length}\r\n\r\n${inner}`],
      ["GET / HTTP/1.1", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
      ["GET / HTTP/1.0", "\r\n"],
    ])
      expect(statusesOf(await app.send(`${line}\r\n${asked}${more}`))).toEqual([200]);
    expect(app.seen.filter((head) => /^upgrade:/im.test(head))).toEqual([]);
  });

  test("F79: what follows a refused upgrade is not sent to the Machine", async () => {
    const app = await withProper();
    const asked = "Host: web.localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    await app.send(`GET /ws HTTP/1.1\r\n${asked}${get("/smuggled")}`);
    expect(app.seen.map((head) => head.split(" ")[1])).toEqual(["/ws"]);
  });

  test("F79: requests in one go are sent to Machines one after the other, and too many end the connection", async () => {
    const app = await withStandIns();
    let open = 0;
    let most = 0;
    const seen: string[] = [];
    const port = await raw((socket) =>
      socket.on("data", (data) => {
        most = Math.max(most, ++open);
        seen.push(data.toString("latin1").split(" ")[1] ?? "");
        setTimeout(() => {
          open--;
          socket.write(plain);
        }, 5);
      }),
    );
    await app.machineAt(port);
    const one = (path: string) => `GET ${path} HTTP/1.1\r\nHost: web.localhost\r\n\r\n`;
    const paths = Array.from({ length: 12 }, (_, i) => `/${i}`);
    expect(statusesOf(await app.send(paths.map(one).join("") + get("/last")))).toEqual([...paths.map(() => 200), 200]);
    expect(seen).toEqual([...paths, "/last"]);
    expect(most).toBe(1);
    await app.send(one("/flood").repeat(20_000));
    expect(most).toBe(1);
    expect(seen.length).toBeLessThan(1000);
    expect(bodyOf(await app.send(get()))).toBe("ok\n");
    expect(app.failures()).toEqual([]);
  });

  test("F79: trailers of a request and `Expect` stay at the proxy", async () => {
    const app = await withProper();
    const head = "POST / HTTP/1.1\r\nHost: web.localhost\r\nTransfer-Encoding: chunked\r\nTrailer: Host\r\n";
    const answer = await app.send(
      `${head}Expect: 100-continue\r\nConnection: close\r\n\r\n1\r\na\r\n0\r\nHost: other.localhost\r\nX-Real-IP: 9.9.9.9\r\n\r\n`,
    );
    expect(statusesOf(answer)).toEqual([100, 200]);
    const [first = ""] = app.seen;
    expect(first).not.toMatch(/^(?:expect|trailer):/im);
    expect(app.seen.join("")).not.toMatch(/other\.localhost|9\.9\.9\.9/);
    expect(statusesOf(await app.send(get("/", "Expect: magic\r\n")))).toEqual([417]);
  });

  test("F79: the port that a visitor's connection came to has one answer, over HTTP/1.0 too", async () => {
    const app = await withProper();
    const answer = await app.send("GET / HTTP/1.0\r\nHost: web.localhost\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(bodyOf(answer)).toBe("ok\n");
    expect(await exchange(app.ports.http, `GET / HTTP/1.0${headEnd}`)).toMatch(/^HTTP\/1\.1 404 /);
  });
});

describe("F80: a client says by headers who it is", () => {
  const believed = [
    ...["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto", "X-Forwarded-Ssl"],
    ...["X-Forwarded-Server", "X-Forwarded", "X-Real-IP", "X-Client-IP", "True-Client-IP", "X-Cluster-Client-IP"],
    ...["Fly-Client-IP", "Fly-Forwarded-Port", "Fly-Forwarded-Proto", "Fly-Region", "CF-Connecting-IP", "Via"],
    ...["X-Original-Host", "X-Original-URL", "X-Rewrite-URL", "X-Host", "Client-IP", "Proxy"],
  ];
  test("F80: a Machine gets only what the proxy knows about a client, in every spelling", async () => {
    const app = await withProper();
    const spelled = [...believed, ...believed.map((name) => name.replaceAll("-", "_").toUpperCase())];
    const lies = spelled.map((name) => `${name}: for=evil.example\r\n`).join("");
    expect(statusesOf(await app.send(get("/", `${lies}X-Mine: 1\r\n`)))).toEqual([200]);
    const [head = ""] = app.seen;
    expect(head).not.toContain("evil");
    const known = {
      ...{ "x-forwarded-for": "127.0.0.1", "x-forwarded-host": "web.localhost", "x-forwarded-proto": "http" },
      ...{ "x-forwarded-port": String(app.ports.http), "x-real-ip": "127.0.0.1", "fly-client-ip": "127.0.0.1" },
      forwarded: 'for=127.0.0.1;host="web.localhost";proto=http',
      "x-mine": "1",
    };
    for (const [name, value] of Object.entries(known)) expect(valuesOf(head, name), name).toEqual([value]);
  });

  test("F80: a header `Connection` strips nothing that routing or the Machine needs", async () => {
    const app = await withProper();
    const named =
      "host, content-length, x-forwarded-for, x-real-ip, fly-client-ip, forwarded, x-hop, cookie, authorization";
    await app.send(
      `POST / HTTP/1.1\r\nHost: web.localhost\r\nConnection: close, ${named}\r\nContent-Length: 2\r\nX-Hop: 1\r\nCookie: a=1\r\nAuthorization: Bearer t\r\n\r\nok`,
    );
    const [head = ""] = app.seen;
    expect(valuesOf(head, "host")).toEqual(["web.localhost"]);
    expect(valuesOf(head, "content-length")).toEqual(["2"]);
    for (const name of ["x-forwarded-for", "x-real-ip", "fly-client-ip"])
      expect(valuesOf(head, name)).toEqual(["127.0.0.1"]);
    expect(valuesOf(head, "cookie")).toEqual(["a=1"]);
    expect(valuesOf(head, "authorization")).toEqual(["Bearer t"]);
    expect(valuesOf(head, "x-hop")).toEqual([]);
  });

  test("F80: headers whose names differ from framing only by an underscore are not passed on", async () => {
    const app = await withProper();
    await app.send(get("/", "Content_Length: 5\r\nTransfer_Encoding: chunked\r\nX_Mine: 1\r\n"));
    const [head = ""] = app.seen;
    expect(head).not.toMatch(/content_length|transfer_encoding/i);
    expect(head).toMatch(/^x_mine: 1/im);
  });
});
