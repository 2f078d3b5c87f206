// Ports of this computer: binds servers to them.
import type { Server } from "node:net";

/** Makes a server listen at an address and port, and resolves with the port. Rejects with the error of the system. */
export type Bind = (server: Server, host: string, port: number) => Promise<number>;

/** Listens by the operating system. */
export const bind: Bind = (server, host, port) =>
  new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.removeListener("error", reject);
      const bound = server.address();
      resolve(typeof bound === "object" && bound !== null ? bound.port : port);
    });
  });

/** Listens at a port of this computer: the public one where it is free, else another. */
export async function bindNear(server: Server, host: string, wanted: number): Promise<number> {
  // Ports below 1024 are the system's.
  return wanted < 1024 ? bind(server, host, 0) : bind(server, host, wanted).catch(() => bind(server, host, 0));
}
