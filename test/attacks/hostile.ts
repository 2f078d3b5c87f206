// Hostile messages: proper and improper ones, with changed bytes.
import fc from "fast-check";

/** What changes the meaning of a message when it is inserted. */
const tokens = [
  ...[
    "\r",
    "\n",
    "\r\n",
    "\r\n\r\n",
    "\0",
    " ",
    "\t",
    "\u000b",
    ":",
    ";",
    ",",
    "\u00ff",
    "\u0080",
    "\u007f",
    "%00",
    "%0d%0a",
  ],
  ...[
    "0",
    "-1",
    "+",
    "0x",
    "5",
    "ffffffffffffffff",
    "99999999999999999999",
    "chunked",
    "gzip",
    "close",
    "host",
    "upgrade",
  ],
  ...[
    "Transfer-Encoding: chunked\r\n",
    "Content-Length: 3\r\n",
    "Connection: upgrade\r\n",
    "\r\n folded",
    "HTTP/1.1",
    "HTTP/9.9",
  ],
];

/** A text with some of its bytes changed. */
const changed = (texts: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(
      texts,
      fc.array(
        fc.record({
          at: fc.double({ min: 0, max: 1, noNaN: true }),
          removed: fc.nat(6),
          added: fc.oneof(fc.constantFrom("", ...tokens), fc.string({ maxLength: 3, unit: "binary-ascii" })),
        }),
        { maxLength: 3 },
      ),
    )
    .map(([text, changes]) =>
      changes.reduce((whole, { at, removed, added }) => {
        const from = Math.floor(at * whole.length);
        return whole.slice(0, from) + added + whole.slice(from + removed);
      }, text),
    );

/** A text cut into at most four pieces. */
const inPieces = (texts: fc.Arbitrary<string>): fc.Arbitrary<string[]> =>
  fc.tuple(texts, fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 3 })).map(([text, cuts]) => {
    const at = [0, ...cuts.map((cut) => Math.floor(cut * text.length)).sort((a, b) => a - b), text.length];
    return at.slice(1).map((end, i) => text.slice(at[i], end));
  });

const noise = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString("latin1"));

const inner = "GET /smuggled HTTP/1.1\r\nHost: web.localhost\r\nX-Run: RUN\r\n\r\n";

const requestLines = fc
  .tuple(
    fc.constantFrom("GET", "POST", "HEAD", "PUT", "OPTIONS", "TRACE", "CONNECT", "DELETE", "get", "PRI", "M-SEARCH"),
    fc.constantFrom(
      ...["/", "/x?y=1", "*", "//other.localhost/", "/../..", "http://web.localhost/a", "http://other.localhost/a"],
      ...["http://other.localhost@web.localhost/", "other.localhost:80", "/%00%0d%0a", "/\u00ff", "", "/a b", "/#x"],
    ),
    fc.constantFrom("HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", ""),
  )
  .map((parts) => parts.join(" "));

const requestHeaders = fc.array(
  fc.constantFrom(
    ...[
      "Connection: close",
      "Connection: keep-alive, host, content-length",
      "Connection: upgrade",
      "Upgrade: websocket",
    ],
    ...["Upgrade: h2c", "HTTP2-Settings: AAA", "Sec-WebSocket-Key: a", "Expect: 100-continue", "TE: trailers"],
    ...["X-Forwarded-Host: other.localhost", "X-Forwarded-For: 6.6.6.6", "Forwarded: for=6.6.6.6;host=other.localhost"],
    ...["X-Real-IP: 6.6.6.6", "Fly-Client-IP: 6.6.6.6", "X_Forwarded_For: 6.6.6.6", "Cookie: a=1", "Trailer: host"],
    ...[
      "Content_Length: 4",
      "X: a\r\n b",
      "X : a",
      ": a",
      "X\t: a",
      "X: \u0001",
      "Proxy-Connection: close",
      "Via: 1.0 x",
    ],
  ),
  { maxLength: 6 },
);

const framings = fc.constantFrom(
  ...["", inner].flatMap((body) => [
    `Content-Length: ${body.length}\r\n\r\n${body}`,
    `Transfer-Encoding: chunked\r\n\r\n${body && `${body.length.toString(16)}\r\n${body}\r\n`}0\r\n\r\n`,
    `Transfer-Encoding: chunked\r\n\r\n0\r\nHost: other.localhost\r\nX-Real-IP: 6.6.6.6\r\n\r\n${body}`,
    `Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${body}`,
    `Transfer-Encoding: chunked\r\nContent-Length: ${body.length + 5}\r\n\r\n0\r\n\r\n${body}`,
    `Content-Length: 0\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    `Transfer-Encoding:\u000bchunked\r\n\r\n0\r\n\r\n${body}`,
    `Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n${body}`,
    `\r\n${body}`,
  ]),
);

const request = fc
  .tuple(
    requestLines,
    fc.constantFrom(
      "web.localhost",
      "web.localhost",
      "WEB.localhost:80",
      "80.web.localhost",
      "web.localhost.",
      "none.localhost",
      "",
      "[::1]",
    ),
    requestHeaders,
    framings,
  )
  .map(
    ([line, host, headers, rest]) =>
      [line, `Host: ${host}`, "X-Run: RUN", ...headers.map((header) => header)].join("\r\n") + `\r\n${rest}`,
  );

/** What a hostile client sends, in pieces; `RUN` stands for the name of its connection. */
export const hostileRequests: fc.Arbitrary<string[]> = inPieces(
  fc.oneof(
    { weight: 6, arbitrary: changed(fc.array(request, { minLength: 1, maxLength: 3 }).map((all) => all.join(""))) },
    { weight: 1, arbitrary: noise },
  ),
);

const answers = fc.constantFrom(
  "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nok\n\r\n0\r\n\r\n",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x\r\n\r\n3\r\nok\n\r\n0\r\nx: y\r\ncontent-length: 9\r\n\r\n",
  "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end",
  "HTTP/1.0 200 OK\r\n\r\nold",
  "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nextra",
  "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n",
  "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nraw",
  "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nextra",
  "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Odd: \u00fc\r\nConnection: set-cookie, x\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 200 \u00fcber \u0001\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.1 000 \r\n\r\n",
  "HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
  `HTTP/1.1 200 OK\r\nX: ${"a".repeat(20_000)}\r\n\r\n`,
  "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\nshort",
  "HTTP/2.0 200 OK\r\n\r\n",
  "\u0016\u0003\u0001\u0002\u0000",
  "SSH-2.0-OpenSSH_9\r\n",
  "",
);

/** What a hostile Machine does after its answer. */
export const endings = ["end", "reset", "stay"] as const;

/** What a hostile Machine answers, in pieces, and what it does then. */
export const hostileAnswers: fc.Arbitrary<{ readonly pieces: string[]; readonly ending: (typeof endings)[number] }> =
  fc.record({
    pieces: inPieces(fc.oneof({ weight: 6, arbitrary: changed(answers) }, { weight: 1, arbitrary: noise })),
    ending: fc.constantFrom(...endings),
  });
