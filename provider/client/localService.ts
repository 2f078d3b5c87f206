// The embedded service, for `machines:endpoint: local`: the package of the project, the command on PATH, or one that runs.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
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
}

/** Finds the embedded service, and starts it if it is installed and does not run. */
export async function startLocal(): Promise<LocalAccess> {
  const require = createRequire(join(process.cwd(), "package.json"));
  try {
    require.resolve("machines-service");
  } catch {
    return startCommand();
  }
  return (require("machines-service") as LocalService).startLocal();
}

/** For programs in other languages, whose projects have no npm packages. */
async function startCommand(): Promise<LocalAccess> {
  const run = async (...args: string[]) =>
    (await promisify(execFile)("machines-service", args, { timeout: 60_000 })).stdout.trim();
  try {
    const { url } = JSON.parse(await run("start", "--detach", "--json")) as { url: string };
    return { url, token: await run("token") };
  } catch (error) {
    const { code, stderr } = error as NodeJS.ErrnoException & { stderr?: string };
    const running = code === "ENOENT" ? findRunning() : undefined;
    if (running) return running;
    throw new MachinesError(
      "configuration",
      code === "ENOENT"
        ? 'machines:endpoint is "local", but no embedded service is installed or running: run `npm install machines-service` in this project, or `npm install --global machines-service` for projects without npm packages, or start one elsewhere with `npx machines-service start --detach`'
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
