// Runs other programs: silently with progress messages, or in the foreground with ^C handled; and prints messages.
import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { become, forCommands } from "./environment.mjs";

/** A failure that the user can correct: printed as one sentence, without a stack. */
export class Stop extends Error {}

/** A short progress message on stderr, because stdout is for results. */
export const say = (line) => process.stderr.write(`${line}\n`);

/**
 * Runs a script's main function: a Stop is printed as its sentence, with exit code 1. From here on, this process and the programs that it
 * starts have an environment without the user's settings for other work.
 */
export async function main(run) {
  become(forCommands(process.env));
  try {
    process.exitCode = (await run()) ?? 0;
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    say(error.message);
    process.exitCode = 1;
  }
}

const seconds = (since) => `${Math.round((Date.now() - since) / 1000)} s`;

/** Prints `line()` with the elapsed time every 30 s, so that a long step visibly runs. Returns a function that ends it. */
export function heartbeat(line) {
  const since = Date.now();
  const timer = setInterval(() => say(`  ${line()}, ${seconds(since)}`), 30_000);
  return () => clearInterval(timer);
}

/** Runs a program and collects its output; `alive` is printed every 30 s (a function gets the output so far). */
export async function quiet(command, args, { alive, timeout, input, ...options } = {}) {
  let stdout = "";
  let stderr = "";
  const text = () => (typeof alive === "function" ? alive(stdout + stderr) : alive);
  const end = alive === undefined ? () => {} : heartbeat(text);
  try {
    const child = spawn(command, args, {
      ...options,
      timeout,
      stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    });
    child.stdout.on("data", (chunk) => (stdout += chunk));
    child.stderr.on("data", (chunk) => (stderr += chunk));
    child.stdin?.on("error", () => {}); // it exited without reading; its exit code decides
    child.stdin?.end(input);
    const code = await new Promise((resolve) => {
      child.on("error", (error) => {
        stderr += error.message;
        resolve(127);
      });
      child.on("close", (status) => resolve(status ?? 1));
    });
    return { code, stdout, stderr, output: stdout + stderr };
  } finally {
    end();
  }
}

/** The last lines of a program's output, indented, to explain a failure. */
export const tail = (output, lines = 15) =>
  output
    .trim()
    .split("\n")
    .slice(-lines)
    .map((line) => `  ${line}`)
    .join("\n");

/**
 * Runs a program on our terminal and waits for it, whatever signals arrive. ^C reaches the whole process group, including
 * the child, and a second signal would make the Pulumi CLI exit without cleaning up. A signal sent to us alone must be
 * passed on. A process of the same group that only dies of signals shows which of the two it was.
 */
export async function foreground(command, args, options = {}) {
  const canary = spawn("cat", [], { stdio: ["pipe", "ignore", "ignore"] }); // ends with us: its input closes
  canary.on("error", () => {});
  canary.unref();
  const child = spawn(command, args, { ...options, stdio: "inherit" });
  const handOnLater = async (signal) => {
    await sleep(100);
    if (canary.signalCode === null) child.kill(signal);
  };
  const handOn = (signal) => void handOnLater(signal);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.on(signal, handOn);
  try {
    return await new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code, signal) =>
        resolve(signal === null ? code : 128 + ({ SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }[signal] ?? 9)),
      );
    });
  } finally {
    for (const signal of signals) process.off(signal, handOn);
    canary.stdin.end();
  }
}
