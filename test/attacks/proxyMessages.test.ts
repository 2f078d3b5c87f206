// The wall around requests: what a client sends that could be understood in two ways reaches no Machine, and no one is believed.
import { describe, expect, test } from "vitest";
import { answering, bodyOf, exchange, get, headEnd, plain, raw, statusesOf, withStandIns } from "./standIns.ts";

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

describe("F79: a request can be understood in two ways", () => {
  const refused: readonly (readonly [string, string])[] = [
    ["two hosts", "GET / HTTP/1.1\r\nHost: web.localhost\r\nHost: other.localhost\r\n\r\n"],
    ["the same host twice", "GET / HTTP/1.1\r\nHost: web.localhost\r\nhost: web.localhost\r\n\r\n"],
    ["no host", "GET / HTTP/1.1\r\n\r\n"],
    ["a host with user and password", "GET / HTTP/1.1\r\nHost: other.localhost@web.localhost\r\n\r\n"],
    [
      "a second host after thousands of headers",
      `GET / HTTP/1.1\r\nHost: web.localhost\r\n${"a:\r\n".repeat(2500)}Host: other.localhost\r\n\r\n`,
    ],
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
  test("F79: it is refused, and no Machine sees it", async () => {
    const app = await withProper();
    for (const [what, bytes] of refused) {
      const statuses = statusesOf(await app.send(bytes));
      // A request whose body goes wrong has begun, so its connection may be closed without an answer.
      expect([what, statuses.filter((status) => ![400, 501].includes(status))]).toEqual([what, []]);
      expect(statuses.length, what).toBeLessThanOrEqual(1);
    }
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
    // One that does not wait for an answer is not sent at all.
    await app.send(`GET /first HTTP/1.1\r\nHost: web.localhost\r\n\r\nGET /second HTTP/1.1\r\n${asked}`);
    expect(app.seen.join("")).not.toContain("/second");
    expect(app.failures()).toEqual([]);
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

  test("F79: HTTP/1.0 has one answer, with a host and without", async () => {
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
