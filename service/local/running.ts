// What every running service of this computer has: an address, a record in its folder, and signals that end it.
import type { Server } from "node:http";
import { constants } from "node:os";
import { lookup } from "node:dns/promises";
import { startAdmin, type Admin } from "../http/admin.ts";
import type { Service } from "../service.ts";
import type { Running } from "../store/lock.ts";
import { Entrance, NotListening } from "../runtime/entrance.ts";
import { portPart } from "../proxy/routes.ts";
import { version } from "../version.ts";
import { hostInUrl, listenProblem, parseListen } from "./listen.ts";
import type { Plan } from "./plan.ts";
import { Problem } from "./problem.ts";
import { unitOf } from "./systemd.ts";

/** The URL of a server that listens at the address of a plan. */
export function urlOf({ tls, address }: Pick<Plan, "tls" | "address">, port: number): string {
  return `${tls ? "https" : "http"}://${hostInUrl(address.host)}:${port}`;
}

/** The API, which listens. */
export interface Listening {
  readonly url: string;
  /** Accepts no more connections. Those that it has accepted stay. */
  stop(): void;
}

/**
 * Accepts connections for the server of the API, at the address of a plan or by the sockets that were given. The server does not listen
 * itself. Throws a Problem if that is impossible.
 */
export async function listenForApi(plan: Plan, server: Server): Promise<Listening> {
  const { address, sockets, tls, options } = plan;
  const entrance = new Entrance((socket) => server.emit("connection", socket));
  // It watches the times of its requests from then on.
  server.emit("listening");
  const stop = (): void => entrance.close();
  if (sockets.api.length > 0) {
    await openGiven(entrance, sockets.api);
    const { address: host = "", port = 0 } = entrance.address ?? {};
    const given = parseListen(`${hostInUrl(host)}:${port}`);
    if (!given.loopback && !options.allowRemote && !tls)
      throw new Problem(
        `the socket api listens at ${host}, which can be reached from other computers, and the service speaks plain HTTP; add --tls-cert and --tls-key, or --allow-remote if that is what you want`,
      );
    entrance.begin();
    return { url: urlOf({ tls, address: given }, port), stop };
  }
  try {
    const port = await entrance.openAll([{ host: address.host, port: address.port }]);
    if (address.host === "localhost") await openLocalhost(entrance, port);
    entrance.begin();
    return { url: urlOf(plan, port), stop };
  } catch (error) {
    throw await listenProblem(error, options.listen);
  }
}

async function openGiven(entrance: Entrance, fds: readonly number[]): Promise<void> {
  try {
    await entrance.openAll(fds.map((fd) => ({ fd })));
  } catch (error) {
    throw error instanceof NotListening
      ? new Problem(`the socket api cannot be used (${error.code}); it must listen at a port for streams`)
      : error;
  }
}

/** Also accepts connections at the other addresses of `localhost`: programs differ in which they try first. */
async function openLocalhost(entrance: Entrance, port: number): Promise<void> {
  const first = entrance.address?.address;
  const addresses = await lookup("localhost", { all: true }).catch(() => []);
  for (const { address } of addresses)
    // They are a convenience, so a failure is ignored.
    if (address !== first) await entrance.openAll([{ host: address, port }]).catch(() => 0);
}

/** The record of a service; `run` identifies this run, for its console. */
export function runningOf(
  { folder, options, tls, drainMs, reached: { names } }: Plan,
  url: string,
  run: string,
  proxy: Running["proxy"],
): Running {
  const mode = options.console ?? "read";
  const unit = unitOf(process.env);
  const { hostname, appsDomain } = names;
  return {
    url,
    ...(proxy ? { proxy } : {}),
    ...(proxy && hostname !== undefined ? { publicUrl: urlBy(hostname, proxy.https) } : {}),
    ...(proxy && appsDomain !== undefined ? { appsUrl: urlBy(`<app>.${appsDomain}`, proxy.https) } : {}),
    pid: process.pid,
    data: folder,
    version,
    ...(unit === undefined ? {} : { unit }),
    drainMs,
    runtime: options.runtime ?? "simulated",
    postgres: options.postgres ?? "simulated",
    ...(mode === "off" ? {} : { console: { mode, run } }),
    ...(tls ? { certificate: tls.cert } : {}),
  };
}

/** The URL of a name at the proxy. */
const urlBy = (host: string, port: number): string => `https://${host}${portPart("https", port)}`;

/** Starts the admin listener, if there is to be one. */
export async function adminOf({ admin, options }: Plan, service: Service): Promise<Admin | undefined> {
  if (admin === undefined) return undefined;
  try {
    return await startAdmin({ service, listen: admin });
  } catch (error) {
    throw await listenProblem(error, options.admin ?? "", "--admin");
  }
}

/** Calls back at the first signal that ends the process. A second one ends it at once. */
export function onSignal(end: (signal: string) => void): void {
  let isEnding = false;
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.on(signal, () => {
      // As a shell says of a program that a signal has ended.
      if (isEnding) process.exit(128 + constants.signals[signal]);
      isEnding = true;
      end(signal);
    });
}
