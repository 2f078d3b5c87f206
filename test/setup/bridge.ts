// Joins ports of two networks of this computer by a socket in a folder, which both of them see. As a program, it runs in a network.
import { connect, createServer, type Server } from "node:net";

/** A port of 127.0.0.1, or the path of a socket. */
export type End = number | string;

const addressOf = (end: End) => (typeof end === "number" ? { port: end, host: "127.0.0.1" } : { path: end });

/** Accepts connections at one end, and continues each at the other. */
export function bridge(from: End, to: End): Server {
  return createServer((client) => {
    const server = connect(addressOf(to));
    client.pipe(server).pipe(client);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const)
      one.on("error", () => other.destroy());
  }).listen(addressOf(from));
}

const ends = process.argv[2];
if (process.argv[1]?.endsWith("/bridge.ts") && ends !== undefined)
  for (const [from, to] of JSON.parse(ends) as readonly (readonly [End, End])[]) bridge(from, to);
