// Running programs, the Pulumi CLI above all: timed, watched, and ended when the user wants to end.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Stop } from "./options.ts";
import { Watch, type Usage } from "./processes.ts";

/** The result of a run. */
export interface Run {
  readonly seconds: number;
  /** Standard output and error in order. */
  readonly output: string;
  readonly stdout: string;
  readonly processes: readonly Usage[];
}

/** Where a program runs. */
export interface Surroundings {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal;
}

/** How long an interrupted CLI may take to finish its step. */
const grace = 10_000;

/** Runs a program until it exits. @throws Stop with its output when it fails. */
export async function run(command: string, args: readonly string[], { cwd, env, signal }: Surroundings): Promise<Run> {
  signal.throwIfAborted();
  const started = performance.now();
  // In its own process group: ^C reaches it through us, once. The CLI would exit without cleaning up after a second one.
  const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  let [output, stdout] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));
  const watch = child.pid === undefined ? undefined : new Watch(child.pid);
  let last: NodeJS.Timeout | undefined;
  const interrupt = (): void => {
    child.kill("SIGINT");
    last = setTimeout(() => watch?.kill(), grace);
  };
  signal.addEventListener("abort", interrupt, { once: true });
  try {
    const [code] = (await once(child, "close")) as [number | null];
    const seconds = (performance.now() - started) / 1000;
    signal.throwIfAborted();
    if (code !== 0) throw new Stop(`${tail(output)}\n${command} ${args.slice(0, 2).join(" ")} failed.`);
    return { seconds, output, stdout, processes: watch?.stop() ?? [] };
  } catch (error) {
    if (isMissing(error)) throw new Stop(`${command} is not on PATH; npm run bench finds or builds it.`);
    throw error;
  } finally {
    signal.removeEventListener("abort", interrupt);
    clearTimeout(last);
    watch?.stop();
    if (signal.aborted) watch?.kill();
  }
}

/** The last lines of a program's output, indented. */
export const tail = (output: string, lines = 20): string =>
  output
    .trim()
    .split("\n")
    .slice(-lines)
    .map((line) => `  ${line}`)
    .join("\n");

const isMissing = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "ENOENT";
