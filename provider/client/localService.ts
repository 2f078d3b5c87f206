// The embedded service, for `machines:endpoint: local`: the package of the project, the command on PATH, or one that runs.
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { MachinesError, messageOf } from "./errors.ts";

/** The address of the embedded service, and a token for it. */
export interface LocalAccess {
  readonly url: string;
  readonly token: string;
}

/** What the package exports. It is found in the user's project, never bundled. */
interface LocalService {
  startLocal(): Promise<LocalAccess>;
  findLocal(): Promise<LocalAccess | undefined>;
  consoleLink(service: LocalAccess): string | undefined;
}

/** The embedded service as it is installed: the package of this folder's project, or else the command that runs it. */
export async function installedService(): Promise<{ readonly service: LocalService } | { readonly command: string }> {
  const require = createRequire(join(process.cwd(), "package.json"));
  try {
    require.resolve("machines-service");
  } catch {
    return { command: "machines-service" };
  }
  // The service starts on the Node.js that loaded it.
  if (isOnNode()) return { service: require("machines-service") as LocalService };
  const commands = (require.resolve.paths("machines-service") ?? []).map((dir) => join(dir, ".bin/machines-service"));
  return { command: commands.find((command) => existsSync(command)) ?? "machines-service" };
}

/** Whether this process is a Node.js that can start others: the plugin's standalone executable, Bun and Deno are none. */
function isOnNode(): boolean {
  const { bun, deno }: Readonly<Record<string, string | undefined>> = process.versions;
  return bun === undefined && deno === undefined && !process.getBuiltinModule("node:sea").isSea();
}

/** Finds the embedded service, and starts it if it is installed and does not run. */
export async function startLocal(): Promise<LocalAccess> {
  const installed = await installedService();
  return "service" in installed ? installed.service.startLocal() : startCommand(installed.command);
}

/** Runs the command of the embedded service and returns its output. */
export const runService = async (command: string, ...args: string[]): Promise<string> =>
  (await promisify(execFile)(command, args, { timeout: 60_000 })).stdout.trim();

const notInstalled =
  "no embedded service is installed or running: run `npm install machines-service` in this project, or `npm install --global machines-service` for projects without npm packages, or start one elsewhere with `npx machines-service start --detach`; the service needs Node.js 22.19 or later";
const withoutNode =
  "the embedded service needs Node.js 22.19 or later, and there is no `node` on PATH: install it from https://nodejs.org, or set machines:endpoint to a service that runs elsewhere";

/** As the package starts it: at a free port. */
const start = ["start", "--detach", "--json", "--listen", "127.0.0.1:0"];

/** For programs in other languages, whose projects have no npm packages. */
async function startCommand(command: string): Promise<LocalAccess> {
  try {
    const { url } = JSON.parse(await runService(command, ...start)) as { url: string };
    return { url, token: await runService(command, "token") };
  } catch (error) {
    const { code, stderr } = error as { code?: string | number; stderr?: string };
    // `env`, which a command begins with, exits with 127 if there is no `node`.
    const isMissing = code === "ENOENT" || code === 127;
    // It may also listen at another address, or have been started with a Node.js that is not on this PATH.
    const running = findRunning();
    if (running) return running;
    throw new MachinesError(
      "configuration",
      isMissing
        ? `machines:endpoint is "local", but ${code === 127 ? withoutNode : notInstalled}`
        : `the embedded service did not start: ${stderr?.trim() || messageOf(error)}`,
    );
  }
}

/** A service that another project has started: `service.json` and `token` in its data folder (docs/service.md, What is in the data folder). */
function findRunning(): LocalAccess | undefined {
  const folder = process.env["MACHINES_SERVICE_DATA"] || join(homedir(), ".machines-service");
  try {
    const { url, pid } = JSON.parse(readFileSync(join(folder, "service.json"), "utf8")) as { url: string; pid: number };
    process.kill(pid, 0); // throws if the process is gone: a killed service leaves its file
    return { url, token: readFileSync(join(folder, "token"), "utf8").trim() };
  } catch {
    return undefined;
  }
}
