// What every running service of this computer has: an address, a record in its folder, and signals that end it.
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { startAdmin, type Admin } from "../http/admin.ts";
import type { Service } from "../service.ts";
import type { Running } from "../store/lock.ts";
import { hostInUrl, listenProblem } from "./listen.ts";
import { version } from "../version.ts";
import type { Plan } from "./plan.ts";
import { unitOf } from "./systemd.ts";

/** Length of the system's queue of new connections. When it is full, clients wait a whole second. */
export const backlog = 4096;

/** The URL of a server that listens. */
export function urlOf({ tls, address }: Plan, server: Server): string {
  const { port } = server.address() as AddressInfo;
  return `${tls ? "https" : "http"}://${hostInUrl(address.host)}:${port}`;
}

/** The record of a service; `run` identifies this run, for its console. */
export function runningOf(
  { folder, options, tls, reached: { names } }: Plan,
  url: string,
  run: string,
  proxy: Running["proxy"],
): Running {
  const mode = options.console ?? "read";
  const unit = unitOf(process.env);
  const { hostname, appsDomain } = names;
  const at = (host: string): string => `https://${host}${proxy?.https === 443 ? "" : `:${proxy?.https}`}`;
  return {
    url,
    ...(proxy ? { proxy } : {}),
    ...(proxy && hostname !== undefined ? { publicUrl: at(hostname) } : {}),
    ...(proxy && appsDomain !== undefined ? { appsUrl: at(`<app>.${appsDomain}`) } : {}),
    pid: process.pid,
    data: folder,
    version,
    ...(unit === undefined ? {} : { unit }),
    runtime: options.runtime ?? "simulated",
    postgres: options.postgres ?? "simulated",
    ...(mode === "off" ? {} : { console: { mode, run } }),
    ...(tls ? { certificate: tls.cert } : {}),
  };
}

/** Starts the admin listener, if there is to be one. */
export async function adminOf({ admin, options }: Plan, service: Service): Promise<Admin | undefined> {
  if (admin === undefined) return undefined;
  try {
    return await startAdmin({ service, listen: admin });
  } catch (error) {
    throw await listenProblem(error, options.admin ?? "", "--admin");
  }
}

/** Calls back at the first signal that ends the process. */
export function onSignal(end: (signal: string) => void): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => end(signal));
}
