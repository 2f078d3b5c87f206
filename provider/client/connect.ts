// One client per endpoint and token for the whole process, so that connections, pacing and caches are shared.
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { exposureOf, type Config } from "./config.ts";
import { MachinesError, messageOf } from "./errors.ts";
import { createApi, type Api } from "./api.ts";
import type { ClientParts } from "./handler.ts";
import { systemClock } from "./clock.ts";
import { httpTransport } from "./transport.ts";

const clients = new Map<string, Api>();
const toldOfExposure = new Set<string>();

/** Warns of a token that would go over the network in clear text, once for each endpoint. */
export function warnOfExposure(config: Config, warn: (message: string) => void): void {
  const message = exposureOf(config);
  if (message === undefined || toldOfExposure.has(message)) return;
  toldOfExposure.add(message);
  warn(message);
}

/** The client for a configuration. Nothing is sent, and `local` is not started, before the first request. */
export function clientFor(config: Config, warn: (message: string) => void): Api {
  const key = JSON.stringify(config);
  let client = clients.get(key);
  if (!client) {
    warnOfExposure(config, warn);
    client = createApi({
      config,
      connect: connector(config),
      transport: httpTransport(),
      clock: systemClock,
    });
    clients.set(key, client);
  }
  return client;
}

function connector({ endpoint, token }: Config): ClientParts["connect"] {
  if (endpoint !== "local") return () => Promise.resolve({ url: endpoint, token: token ?? "" });
  let running: Promise<{ url: string; token: string }> | undefined;
  return () => {
    running ??= startLocal().catch((error: unknown) => {
      running = undefined;
      throw error;
    });
    return running;
  };
}

/** The embedded service as its package exports it. It is found in the user's project, never bundled. */
interface LocalService {
  startLocal(): Promise<{ url: string; token: string }>;
}

async function startLocal(): Promise<{ url: string; token: string }> {
  const require = createRequire(join(process.cwd(), "package.json"));
  try {
    require.resolve("machines-service");
  } catch {
    return startCommand();
  }
  return (require("machines-service") as LocalService).startLocal();
}

/** For programs in other languages, whose projects hold no npm packages. */
async function startCommand(): Promise<{ url: string; token: string }> {
  const run = async (...args: string[]) =>
    (await promisify(execFile)("machines-service", args, { timeout: 60_000 })).stdout.trim();
  try {
    const { url } = JSON.parse(await run("start", "--detach", "--json")) as { url: string };
    return { url, token: await run("token") };
  } catch (error) {
    const { code, stderr } = error as NodeJS.ErrnoException & { stderr?: string };
    throw new MachinesError(
      "configuration",
      code === "ENOENT"
        ? 'machines:endpoint is "local", but the embedded service is not installed: run `npm install machines-service` in this project, or `npm install --global machines-service` for projects without npm packages'
        : `the embedded service did not start: ${stderr?.trim() || messageOf(error)}`,
    );
  }
}
