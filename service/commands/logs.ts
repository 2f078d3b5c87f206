// The commands logs and url: what the service and its Machines write, and where an App can be opened.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, watchFile } from "node:fs";
import { InvalidArgumentError, type Command } from "commander";
import { reach, streamFrom } from "../local/client.ts";
import { findRunning } from "../local/daemon.ts";
import { logFile, olderLog } from "../local/log.ts";
import { dataFolder } from "../local/options.ts";
import { Problem } from "../local/problem.ts";
import { withTokens } from "../local/orgRequests.ts";
import type { Address } from "../proxy/addresses.ts";
import { hueOf } from "../console/hue.ts";
import type { NamedLine } from "../http/logLines.ts";
import type { Store } from "../store/database.ts";
import { holderOf } from "./holder.ts";
import { machineNamed } from "./machine.ts";
import { momentOf } from "./moment.ts";
import { print, printJson, printLine } from "./print.ts";

/** Colours of Machines; red is for failures. */
const hues = ["cyan", "magenta", "green", "yellow", "blue", "cyanBright", "magentaBright", "greenBright"] as const;

interface Flags {
  readonly data?: string;
}

interface LogsFlags extends Flags {
  readonly follow?: true;
  readonly lines: number;
  /** Milliseconds since 1970. */
  readonly since?: number;
}

async function logs(
  app: string | undefined,
  machine: string | undefined,
  _: LogsFlags,
  command: Command,
): Promise<void> {
  const { data, ...flags } = command.optsWithGlobals<LogsFlags>();
  const folder = dataFolder(data);
  if (app !== undefined) return logsOfApp(folder, app, machine, flags);
  if (flags.since !== undefined) throw new Problem("--since needs an App; the log of the service has --lines");
  const unit = findRunning(folder)?.unit;
  if (unit === undefined) logsOfService(folder, flags);
  else await journalOf(unit, flags);
}

/** systemd keeps the log of its units. */
async function journalOf(unit: string, { follow, lines }: LogsFlags): Promise<void> {
  const args = ["--unit", unit, "--output", "cat", "--no-pager", "--lines", String(lines)];
  const child = spawn("journalctl", [...args, ...(follow ? ["--follow"] : [])], { stdio: "inherit" });
  const [code] = (await once(child, "exit")) as [number | null];
  process.exitCode = code ?? 1;
}

/** Sends a request outside of the interface for an App, of whose id its path may be made, and handles the lines of the answer. */
async function eachLine(
  folder: string,
  app: string,
  path: (store: Store, id: string) => string,
  handle: (line: string) => void,
): Promise<void> {
  const service = reach(folder);
  try {
    const { slug, app: id = "" } = holderOf(service.store, { app }, folder);
    const at = path(service.store, id);
    // Following has no end, and a killed command cannot revoke its token.
    const tokens = { name: "machines-service logs", role: "read", lifetimeMs: 24 * 3600_000 } as const;
    await withTokens(service, tokens, async ({ tokenOf }) => {
      for await (const line of streamFrom(folder, await tokenOf(slug), at)) handle(line);
    });
  } finally {
    await service.close();
  }
}

async function logsOfApp(
  folder: string,
  app: string,
  machine: string | undefined,
  { follow, lines, since }: LogsFlags,
): Promise<void> {
  const path = (store: Store, id: string): string => {
    const query = new URLSearchParams({
      lines: String(lines),
      follow: String(follow === true),
      ...(machine === undefined ? {} : { machine: machineNamed(store, { app, id }, machine) }),
      ...(since === undefined ? {} : { since: new Date(since).toISOString() }),
    });
    return `/local/apps/${encodeURIComponent(app)}/logs?${query.toString()}`;
  };
  await eachLine(folder, app, path, (line) => {
    const { machine: id, name, time, text } = JSON.parse(line) as NamedLine;
    printLine([`${time.slice(0, 23)}Z`, "dim"], [name, hues[hueOf(id, hues.length)] ?? "cyan"], text);
  });
}

async function url(app: string, _: Flags, command: Command): Promise<void> {
  const { data, json } = command.optsWithGlobals<Flags & { readonly json?: true }>();
  await eachLine(
    dataFolder(data),
    app,
    () => `/local/apps/${encodeURIComponent(app)}/addresses`,
    (line) => {
      const { addresses } = JSON.parse(line) as { readonly addresses: readonly Address[] };
      if (json) return printJson(addresses);
      if (addresses.length === 0) throw new Problem(`App ${app} has no Machine with a service that has ports`);
      for (const address of addresses) print(address.url);
    },
  );
}

function logsOfService(folder: string, { follow, lines }: LogsFlags): void {
  const file = logFile(folder);
  if (!existsSync(file)) throw new Problem(`there is no log at ${file} yet`);
  const text = readFileSync(file, "utf8");
  const all = text.split("\n").slice(0, -1);
  if (all.length > 0 && lines > 0) print(all.slice(-lines).join("\n"));
  if (!follow) return;
  let shown = Buffer.byteLength(text);
  watchFile(file, { interval: 200 }, () => {
    const now = readFileSync(file);
    // The log was rotated. The lines before that which were not shown yet are in the old file.
    const isAnother = now.length < shown;
    if (isAnother && existsSync(olderLog(folder))) process.stdout.write(readFileSync(olderLog(folder)).subarray(shown));
    process.stdout.write(now.subarray(isAnother ? 0 : shown));
    shown = now.length;
  });
}

function lineCount(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("It must be a number of lines.");
  return Number(text);
}

/** Adds the commands that show logs and addresses. */
export function addLogs(program: Command): void {
  program
    .command("logs [app] [machine]")
    .description("show the output of an App's Machines (with containers), or the log of the background service")
    .option("-f, --follow", "keep showing new lines")
    .option("-n, --lines <count>", "number of lines to begin with", lineCount, 50)
    .option("--since <time>", "only later lines: a duration such as 10m, or a time", momentOf)
    .action(logs);
  program
    .command("url <app>")
    .description("print the URLs of an App (with containers)")
    .option("--json", "print a JSON array")
    .action(url);
}
