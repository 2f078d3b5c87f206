// Finds the service of this computer, or starts it in the background. Several processes may do so at the same time.
import { spawn } from "node:child_process";
import { closeSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isLocked, readRunning, tryLock, type Held, type Running } from "../store/lock.ts";
import { tokenFile } from "../store/tokenFile.ts";
import { mainArguments } from "./entry.ts";
import { commandVariable } from "../ownCommand.ts";
import { logFile, openLog } from "./log.ts";
import { dataFolder, settled, startArguments, type LocalOptions } from "./options.ts";
import { Problem } from "./problem.ts";

/** A service of this computer and the token to use it with. */
export interface Local extends Running {
  readonly token: string;
}

// A start takes half a second, and much longer on a busy computer.
const patience = 60_000;
const pause = 10;

/** The running service of a data folder, without its token. Starts nothing. */
export function findRunning(folder: string): Running | undefined {
  const running = readRunning(folder);
  return running && isLocked(folder) ? running : undefined;
}

const withToken = (running: Running): Local => ({
  ...running,
  token: readFileSync(tokenFile(running.data), "utf8").trim(),
});

/** The service of a data folder if it is running. Starts nothing. */
export async function findLocal(options: Pick<LocalOptions, "data"> = {}): Promise<Local | undefined> {
  const running = findRunning(dataFolder(options.data));
  return running && withToken(running);
}

/** The service of a data folder; starts it in the background if it is not running. Prints nothing. */
export async function startLocal(options: LocalOptions = {}): Promise<Local> {
  const folder = dataFolder(options.data);
  const found = findRunning(folder);
  if (found) return withToken(found);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const starting = await lockStart(folder);
  try {
    // The previous holder of the lock may have started it, and one in the foreground may be starting now.
    for (const end = performance.now() + patience; isLocked(folder) && performance.now() < end; await sleep(pause)) {
      const running = findRunning(folder);
      if (running) return withToken(running);
    }
    return withToken(await spawnService(folder, { ...options, data: folder }));
  } finally {
    starting.release();
  }
}

async function lockStart(folder: string): Promise<Held> {
  for (const end = performance.now() + patience; ; await sleep(pause)) {
    const held = tryLock(join(folder, "start.lock"));
    if (held) return held;
    if (performance.now() > end)
      throw new Problem(
        `another process has tried to start the service of ${folder} for ${patience / 1000} s; see ${logFile(folder)}`,
      );
  }
}

// The background process outlives its parent, so it only gets the environment variables that it needs:
// otherwise the secrets of a deployment would stay readable in it.
function minimalEnvironment(): NodeJS.ProcessEnv {
  const engine = ["MACHINES_RUNTIME", "DOCKER_HOST", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "DOCKER_CONFIG"];
  const cluster = ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"];
  const passed = [
    "PATH",
    "HOME",
    "TZ",
    "NODE_COMPILE_CACHE",
    "NODE_EXTRA_CA_CERTS",
    commandVariable,
    ...engine,
    ...cluster,
  ];
  return Object.fromEntries(
    passed.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );
}

/** The variables with which S3 is reached. Only a service with backups there gets them. */
const credentials = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith("AWS_")));

/** Starts the process in a new session; it reports on a pipe whether it is ready, or why not. */
function spawnService(folder: string, options: LocalOptions): Promise<Running> {
  return new Promise((done, fail) => {
    const log = openLog(folder);
    // Others see the arguments of a process, and these URLs may have a password.
    const { store, backup, ...shown } = settled(options);
    const started = startArguments({ listen: "127.0.0.1:0", ...shown });
    const child = spawn(process.execPath, mainArguments("start", ...started, "--report"), {
      cwd: folder,
      detached: true,
      env: {
        ...minimalEnvironment(),
        ...(store === undefined ? {} : { MACHINES_SERVICE_STORE: store }),
        ...(backup === undefined && options.postgresBackup === undefined ? {} : credentials()),
        ...(backup === undefined ? {} : { MACHINES_SERVICE_BACKUP: backup }),
      },
      stdio: ["ignore", log, log, "pipe"],
    });
    closeSync(log);
    child.unref();
    const pipe = child.stdio[3];
    let said = "";
    const ended = (): void => {
      clearTimeout(late);
      const line = said.split("\n", 1)[0] ?? "";
      const report =
        line === ""
          ? { error: `machines-service ended before it was ready; see ${logFile(folder)}` }
          : (JSON.parse(line) as Running | { error: string });
      if ("error" in report) fail(new Problem(report.error));
      else done(report);
    };
    const late = setTimeout(() => {
      child.kill("SIGKILL");
      fail(new Problem(`machines-service was not ready after ${patience / 1000} s; see ${logFile(folder)}`));
    }, patience);
    child.once("error", fail);
    pipe?.on("data", (part: Buffer) => (said += part.toString()));
    pipe?.once("close", ended);
  });
}

/** Stops the service of a data folder and waits until it has exited. */
export async function stopLocal(folder: string): Promise<Running | undefined> {
  const running = findRunning(folder);
  if (!running) return undefined;
  try {
    process.kill(running.pid, "SIGTERM");
  } catch (error) {
    // It exited since the check; only its lock must be waited for.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
  const patient = patience + (running.drainMs ?? 0);
  for (const end = performance.now() + patient; isLocked(folder); await sleep(pause)) {
    if (performance.now() > end)
      throw new Problem(
        `machines-service (pid ${running.pid}) has not ended after ${patient / 1000} s; see ${logFile(folder)}`,
      );
  }
  return running; // it releases its lock last
}
