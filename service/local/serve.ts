// Runs the service in the foreground: listens, reports that it is ready, and exits on a signal.
import { writeSync } from "node:fs";
import type { Admin } from "../http/admin.ts";
import { clearRunning, writeRunning, type Running } from "../store/lock.ts";
import { planOf, type Plan, type StartOptions } from "./plan.ts";
import { beginBackups } from "./backupRoute.ts";
import { openProxy } from "./reached.ts";
import { takeSockets } from "./sockets.ts";
import { managerOf } from "./systemd.ts";
import { adminOf, listenForApi, onSignal, runningOf, type Listening } from "./running.ts";

/** Serves until SIGINT or SIGTERM. */
export async function serve(options: StartOptions): Promise<Running> {
  const manager = managerOf(process.env);
  const running = await serveBy(await planOf(options, takeSockets()));
  if (manager) process.once("SIGTERM", () => manager.stopping());
  manager?.ready();
  return running;
}

async function serveBy(plan: Plan): Promise<Running> {
  const { store } = plan.options;
  if (store === undefined) return serveAlone(plan);
  // Loaded only when it is used: most services are one process.
  const { serveAsMember } = await import("./member.ts");
  return serveAsMember(plan, store);
}

/** Serves as the only process. */
async function serveAlone(plan: Plan): Promise<Running> {
  const { folder, log, drainMs } = plan;
  const { service, closeTracing } = await plan.create();
  await beginBackups(plan, service);
  let admin: Admin | undefined;
  let listening: Listening | undefined;
  const close = async (signal: string): Promise<void> => {
    service.app.log.info({ signal }, "closing");
    clearRunning(folder);
    void admin?.close(); // does not wait for its clients
    listening?.stop();
    await Promise.all([service.drain(drainMs), plan.backups.close()]);
    await service.close();
    await closeTracing();
    log.flush();
    process.exit(0); // a client that keeps its connection must not keep the process
  };
  onSignal((signal) => void close(signal));
  // Before the first request, because it finds the addresses that Apps can have.
  let proxyPorts: Running["proxy"];
  try {
    proxyPorts = await openProxy(plan, service);
    await service.app.ready();
    listening = await listenForApi(plan, service.app.server);
    admin = await adminOf(plan, service);
  } catch (error) {
    await service.close();
    throw error;
  }
  const running: Running = {
    ...runningOf(plan, listening.url, service.run, proxyPorts),
    ...(admin ? { admin: admin.url } : {}),
  };
  writeRunning(folder, running);
  const { certificate: _, console: __, ...who } = running;
  service.app.log.info(who, "ready");
  return running;
}

/** Reports to the process that started this one, over the pipe that it provided. */
export function report(message: Running | { readonly error: string }): void {
  try {
    writeSync(3, `${JSON.stringify(message)}\n`);
  } catch {
    // The process that started the service has exited; the service continues.
  }
}
