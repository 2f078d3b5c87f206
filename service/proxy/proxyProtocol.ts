// The PROXY protocol, versions 1 and 2: with its first bytes, a load balancer says from which client it has a connection
// (haproxy.org/download/3.2/doc/proxy-protocol.txt).
import { isIP } from "node:net";
import type { Socket } from "node:net";

/** The client of a connection. */
export interface Source {
  readonly ip: string;
  readonly port: number;
}

/** What the first bytes of a connection are. */
export type ProxyHeader =
  /** More bytes are needed. */
  | "incomplete"
  /** They are no header, and never become one. */
  | "invalid"
  /** Its length in bytes, and the client; undefined if the connection is the load balancer's own. */
  | { readonly length: number; readonly source: Source | undefined };

const beginOfText = Buffer.from("PROXY ");
const beginOfBinary = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
/** With its end of line. */
const longestText = 107;
const binaryHead = 16;
// ASSUMED: a header of version 2 has at most 2,048 bytes, with all that a load balancer adds to it.
const longestBinary = 2048;

const isBegunBy = (bytes: Buffer, begin: Buffer): boolean =>
  bytes.subarray(0, begin.length).equals(begin.subarray(0, bytes.length));

/** Reads the header at the beginning of a connection. */
export function proxyHeaderIn(bytes: Buffer): ProxyHeader {
  if (isBegunBy(bytes, beginOfBinary)) return bytes.length < binaryHead ? "incomplete" : binaryIn(bytes);
  if (isBegunBy(bytes, beginOfText)) return bytes.length < beginOfText.length ? "incomplete" : textIn(bytes);
  return "invalid";
}

function textIn(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, longestText).indexOf("\r\n");
  if (end < 0) return bytes.length >= longestText ? "invalid" : "incomplete";
  const length = end + 2;
  const [kind, from, to, ...ports] = bytes.subarray(beginOfText.length, end).toString("latin1").split(" ");
  if (kind === "UNKNOWN") return { length, source: undefined };
  const version = { TCP4: 4, TCP6: 6 }[kind ?? ""];
  const [port, ownPort] = ports.map(portOf);
  if (version === undefined || from === undefined || to === undefined || ports.length !== 2) return "invalid";
  if (isIP(from) !== version || isIP(to) !== version || port === undefined || ownPort === undefined) return "invalid";
  return { length, source: { ip: from, port } };
}

function portOf(text: string): number | undefined {
  const port = Number(text);
  return /^(?:0|[1-9]\d{0,4})$/.test(text) && port <= 65_535 ? port : undefined;
}

/** Families of addresses with the transport of TCP, and the bytes that both addresses and ports take. */
const families: Readonly<Record<number, { readonly version: 4 | 6; readonly bytes: number }>> = {
  0x11: { version: 4, bytes: 12 },
  0x21: { version: 6, bytes: 36 },
};

function binaryIn(bytes: Buffer): ProxyHeader {
  const [command, kind] = [bytes.readUInt8(12), bytes.readUInt8(13)];
  const length = binaryHead + bytes.readUInt16BE(14);
  const isLocal = command === 0x20;
  if ((!isLocal && command !== 0x21) || length > longestBinary) return "invalid";
  const family = families[kind];
  const isUsable = isLocal || kind === 0 || (family !== undefined && length >= binaryHead + family.bytes);
  if (!isUsable) return "invalid";
  if (bytes.length < length) return "incomplete";
  if (isLocal || family === undefined) return { length, source: undefined };
  const size = (family.bytes - 4) / 2;
  const address = bytes.subarray(binaryHead, binaryHead + size);
  const port = bytes.readUInt16BE(binaryHead + 2 * size);
  return { length, source: { ip: family.version === 4 ? address.join(".") : textOf(address), port } };
}

/** An address of IPv6 in its usual form. */
function textOf(address: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, i) => address.readUInt16BE(2 * i).toString(16)).join(":");
  return new URL(`http://[${groups}]`).hostname.slice(1, -1);
}

/**
 * Reads the header of a connection, and leaves what follows. Undefined if there is none within that time: the connection is closed.
 */
export function readProxyHeader(
  socket: Socket,
  ms: number,
): Promise<{ readonly source: Source | undefined } | undefined> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0);
    const end = (found: { readonly source: Source | undefined } | undefined): void => {
      clearTimeout(giveUp);
      socket.removeListener("readable", read).removeListener("close", gone).removeListener("end", gone);
      if (!found) socket.destroy();
      resolve(found);
    };
    const gone = (): void => end(undefined);
    const read = (): void => {
      for (let chunk: Buffer | null; (chunk = socket.read() as Buffer | null);) bytes = Buffer.concat([bytes, chunk]);
      const header = proxyHeaderIn(bytes);
      if (header === "incomplete") return;
      if (header === "invalid") return gone();
      if (bytes.length > header.length) socket.unshift(bytes.subarray(header.length));
      end(header);
    };
    const giveUp = setTimeout(gone, ms);
    socket.on("readable", read).once("close", gone).once("end", gone);
  });
}
