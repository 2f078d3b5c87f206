// The command logs, which shows the log of the background service.
import { existsSync, readFileSync, watchFile } from "node:fs";
import { InvalidArgumentError, type Command } from "commander";
import { logFile, olderLog } from "../local/log.ts";
import { dataFolder } from "../local/options.ts";
import { Problem } from "../local/problem.ts";
import { print } from "./print.ts";

interface LogsFlags {
  readonly data?: string;
  readonly follow?: true;
  readonly lines: number;
}

function logs(_: LogsFlags, command: Command): void {
  const { data, follow, lines } = command.optsWithGlobals<LogsFlags>();
  const folder = dataFolder(data);
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

/** Adds the command that shows the log. */
export function addLogs(program: Command): void {
  program
    .command("logs")
    .description("show the log of the background service")
    .option("-f, --follow", "keep showing new lines")
    .option("-n, --lines <count>", "number of lines to begin with", lineCount, 50)
    .action(logs);
}
