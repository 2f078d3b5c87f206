// What the service says to systemd, where it is a unit of Type=notify: that it is ready, that it ends, and that it is alive.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";

/** The service manager that has started this process. */
export interface Manager {
  /** The service answers requests. */
  ready(): void;
  /** The service is about to end. */
  stopping(): void;
}

/** Sends a state to a socket. Resolves when systemd has read it, or cannot. */
export type Notify = (state: string, socket: string) => Promise<void>;

// Node.js cannot send to a datagram socket of the Unix domain, so systemd's own program does.
const notifyByProgram: Notify = (state, socket) =>
  new Promise((done) => {
    execFile("systemd-notify", [state], { env: { PATH: process.env["PATH"], NOTIFY_SOCKET: socket } }, () => done());
  });

/**
 * The manager that waits to hear from this process; undefined if there is none. Removes its variables from `env`: programs that the
 * service starts have nothing to say to it.
 */
export function managerOf(env: NodeJS.ProcessEnv, notify: Notify = notifyByProgram): Manager | undefined {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: watchdog } = env;
  delete env["NOTIFY_SOCKET"];
  delete env["WATCHDOG_USEC"];
  delete env["WATCHDOG_PID"];
  if (socket === undefined || socket === "") return undefined;
  let isBusy = false;
  const beat = (): void => {
    if (isBusy) return;
    isBusy = true;
    void notify("WATCHDOG=1", socket).finally(() => (isBusy = false));
  };
  return {
    ready: () => {
      void notify("READY=1", socket);
      // A process that cannot run this timer answers no requests either, so systemd starts it again. A third, because one may be late.
      if (watchdog !== undefined && Number(watchdog) > 0) setInterval(beat, Number(watchdog) / 3000).unref();
    },
    stopping: () => void notify("STOPPING=1", socket),
  };
}

/** The unit of systemd that this process is; undefined if systemd did not start it. */
export function unitOf(env: NodeJS.ProcessEnv): string | undefined {
  if (env["SYSTEMD_EXEC_PID"] !== String(process.pid)) return undefined;
  const groups = readFileSync("/proc/self/cgroup", "utf8");
  return /^[^\n]*\/([^/\n]+\.service)$/m.exec(groups)?.[1];
}
