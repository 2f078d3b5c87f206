// `pulumi-machines console`: opens the console of a stack's service.
import { readEndpoint } from "../provider/client/config.ts";
import { MachinesError, messageOf } from "../provider/client/errors.ts";
import { installedService, runService, startLocal } from "../provider/client/localService.ts";
import type { Streams } from "./terminal.ts";
import { isInProject, stackEndpoint } from "./pulumi.ts";

/** Options of the command. */
export interface ConsoleOptions {
  readonly stack?: string;
  /** Whether a browser may be opened. */
  readonly open: boolean;
}

/**
 * Prints the address of the console, and opens it if this is a terminal. A service of this computer gets a one-time code.
 * @throws MachinesError `configuration` if the stack or its endpoint cannot be read, or if the local service has no console
 */
export async function openConsole({ stack, open: mayOpen }: ConsoleOptions, { out, err }: Streams): Promise<void> {
  const endpoint = await endpointOf(stack);
  const link = await linkOf(endpoint);
  out(`${link}\n`);
  if (!link.includes("#")) err("Sign in there with an access token of the service.");
  if (!mayOpen || !process.stdout.isTTY) return;
  try {
    const { default: open } = await import("open");
    await open(link);
  } catch {
    err("The browser could not be started: open this address in it.");
  }
}

/** The endpoint of the stack, or the local service where there is no project. */
async function endpointOf(stack: string | undefined): Promise<string> {
  const hasProject = stack !== undefined || isInProject(process.cwd());
  const stacked = hasProject ? await stackEndpoint(stack) : undefined;
  const value = stacked ?? (process.env["MACHINES_ENDPOINT"] || (hasProject ? undefined : "local"));
  return readEndpoint({ value, source: stacked === undefined ? "MACHINES_ENDPOINT" : "machines:endpoint" });
}

async function linkOf(endpoint: string): Promise<string> {
  const isLocal = endpoint === "local";
  const installed = await installedService();
  if ("service" in installed) {
    const running = await (isLocal ? installed.service.startLocal() : installed.service.findLocal());
    if (!running || (!isLocal && !isSame(running.url, endpoint))) return `${endpoint}/`;
    return installed.service.consoleLink(running) ?? noConsole(running.url);
  }
  const url = isLocal ? (await startLocal()).url : endpoint;
  try {
    const status = JSON.parse(await runService(installed.command, "status", "--json")) as { readonly url: string };
    if (!isSame(status.url, url)) return `${url}/`;
    return (JSON.parse(await runService(installed.command, "console", "--json")) as { readonly url: string }).url;
  } catch (error) {
    const { code, stderr } = error as { readonly code?: string | number; readonly stderr?: string };
    // The command is not installed, or no service of this user runs here. A token opens the console then.
    if (code === "ENOENT" || code === 127 || code === 3) return `${url}/`;
    throw new MachinesError("configuration", stderr?.trim() || messageOf(error), { cause: error });
  }
}

/** Whether two addresses are the same service of this computer. */
const isSame = (one: string, other: string): boolean =>
  one.replace("//localhost:", "//127.0.0.1:") === other.replace("//localhost:", "//127.0.0.1:");

function noConsole(url: string): never {
  throw new MachinesError(
    "configuration",
    `the service at ${url} has no console: it was started with --console off. Stop it, and start it with --console read`,
  );
}
