#!/usr/bin/env node
// The machines-service command.
import "./requireNode.ts";
import { closeSync, existsSync, readFileSync, watchFile } from "node:fs";
import { join } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { parseDuration } from "../api/schema.ts";
import { createIds, systemRandom } from "./ids.ts";
import { delayProfiles, type DelayProfile } from "./lifecycle/delays.ts";
import {
  dataFolder,
  findRunning,
  logFile,
  startLocal,
  StartError,
  stopLocal,
  type LocalOptions,
} from "./local/daemon.ts";
import { parseListen, report, serve } from "./local/serve.ts";
import { Store, StoreError } from "./store/database.ts";
import type { Running } from "./store/lock.ts";
import { tokenFile } from "./store/tokenFile.ts";
import { addToken } from "./store/tokens.ts";

const defaultListen = "127.0.0.1:4280";

interface StartFlags {
  readonly listen?: string;
  readonly data?: string;
  readonly json?: true;
  readonly foreground?: true;
  readonly report?: true;
  readonly strict?: true;
  readonly delays?: DelayProfile;
  readonly allowHost?: string[];
  readonly allowRemote?: true;
}

const print = (text: string): void => void process.stdout.write(`${text}\n`);

function printReady(running: Running, json: boolean): void {
  const { url, pid, data } = running;
  print(json ? JSON.stringify({ url, pid, data }) : `machines-service is ready at ${url} (pid ${pid}, data ${data})`);
}

function localOptions(flags: StartFlags): LocalOptions {
  const { data, listen, delays, strict, allowHost, allowRemote } = flags;
  return {
    data: dataFolder(data),
    ...(listen === undefined ? {} : { listen }),
    ...(delays === undefined ? {} : { delays }),
    ...(strict === undefined ? {} : { strict }),
    ...(allowHost === undefined ? {} : { allowHosts: allowHost }),
    ...(allowRemote === undefined ? {} : { allowRemote }),
  };
}

async function start(flags: StartFlags): Promise<void> {
  const options = localOptions(flags);
  if (flags.foreground) {
    try {
      const running = await serve({ ...options, listen: flags.listen ?? defaultListen });
      if (!flags.report) return printReady(running, flags.json === true);
      report(running);
      closeSync(3);
    } catch (error) {
      if (flags.report) report({ error: sentence(error) });
      throw error;
    }
    return;
  }
  if (flags.listen !== undefined) requireSameAddress(findRunning(dataFolder(flags.data)), flags.listen);
  const running = await startLocal({ ...options, listen: flags.listen ?? defaultListen });
  if (flags.listen !== undefined) requireSameAddress(running, flags.listen);
  printReady(running, flags.json === true);
}

/** A service that runs already is what `start` gives, unless another address was asked for. */
function requireSameAddress(running: Running | undefined, listen: string): void {
  if (!running) return;
  const { host, port } = parseListen(listen);
  const url = new URL(running.url);
  if ((port !== 0 && String(port) !== url.port) || host !== url.hostname.replace(/^\[|\]$/g, "")) {
    throw new StartError(
      `machines-service runs already at ${running.url} (pid ${running.pid}) for ${running.data}; stop it first, or use another --data folder`,
    );
  }
}

async function status({ data, json }: { data?: string; json?: true }): Promise<void> {
  const folder = dataFolder(data);
  const running = findRunning(folder);
  if (running) return printReady(running, json === true);
  print(json ? JSON.stringify({ running: false, data: folder }) : `machines-service is not running (data ${folder})`);
  process.exitCode = 3;
}

async function stop({ data }: { data?: string }): Promise<void> {
  const folder = dataFolder(data);
  const stopped = await stopLocal(folder);
  print(
    stopped ? `machines-service has stopped (pid ${stopped.pid})` : `machines-service is not running (data ${folder})`,
  );
}

function logs({ data, follow, lines }: { data?: string; follow?: true; lines: number }): void {
  const file = logFile(dataFolder(data));
  if (!existsSync(file)) throw new StartError(`there is no log at ${file} yet`);
  const text = readFileSync(file, "utf8");
  const all = text.split("\n").slice(0, -1);
  if (all.length > 0 && lines > 0) print(all.slice(-lines).join("\n"));
  if (!follow) return;
  let shown = Buffer.byteLength(text);
  watchFile(file, { interval: 200 }, () => {
    const now = readFileSync(file);
    process.stdout.write(now.subarray(now.length < shown ? 0 : shown));
    shown = now.length;
  });
}

function token({ data, org, expires }: { data?: string; org: string; expires?: number }): void {
  const folder = dataFolder(data);
  const file = join(folder, "service.db");
  if (!existsSync(file)) throw new StartError(`there is no service in ${folder} yet; run machines-service start first`);
  if (org === "personal" && expires === undefined) return print(readFileSync(tokenFile(folder), "utf8").trim());
  const store = new Store(file);
  const made = createIds(systemRandom()).accessToken();
  addToken(store, made, org, Date.now(), expires === undefined ? null : Date.now() + expires);
  store.close();
  print(made);
}

function durationMs(text: string): number {
  const nanoseconds = parseDuration(text);
  if (nanoseconds === undefined) throw new InvalidArgumentError('It must be a duration such as "1h" or "30m".');
  return nanoseconds / 1e6;
}

function lineCount(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("It must be a number of lines.");
  return Number(text);
}

function slug(text: string): string {
  if (!/^[a-z0-9-]{1,62}$/.test(text)) throw new InvalidArgumentError("It must be 1 to 62 of a-z, 0-9 and -.");
  return text;
}

const data = (): Option =>
  new Option("--data <folder>", "folder of the data (default: $MACHINES_SERVICE_DATA or ~/.machines-service)");

const program = new Command("machines-service")
  .description("A complete, self-hosted Machines Control Service.")
  .showHelpAfterError("(add --help for the options)");
program
  .command("start")
  .description("start the service in the background, unless it runs already")
  .addOption(data())
  .option("--listen <address>", `address to listen at; port 0 takes a free one (default: ${defaultListen})`)
  .option("--json", "print a JSON object")
  .option("--foreground", "stay in the foreground; the log goes to stderr")
  .option("--strict", "refuse unknown fields and check the service's own answers")
  .addOption(new Option("--delays <profile>", "how long things take").choices(Object.keys(delayProfiles)))
  .option("--allow-host <name...>", "host name requests may be for, beside localhost")
  .option("--allow-remote", "listen at an address other computers can reach")
  .addOption(new Option("--report", "tell the process that started this one").hideHelp())
  .action(start);
program
  .command("status")
  .description("show whether the service runs (exit status 3 when not)")
  .addOption(data())
  .option("--json", "print a JSON object")
  .action(status);
program.command("stop").description("stop the service and wait until it has ended").addOption(data()).action(stop);
program
  .command("logs")
  .description("show the log of the service in the background")
  .addOption(data())
  .option("-f, --follow", "go on showing what is added")
  .option("-n, --lines <count>", "lines to begin with", lineCount, 50)
  .action(logs);
program
  .command("token")
  .description(
    "print the access token of organization personal, or make one for another organization or for a limited time",
  )
  .addOption(data())
  .option("--org <slug>", "organization; made when there is none of that name", slug, "personal")
  .option("--expires <duration>", "time the token is good for", durationMs)
  .action(token);

function sentence(error: unknown): string {
  if (error instanceof StartError || error instanceof StoreError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

program.parseAsync().catch((error: unknown) => {
  process.stderr.write(`machines-service: ${sentence(error)}\n`);
  process.exit(1);
});
