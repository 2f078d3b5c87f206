// The built command, run like by a user.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "../workbench.ts";

/** A running service. */
export interface Local {
  readonly url: string;
  readonly pid: number;
  readonly token: string;
}

const main = join(root, "service/dist/service/main.js");
/** Runs a command, and returns what it prints. */
export const command = async (...args: string[]): Promise<string> =>
  (await promisify(execFile)(process.execPath, [main, ...args])).stdout;

/** Starts the service of a data folder, in the background. */
export async function start(data: string, ...more: readonly string[]): Promise<Local> {
  const started = await command("start", "--detach", "--json", "--data", data, "--listen", "127.0.0.1:0", ...more);
  const { url, pid } = JSON.parse(started) as { url: string; pid: number };
  return { url, pid, token: readFileSync(join(data, "token"), "utf8").trim() };
}

/** Stops it, if it runs. */
export async function stop(data: string): Promise<void> {
  await command("stop", "--data", data);
}
