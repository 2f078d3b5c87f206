// The PROXY protocol: what its parser makes of any bytes, also of those that come one after the other.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { proxyHeaderIn } from "../../service/proxy/proxyProtocol.ts";
import { Networks, isNetwork } from "../../service/runtime/networks.ts";

const port = fc.integer({ min: 0, max: 65_535 });
const rest = fc.uint8Array({ maxLength: 50 });
const textHeader = (kind: "TCP4" | "TCP6") =>
  fc
    .tuple(kind === "TCP4" ? fc.tuple(fc.ipV4(), fc.ipV4()) : fc.tuple(fc.ipV6(), fc.ipV6()), port, port)
    .map(([[from, to], fromPort, toPort]) => ({
      bytes: Buffer.from(`PROXY ${kind} ${from} ${to} ${fromPort} ${toPort}\r\n`),
      source: { ip: from, port: fromPort },
    }));

const signature = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
const numbers = (text: string): number[] => text.split(".").map(Number);

/** A header of version 2. */
const binary = (command: number, family: number, body: Uint8Array): Buffer => {
  const head = Buffer.from([command, family, body.length >> 8, body.length & 0xff]);
  return Buffer.concat([signature, head, body]);
};

const portBytes = (number: number): number[] => [number >> 8, number & 0xff];
const binaryHeader = fc.tuple(fc.ipV4(), fc.ipV4(), port, port, rest).map(([from, to, fromPort, toPort, more]) => ({
  bytes: binary(
    0x21,
    0x11,
    Uint8Array.from([...numbers(from), ...numbers(to), ...portBytes(fromPort), ...portBytes(toPort), ...more]),
  ),
  source: { ip: from, port: fromPort },
}));

const header = fc.oneof(textHeader("TCP4"), textHeader("TCP6"), binaryHeader);

describe("the PROXY protocol", () => {
  test("a header is read completely, whatever follows, and never before its end", () => {
    fc.assert(
      fc.property(header, rest, ({ bytes, source }, more) => {
        expect(proxyHeaderIn(Buffer.concat([bytes, more]))).toEqual({ length: bytes.length, source });
        for (let n = 0; n < bytes.length; n++) expect(proxyHeaderIn(bytes.subarray(0, n))).toBe("incomplete");
      }),
    );
  });

  test("any bytes have one meaning, and what is invalid stays so", () => {
    const like = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc
        .tuple(fc.constantFrom("PROXY ", "PROXY TCP4 ", "PROXY UNKNOWN"), fc.string({ maxLength: 150 }))
        .map((parts) => Buffer.from(parts.join(""))),
      fc.uint8Array({ maxLength: 200 }).map((body) => Buffer.concat([signature, body])),
    );
    fc.assert(
      fc.property(like, (given) => {
        const bytes = Buffer.from(given);
        let decided: unknown;
        for (let n = 0; n <= bytes.length; n++) {
          const found = proxyHeaderIn(bytes.subarray(0, n));
          if (decided !== undefined) expect(found).toEqual(decided);
          else if (found !== "incomplete") decided = found;
          if (typeof found === "object") expect(found.length).toBeLessThanOrEqual(n);
        }
        // It never waits for ever.
        expect(proxyHeaderIn(Buffer.concat([bytes, Buffer.alloc(3000)]))).not.toBe("incomplete");
      }),
    );
  });

  test.each([
    ["GET / HTTP/1.1\r\n"],
    ["PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n"],
    ["PROXY TCP4 1.2.3.4  5.6.7.8 1 2\r\n"],
    ["PROXY TCP4 1.2.3.4 5.6.7.8 01 2\r\n"],
    ["PROXY TCP4 1.2.3.4 5.6.7.8 65536 2\r\n"],
    ["PROXY TCP4 ::1 ::2 1 2\r\n"],
    ["PROXY TCP6 1.2.3.4 5.6.7.8 1 2\r\n"],
    ["PROXY TCP4 1.2.3 5.6.7.8 1 2\r\n"],
    ["PROXY UDP4 1.2.3.4 5.6.7.8 1 2\r\n"],
    ["proxy TCP4 1.2.3.4 5.6.7.8 1 2\r\n"],
    [`PROXY TCP4 ${" ".repeat(100)}\r\n`],
  ])("%j is no header", (text) => {
    expect(proxyHeaderIn(Buffer.from(text))).toBe("invalid");
  });

  test("connections of the load balancer itself have no client", () => {
    expect(proxyHeaderIn(Buffer.from("PROXY UNKNOWN\r\nGET"))).toEqual({ length: 15, source: undefined });
    expect(proxyHeaderIn(Buffer.from("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"))).toMatchObject({ source: undefined });
    expect(proxyHeaderIn(binary(0x20, 0, new Uint8Array()))).toEqual({ length: 16, source: undefined });
    expect(proxyHeaderIn(binary(0x21, 0, new Uint8Array(5)))).toEqual({ length: 21, source: undefined });
  });

  test("of version 2, other transports, commands and versions are refused, and too long ones", () => {
    const body = new Uint8Array(216);
    for (const family of [0x12, 0x22, 0x31, 0x32, 0x41])
      expect(proxyHeaderIn(binary(0x21, family, body))).toBe("invalid");
    for (const command of [0x11, 0x22, 0x31, 0x01]) expect(proxyHeaderIn(binary(command, 0x11, body))).toBe("invalid");
    expect(proxyHeaderIn(binary(0x21, 0x11, new Uint8Array(11)))).toBe("invalid");
    expect(proxyHeaderIn(binary(0x21, 0x21, new Uint8Array(35)))).toBe("invalid");
    expect(proxyHeaderIn(binary(0x21, 0x11, new Uint8Array(3000)))).toBe("invalid");
    const six = Uint8Array.from([
      ...Buffer.from("20010db8000000000000000000000001", "hex"),
      ...new Uint8Array(16),
      1,
      2,
      0,
      0,
    ]);
    expect(proxyHeaderIn(binary(0x21, 0x21, six))).toMatchObject({ source: { ip: "2001:db8::1", port: 258 } });
  });
});

test("networks have the addresses in them, in every way to write those", () => {
  const networks = new Networks(["10.0.0.0/8", "203.0.113.5", "fd00::/8"]);
  for (const one of ["10.1.2.3", "::ffff:10.1.2.3", "203.0.113.5", "fd12::1"])
    expect([one, networks.has(one)]).toEqual([one, true]);
  for (const one of ["11.1.2.3", "203.0.113.6", "fe80::1", "", "web", undefined])
    expect([one, networks.has(one)]).toEqual([one, false]);
  for (const one of ["0.0.0.0/0", "::/0", "::1", "1.2.3.4/32"]) expect([one, isNetwork(one)]).toEqual([one, true]);
  for (const one of ["", "/8", "10.0.0.0/33", "::/129", "10.0.0/8", "a/8", "10.0.0.0/-1"])
    expect([one, isNetwork(one)]).toEqual([one, false]);
});
