// The command audit: the requests of the history that changed something or were refused, filtered, as a table or for other programs.
import { InvalidArgumentError, Option, type Command } from "commander";
import { printable } from "../../api/printable.ts";
import type { RequestEntry, Stored } from "../history/entry.ts";
import { dataFolder } from "../local/options.ts";
import { rfc3339 } from "../time/clock.ts";
import { eachEntry } from "./history.ts";
import { momentOf } from "./moment.ts";
import { printJson, printTable, type Cell } from "./print.ts";

interface Flags {
  readonly data?: string;
  readonly org?: string;
  readonly app?: string;
  readonly actor?: string;
  /** Milliseconds since 1970. */
  readonly since?: number;
  readonly until?: number;
  readonly operation?: RegExp;
  readonly status?: (status: number | null) => boolean;
  readonly json?: true;
  readonly csv?: true;
}

type Request = RequestEntry & Pick<Stored, "seq">;

/** A pattern in which `*` stands for any characters. */
function operationPattern(text: string): RegExp {
  if (!/^[\w.*]{1,100}$/.test(text))
    throw new InvalidArgumentError(
      'It must be an operation such as machines.create, or a pattern such as "machines.*".',
    );
  return new RegExp(`^${text.replaceAll(".", "\\.").replaceAll("*", ".*")}$`, "i");
}

/** Which statuses are meant: one, a class, or all that failed. */
function statusFilter(text: string): (status: number | null) => boolean {
  if (text === "failed") return (status) => status === null || status >= 400;
  const [, first] = /^([1-5])xx$/i.exec(text) ?? [];
  if (first !== undefined) return (status) => status !== null && Math.floor(status / 100) === Number(first);
  if (!/^[1-5]\d\d$/.test(text))
    throw new InvalidArgumentError("It must be a status such as 403, a class such as 4xx, or failed.");
  return (status) => status === Number(text);
}

/** Whether a token is meant by its id, or by a part of its name: that of a workflow has its repository and who started it. */
function isActor({ token, tokenName }: Request, actor: string): boolean {
  return token === actor || tokenName?.toLowerCase().includes(actor.toLowerCase()) === true;
}

const isWanted = (entry: Request, { actor, until, operation, status }: Flags): boolean =>
  (until === undefined || entry.at <= until) &&
  (actor === undefined || isActor(entry, actor)) &&
  (operation === undefined || operation.test(entry.operation)) &&
  (status === undefined || status(entry.status));

/** Calls back with the requests that are wanted. */
async function eachRequest({ data, ...flags }: Flags, use: (entry: Request) => void): Promise<void> {
  await eachEntry(dataFolder(data), flags, (line) => {
    const entry = JSON.parse(line) as Stored;
    if (entry.kind === "request" && isWanted(entry, flags)) use(entry);
  });
}

const columns = ["time", "org", "app", "actor", "token", "operation", "status", "method", "path", "about"] as const;
const others = ["update", "urn", "request"] as const;

/** What is shown of a request. */
function rowOf(entry: Request): Readonly<Record<(typeof columns)[number] | (typeof others)[number], string>> {
  const { at, org, app, token, tokenName, operation, status, method, path, about, update, urn, id } = entry;
  return {
    ...{ time: rfc3339(at), org, app: app ?? "", actor: tokenName ?? token, token, operation, method, path },
    ...{ status: status === null ? "lost" : String(status), about: about ?? "" },
    ...{ update: update ?? "", urn: urn ?? "", request: id },
  };
}

/** A field of CSV (RFC 4180). Spreadsheets take a text that begins with one of these characters for a formula, and names are of others. */
function csvField(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const printCsv = (fields: readonly string[]): void =>
  void process.stdout.write(`${fields.map((field) => csvField(printable(field))).join(",")}\r\n`);

function cellsOf(entry: Request): readonly Cell[] {
  const { time, org, app, actor, operation, status, path, about } = rowOf(entry);
  const failed = entry.status === null || entry.status >= 400;
  const what = about === "" ? path : `${path} (${about})`;
  return [time, org, app || "-", actor, operation, failed ? [status, "red"] : status, what];
}

async function audit(_: Flags, command: Command): Promise<void> {
  const flags = command.optsWithGlobals<Flags>();
  if (flags.json) return eachRequest(flags, printJson);
  if (flags.csv) {
    const names = [...columns, ...others];
    printCsv(names);
    return eachRequest(flags, (entry) => {
      const row = rowOf(entry);
      printCsv(names.map((name) => row[name]));
    });
  }
  const found: Request[] = [];
  await eachRequest(flags, (entry) => found.push(entry));
  // Those of several organizations come one organization after the other.
  found.sort((a, b) => a.at - b.at || a.seq - b.seq);
  printTable(["TIME", "ORG", "APP", "ACTOR", "OPERATION", "STATUS", "PATH"], found.map(cellsOf));
}

/** Adds the command. */
export function addAudit(program: Command): void {
  const moment = (flags: string, description: string): Option => new Option(flags, description).argParser(momentOf);
  program
    .command("audit")
    .description("show who changed what, or tried to: the requests of the history; the service may run")
    .option(
      "--actor <text>",
      "only of the token with this id, or with this text in its name, such as a person or a workflow",
    )
    .option("--org <slug>", "only of this organization (default: all)")
    .option("--app <name>", "only of this app")
    .addOption(moment("--since <time>", "only later ones: a duration such as 10m, or a time"))
    .addOption(moment("--until <time>", "only earlier ones"))
    .addOption(
      new Option("--operation <pattern>", 'only of these operations, such as "machines.*"').argParser(operationPattern),
    )
    .addOption(new Option("--status <status>", "only with this status: 403, 4xx, or failed").argParser(statusFilter))
    .addOption(new Option("--json", "print JSON lines").conflicts("csv"))
    .option("--csv", "print comma-separated values")
    .action(audit);
}
