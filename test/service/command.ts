// Runs the command in a separate process for tests, in folders that are removed after the test.
import { spawn, type ChildProcess } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, vi } from "vitest";
import { findRunning } from "../../service/local/daemon.ts";
import { isLocked } from "../../service/store/lock.ts";
import { serviceMain } from "../support/built.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { hang } from "../support/patience.mts";
import { kill } from "../support/processes.ts";

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Starts the command as a process. */
function begin(args: readonly string[], env: NodeJS.ProcessEnv, cwd?: string): ChildProcess {
  return spawn(process.execPath, [serviceMain, ...args], {
    env,
    ...(cwd === undefined ? {} : { cwd }),
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** Collects the output of a process until it exits. */
function ended(child: ChildProcess): Promise<Ended> {
  return new Promise((resolve, reject) => {
    let [out, err] = ["", ""];
    child.stdout?.on("data", (part: Buffer) => (out += part.toString()));
    child.stderr?.on("data", (part: Buffer) => (err += part.toString()));
    child.once("error", reject).once("close", (code) => resolve({ code, out, err }));
  });
}

/** Runs the command until it exits. */
export const command = (args: readonly string[], env: NodeJS.ProcessEnv = process.env, cwd?: string): Promise<Ended> =>
  ended(begin(args, env, cwd));

/** Runs the command with an output that no one reads. */
export function unread(args: readonly string[]): Promise<Ended> {
  const child = begin(args, process.env);
  child.stdout?.destroy();
  return ended(child);
}

/** A service in the foreground: ready, and stopped after the test. */
export async function foreground(data: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
  const listen = env["MACHINES_SERVICE_LISTEN"] === undefined ? ["--listen", "127.0.0.1:0"] : [];
  const child = begin(["start", "--data", data, ...listen, "--json", ...args], { ...process.env, ...env });
  afterThisTest(() => void (child.exitCode === null && child.kill("SIGKILL")));
  const end = ended(child);
  let said = "";
  child.stderr?.on("data", (part: Buffer) => (said += part.toString()));
  const line = new Promise<string>((resolve) => child.stdout?.once("data", (part: Buffer) => resolve(part.toString())));
  const first = await Promise.race([line, end]);
  if (typeof first !== "string") throw new Error(`it ended with ${first.code}: ${first.err}`);
  const { url, pid, admin } = JSON.parse(first) as { url: string; pid: number; admin?: string };
  return { url, pid, admin, end, said: () => said, token: readFileSync(join(data, "token"), "utf8").trim() };
}

/** Starts a service in the background. */
export const start = (data: string, ...more: string[]): Promise<Ended> =>
  command(["start", "--detach", "--data", data, "--listen", "127.0.0.1:0", ...more]);

/** Path of a data folder that does not exist yet; its parent belongs only to the test. */
export function folder(): string {
  const outer = mkdtempSync(join(tmpdir(), "machines-command-"));
  // The users of Postgres servers pass through it.
  chmodSync(outer, 0o711);
  const made = join(outer, "data");
  afterThisTest(() => {
    const left = findRunning(made);
    if (left) kill([left.pid]);
    // A killed process may still be exiting.
    rmSync(join(made, ".."), { recursive: true, force: true, maxRetries: 10 });
  });
  return made;
}

/** Waits until no process uses a data folder. */
export const released = (data: string): Promise<void> =>
  vi.waitFor(() => expect(isLocked(data)).toBe(false), { timeout: hang, interval: 5 });
