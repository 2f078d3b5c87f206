// Running programs, the Pulumi CLI above all: timed, watched, and ended when the user wants to end.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Stop } from "./options.ts";
import { Watch, type Usage } from "./processes.ts";

/** What a run came to. */
export interface Run {
  readonly seconds: number;
  /** Standard output and error as they came. */
  readonly output: string;
  readonly stdout: string;
  readonly processes: readonly Usage[];
}

/** Where a program runs. */
export interface Surroundings {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Aborted when the user wants to end. */
  readonly signal: AbortSignal;
}

/** How long a CLI that was interrupted may take to end what it is doing. */
const grace = 10_000;

/** Runs a program to its end. @throws Stop with what it said when it fails. */
export async function run(command: string, args: readonly string[], { cwd, env, signal }: Surroundings): Promise<Run> {
  signal.throwIfAborted();
  const started = performance.now();
  // In a process group of its own: ^C reaches it through us, once. The CLI takes a second one as an order to drop everything.
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

/** The last lines of what a program said, indented. */
export const tail = (output: string, lines = 20): string =>
  output
    .trim()
    .split("\n")
    .slice(-lines)
    .map((line) => `  ${line}`)
    .join("\n");

const isMissing = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "ENOENT";
