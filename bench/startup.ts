// How long a provider takes until it can be called, and how much memory it has by then.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Binding } from "./bindings.ts";
import { median, type Pair, type SideName } from "./measure.ts";
import { residentMb } from "./processes.ts";
import type { Workbench } from "./workbench.ts";

/** What a start costs. */
export interface Startup {
  readonly binding: Binding["name"];
  readonly side: SideName;
  /** From its start to the port on its standard output: median and all of them. */
  readonly milliseconds: number;
  readonly all: readonly number[];
  /** Resident memory when it shows its port; undefined where that cannot be told. */
  readonly mb: number | undefined;
}

const times = 7;

/** Starts the provider of a side several times. */
export async function measureStartup(bench: Workbench, pair: Pair, side: SideName): Promise<Startup> {
  const folder = pair.binding[side].providerFolder(bench);
  const command = folder === undefined ? pair.binding.executable : join(folder, pair.binding.executable);
  const found: { ms: number; mb: number | undefined }[] = [];
  for (let i = 0; i < times; i++) found.push(await startOnce(command, pair.surroundings(side), bench.signal));
  const all = found.map(({ ms }) => Math.round(ms));
  const memory = found.flatMap(({ mb }) => mb ?? []);
  return {
    binding: pair.binding.name,
    side,
    milliseconds: median(all),
    all,
    mb: memory.length > 0 ? median(memory) : undefined,
  };
}

async function startOnce(command: string, { cwd, env }: { cwd: string; env: NodeJS.ProcessEnv }, signal: AbortSignal) {
  signal.throwIfAborted();
  const started = performance.now();
  // The address is that of the engine, which is not there: nothing is called.
  const child = spawn(command, ["127.0.0.1:1"], { cwd, env, stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(child, "exit");
  try {
    await once(createInterface(child.stdout), "line", {
      signal: AbortSignal.any([signal, AbortSignal.timeout(30_000)]),
    });
    return { ms: performance.now() - started, mb: child.pid === undefined ? undefined : residentMb(child.pid) };
  } finally {
    child.kill("SIGKILL");
    await ended.catch(() => undefined);
  }
}
