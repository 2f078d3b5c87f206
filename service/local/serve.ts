// The service in the foreground: listens, says so, and ends when it is told to.
import { writeSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { startAdmin, type Admin } from "../http/admin.ts";
import { listenOnLocalhost } from "../http/connections.ts";
import { createService } from "../service.ts";
import { clearRunning, writeRunning, type Running } from "../store/lock.ts";
import { readCertificate } from "./certificate.ts";
import { hostInUrl, listenProblem, parseListen } from "./listen.ts";
import { Log } from "./log.ts";
import { dataFolder, type LocalOptions } from "./options.ts";
import { Problem } from "./problem.ts";
import { readRegions } from "./regionsFile.ts";

// Connections the system keeps for us to take. Where there are more, it makes their clients wait a whole second.
const backlog = 4096;

/** Serves until SIGINT or SIGTERM. */
export async function serve(options: LocalOptions & { readonly listen: string }): Promise<Running> {
  const folder = dataFolder(options.data);
  const address = parseListen(options.listen);
  const adminAddress = options.admin === undefined ? undefined : parseListen(options.admin, "--admin");
  if (adminAddress?.loopback === false)
    throw new Problem(`--admin takes an address of this computer alone, got ${JSON.stringify(options.admin)}`);
  const tls = readCertificate(options.tlsCert, options.tlsKey);
  if (!address.loopback && !options.allowRemote && !tls) {
    throw new Problem(
      `${options.listen} can be reached from other computers, and the service speaks plain HTTP; add --tls-cert and --tls-key, or --allow-remote if that is what you want`,
    );
  }
  const log = new Log(folder);
  const service = createService({
    data: folder,
    log,
    delays: options.delays ?? "believable",
    rateLimits: options.rateLimits ?? "off",
    strict: options.strict ?? false,
    ...(options.regions === undefined ? {} : readRegions(options.regions)),
    ...(tls ? { tls } : {}),
    allowHosts: options.allowHosts ?? (address.loopback ? [] : "any"),
    onRequest: (seen) => service.app.log.info(seen, "request"),
  });
  let admin: Admin | undefined;
  const close = async (signal: string): Promise<void> => {
    service.app.log.info({ signal }, "closing");
    clearRunning(folder);
    void admin?.close(); // its clients are not waited for
    await service.close();
    log.flush();
    process.exit(0); // a client that keeps its connection must not keep the process
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void close(signal));
  try {
    await service.app.listen({ host: address.host, port: address.port, backlog });
    if (address.host === "localhost") await listenOnLocalhost(service.app.server);
  } catch (error) {
    await service.close();
    throw listenProblem(error, options.listen);
  }
  try {
    if (adminAddress) admin = await startAdmin({ service, listen: adminAddress });
  } catch (error) {
    await service.close();
    throw listenProblem(error, options.admin ?? "", "--admin");
  }
  const bound = service.app.server.address() as AddressInfo;
  const url = `${tls ? "https" : "http"}://${hostInUrl(address.host)}:${bound.port}`;
  const who = { url, pid: process.pid, data: folder, ...(admin ? { admin: admin.url } : {}) };
  const running: Running = { ...who, ...(tls ? { certificate: tls.cert } : {}) };
  writeRunning(folder, running);
  service.app.log.info(who, "ready");
  return running;
}

/** Tells the process that started this one, over the pipe it gave us. */
export function report(message: Running | { readonly error: string }): void {
  try {
    writeSync(3, `${JSON.stringify(message)}\n`);
  } catch {
    // Whoever started us has gone; the service stays.
  }
}
