// Connections: accepts them at a port of this computer, and passes raw ones on to a Machine.
import { connect, createServer, type Server, type Socket } from "node:net";
import { createServer as createTls, type TLSSocket, type TlsOptions } from "node:tls";
import type { Challenges } from "../runtime/certificateIssuer.ts";
import { addressOf } from "../runtime/endpoint.ts";
import type { Store } from "../store/database.ts";
import type { Clients } from "./clients.ts";
import { join } from "./join.ts";
import type { PortBudget } from "./portBudget.ts";
import { withProofs } from "./proofs.ts";
import type { PublicPort } from "./routes.ts";
import type { Targets } from "./targets.ts";

/** A certificate and its key, in PEM. */
export type Certificate = Required<Pick<TlsOptions, "cert" | "key">>;

/** A listening port. */
export interface Listener {
  readonly port: number;
  /** Changes the certificate for clients that name no host. */
  certify(certificate: Certificate): void;
  /** Ends the connections, and resolves once the port is free. */
  close(): Promise<void>;
}

/** How to accept connections. */
export interface Accepting {
  /** The App whose port it is. */
  readonly app: string;
  readonly clients: Clients;
  readonly budget: PortBudget;
  readonly store: Pick<Store, "get">;
  /** Makes the server listen, and resolves with its port. */
  readonly bind: (server: Server) => Promise<number>;
  /** The options of TLS; undefined for connections without it. */
  readonly tls?: TlsOptions | undefined;
  /** The proofs that connections with TLS may ask for. */
  readonly challenges?: Challenges | undefined;
  /** Whether a client may end its side of a connection and still get an answer. */
  readonly allowHalfOpen?: boolean;
}

/**
 * Accepts connections, and hands each over when it is ready, after the handshake of TLS.
 * @throws NoPortLeft
 */
export async function accept(
  { app, clients, budget, store, bind, tls, challenges, allowHalfOpen = false }: Accepting,
  ready: (socket: Socket) => void,
): Promise<Listener> {
  const { handshakeMs } = clients.limits;
  const sockets = new Set<Socket>();
  const secured = tls && createTls({ noDelay: true, handshakeTimeout: handshakeMs, ...tls }, ready);
  secured?.prependListener("secureConnection", (socket: Socket) => clients.secured(socket));
  const plain = secured ?? createServer({ noDelay: true, allowHalfOpen }, ready);
  const server = secured && challenges ? withProofs(secured, challenges, handshakeMs) : plain;
  // This event comes before the handshake.
  server.prependListener("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    clients.take(socket);
  });
  const org = store.get<{ org: number }>("SELECT org FROM apps WHERE id = ?", app)?.org ?? 0;
  const giveBack = budget.take(org);
  server.once("close", giveBack);
  const port = await bind(server).catch((error: unknown) => {
    giveBack();
    throw error;
  });
  // A connection that the system cannot accept must not end the service.
  server.on("error", () => {});
  return {
    port,
    certify: (certificate) => secured?.setSecureContext({ ...tls, ...certificate }),
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => void server.close(() => resolve()));
    },
  };
}

/** Passes a raw connection to a public port of an App on to one of its Machines. */
export async function passOn(
  socket: Socket,
  app: string,
  number: number,
  targets: Targets,
  clients: Clients,
): Promise<void> {
  if (socket.destroyed) return;
  clients.use(socket);
  const gone = new AbortController();
  socket.on("error", () => socket.destroy());
  socket.once("close", () => gone.abort("the client has gone"));
  try {
    const isMarked = targets.portsOf(app).get(number)?.options.handlers?.includes("proxy_proto");
    const target = await targets.take(app, number, gone.signal, "connection");
    socket.once("close", () => target.release());
    if (socket.destroyed) return target.release();
    const machine = connect({ ...addressOf(target.endpoint), noDelay: true });
    if (isMarked) machine.write(proxyLine(socket, number));
    join(socket, machine);
  } catch {
    // A connection has no way to say why.
    socket.destroy();
  }
}

/** Whether a public port allows the version of TLS of a connection. */
export function allowsVersion({ options }: PublicPort, socket: TLSSocket): boolean {
  const allowed = options.tls_options?.versions ?? [];
  return allowed.length === 0 || allowed.some((one) => one === socket.getProtocol());
}

/** The versions of TLS that a port allows. */
export function versionsOf({ tls_options }: PublicPort["options"]): Pick<TlsOptions, "minVersion" | "maxVersion"> {
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
