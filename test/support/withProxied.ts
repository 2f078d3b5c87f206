// Starts a service with a proxy in a process of its own, with limits of the system.
import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Proxied } from "./proxied.ts";

/** How to start it. */
export interface Starting {
  /** The folder of its sources. */
  readonly folder?: string;
  /** The port on this computer for each port of a Machine. */
  readonly endpoints: Readonly<Record<number, number>>;
  readonly options?: object;
  /** Files that it may open. */
  readonly files?: number;
}

/** A service that runs in a process. */
export interface Running extends Proxied {
  readonly process: ChildProcess;
  /** The megabytes that it keeps. */
  memory(): Promise<number>;
}

// Tests and benches run in the folder of the repository.
const root = process.cwd();

/** Starts the process. */
export async function startProxied({
  folder = join(root, "service"),
  endpoints,
  options = {},
  files,
}: Starting): Promise<Running> {
  const node = ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "--expose-gc"];
  const script = join(root, "test/support/proxied.ts");
  const args = [folder, JSON.stringify(endpoints), JSON.stringify(options)];
  const limit = files === undefined ? "" : `ulimit -n ${files}; `;
  const child = spawn("sh", ["-c", `${limit}exec "$0" "$@"`, process.execPath, ...node, script, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface(child.stdout);
  const line = () =>
    new Promise<string>((resolve, reject) => {
      lines.once("line", resolve);
      child.once("close", (code) => reject(new Error(`it ended with ${code}`)));
    });
  const ready = JSON.parse(await line()) as Proxied;
  const memory = async () => {
    const answer = line();
    child.stdin.write("memory\n");
    return Number(await answer);
  };
  return { ...ready, process: child, memory };
}

/** Ends the process. */
export async function endProxied({ process: child }: Running): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = new Promise((resolve) => child.once("close", resolve));
  child.kill("SIGKILL");
  await closed;
}
