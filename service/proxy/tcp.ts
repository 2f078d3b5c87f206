// Raw connections: each public port of an App without HTTP has a port of its own on this computer.
import { connect, createServer, type Server, type Socket } from "node:net";
import { createServer as createTls, type TlsOptions } from "node:tls";
import type { Authority } from "./authority.ts";
import { join } from "./join.ts";
import type { PublicPort } from "./routes.ts";
import type { Targets } from "./targets.ts";

/** A listening port. */
export interface Listener {
  readonly port: number;
  /** Ends the connections, and resolves once the port is free. */
  close(): Promise<void>;
}

/** Listens at a port of this computer: the public one where it is free, else another. */
export async function listen(server: Server, host: string, wanted: number): Promise<number> {
  const attempt = (port: number): Promise<number> =>
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host, port }, () => {
        server.removeListener("error", reject);
        const bound = server.address();
        resolve(typeof bound === "object" && bound !== null ? bound.port : port);
      });
    });
  // Ports below 1024 are the system's.
  return wanted < 1024 ? attempt(0) : attempt(wanted).catch(() => attempt(0));
}

/** Sends each connection to a Machine. */
export async function listenTcp(
  host: string,
  { app, port: number, kind, options }: PublicPort,
  targets: Targets,
  authority: Authority,
  SNICallback: TlsOptions["SNICallback"],
): Promise<Listener> {
  const sockets = new Set<Socket>();
  const accept = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    void forward(socket);
  };
  const forward = async (socket: Socket): Promise<void> => {
    const gone = new AbortController();
    socket.once("close", () => gone.abort("the client has gone"));
    try {
      const target = await targets.take(app, number, gone.signal, "connection");
      socket.once("close", () => target.release());
      if (socket.destroyed) return target.release();
      const machine = connect({ host: "127.0.0.1", port: target.port, noDelay: true });
      if (options.handlers?.includes("proxy_proto")) machine.write(proxyLine(socket, number));
      join(socket, machine);
    } catch {
      // A connection has no way to say why.
      socket.destroy();
    }
  };
  const server =
    kind === "tls"
      ? createTls(
          {
            // For a client that names no host.
            ...(await authority.certificateFor("localhost")),
            SNICallback,
            ...versionsOf(options),
          },
          accept,
        )
      : createServer({ noDelay: true }, accept);
  const port = await listen(server, host, number);
  return {
    port,
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => void server.close(() => resolve()));
    },
  };
}

/** The versions of TLS that a port allows. */
function versionsOf({ tls_options }: PublicPort["options"]): Pick<TlsOptions, "minVersion" | "maxVersion"> {
  const [first, last = first] = (tls_options?.versions ?? []).toSorted();
  return first === undefined || last === undefined ? {} : { minVersion: first, maxVersion: last };
}

/** The line of the PROXY protocol, version 1. */
function proxyLine(
  { remoteAddress = "127.0.0.1", remotePort = 0, localAddress = "127.0.0.1" }: Socket,
  port: number,
): string {
  const family = remoteAddress.includes(":") ? "TCP6" : "TCP4";
  return `PROXY ${family} ${remoteAddress} ${localAddress} ${remotePort} ${port}\r\n`;
}
