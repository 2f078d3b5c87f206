// The service in the foreground: listens, says so, and ends when it is told to.
import { isIP, type AddressInfo } from "node:net";
import { writeSync } from "node:fs";
import { createService } from "../service.ts";
import { clearRunning, writeRunning, type Running } from "../store/lock.ts";
import { dataFolder, StartError, type LocalOptions } from "./daemon.ts";

interface Address {
  readonly host: string;
  readonly port: number;
  readonly loopback: boolean;
}

/** Reads `host:port`. */
export function parseListen(text: string): Address {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain ?? "";
  const port = Number(digits);
  if (digits === undefined || port > 65535 || host === "" || (bracketed !== undefined && isIP(bracketed) !== 6)) {
    throw new StartError(`--listen takes an address such as 127.0.0.1:4280, got ${JSON.stringify(text)}`);
  }
  return {
    host,
    port,
    loopback: host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127.")),
  };
}

function listenProblem(error: unknown, listen: string): Error {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "EADDRINUSE")
    return new StartError(`${listen} is in use by another program; choose another address with --listen`);
  if (code === "EACCES")
    return new StartError(`${listen} may not be listened at by this user; choose a port above 1023 with --listen`);
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN")
    return new StartError(`${listen} is no address of this computer; choose another with --listen`);
  return error instanceof Error ? error : new Error(String(error));
}

// One write for all lines of a turn of the event loop: a busy service would spend its time on them. A log that cannot be
// written (a full disk) is no reason to stop serving.
let lines: string[] = [];
function flushLog(): void {
  const text = lines.join("");
  lines = [];
  try {
    writeSync(2, text);
  } catch {
    // There is nowhere left to say it.
  }
}

function writeLog(line: string): void {
  if (lines.push(line) === 1) setImmediate(flushLog);
}

/** Serves until SIGINT or SIGTERM. */
export async function serve(options: LocalOptions & { readonly listen: string }): Promise<Running> {
  const folder = dataFolder(options.data);
  const address = parseListen(options.listen);
  if (!address.loopback && !options.allowRemote) {
    throw new StartError(
      `${options.listen} can be reached from other computers, and the service speaks plain HTTP; add --allow-remote if that is what you want`,
    );
  }
  const service = createService({
    data: folder,
    log: { write: writeLog },
    delays: options.delays ?? "realistic",
    strict: options.strict ?? false,
    allowHosts: address.loopback ? (options.allowHosts ?? []) : "any",
    onRequest: (seen) => service.app.log.info(seen, "request"),
  });
  const close = async (signal: string): Promise<void> => {
    service.app.log.info({ signal }, "closing");
    clearRunning(folder);
    await service.close();
    flushLog();
    process.exit(0); // a client that keeps its connection must not keep the process
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void close(signal));
  try {
    await service.app.listen({ host: address.host, port: address.port });
  } catch (error) {
    await service.close();
    throw listenProblem(error, options.listen);
  }
  const bound = service.app.server.address() as AddressInfo;
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  const running = { url: `http://${host}:${bound.port}`, pid: process.pid, data: folder };
  writeRunning(folder, running);
  service.app.log.info(running, "ready");
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
