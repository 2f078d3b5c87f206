// Ports for servers that are started later, or again.
import { createServer } from "node:net";

/**
 * A port at which nothing listens. It is not one of those that the system gives to connections: another connection could take
 * such a port before its user listens.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 22_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}
