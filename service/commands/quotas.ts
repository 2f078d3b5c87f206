// The command quota: how much organizations and Apps may have. It works on the store directly, also while the service runs.
import { InvalidArgumentError, Option, type Command } from "commander";
import { dataFolder } from "../local/options.ts";
import { Problem } from "../local/problem.ts";
import { ownCommand } from "../ownCommand.ts";
import type { Store } from "../store/database.ts";
import {
  listQuotas,
  removeQuotas,
  setQuotas,
  type Limits,
  type ListedQuota,
  type QuotaHolder,
  type QuotaKind,
} from "../store/quotas.ts";
import { holderOf, requireOrg } from "./holder.ts";
import { print, printJson, printTable } from "./print.ts";
import { withStore } from "./tokens.ts";

interface Flags {
  readonly data?: string;
  readonly org?: string;
  readonly app?: string;
  readonly json?: true;
}

/** A limit as an option has it. */
type Limit = number | "none";

/** The limits by the names of their options. */
interface LimitFlags {
  readonly machines?: Limit;
  readonly memory?: Limit;
  readonly volumes?: Limit;
  readonly volumeGb?: Limit;
  readonly clusters?: Limit;
  readonly requests?: Limit;
}

function limitOf(text: string): Limit {
  if (text === "none") return text;
  if (!/^\d{1,12}$/.test(text)) throw new InvalidArgumentError('It must be a whole number, or "none".');
  return Number(text);
}

function rateOf(text: string): Limit {
  const rate = limitOf(text);
  if (rate === 0) throw new InvalidArgumentError("It must be at least 1 request per second.");
  return rate;
}

/** Whose quotas are meant, and how they are called. */
function quotaHolder(store: Store, { org, app }: Flags, folder: string): { holder: QuotaHolder; name: string } {
  const { slug, app: id } = holderOf(store, { org, app }, folder);
  const holder = { org: requireOrg(store, slug, folder).id, app: id };
  return { holder, name: app === undefined ? `organization ${slug}` : `app ${app}` };
}

/** The limits that options give, by kind. */
function limitsIn({ machines, memory, volumes, volumeGb, clusters, requests }: LimitFlags): Limits {
  const all: Readonly<Record<QuotaKind, Limit | undefined>> = {
    ...{ machines, memory, volumes, "volume-gb": volumeGb, requests, clusters },
  };
  const given = Object.entries(all).filter(([, most]) => most !== undefined);
  return Object.fromEntries(given.map(([kind, most]) => [kind, most === "none" ? null : most]));
}

async function set(_: Flags & LimitFlags, command: Command): Promise<void> {
  const flags = command.optsWithGlobals<Flags & LimitFlags>();
  const folder = dataFolder(flags.data);
  const limits = limitsIn(flags);
  if (Object.keys(limits).length === 0) throw new Problem("give at least one limit, such as --machines 20");
  if (flags.app !== undefined && limits.clusters !== undefined)
    throw new Problem("a Postgres cluster belongs to no app: give --clusters with --org instead");
  const name = await withStore(command, (store) => {
    const found = quotaHolder(store, flags, folder);
    setQuotas(store, found.holder, limits);
    return found.name;
  });
  const parts = Object.entries(limits).map(([kind, most]) => `${kind} ${most ?? "without a limit"}`);
  print(`${name}: ${parts.join(", ")}`);
}

async function list(_: Flags, command: Command): Promise<void> {
  const { org, app, json, data } = command.optsWithGlobals<Flags>();
  const folder = dataFolder(data);
  const quotas = await withStore(command, (store) => {
    // Names the nearest one if there is none.
    if (org !== undefined || app !== undefined) holderOf(store, { org, app }, folder);
    return listQuotas(store).filter(
      (quota) => (org === undefined || quota.org === org) && (app === undefined || quota.app === app),
    );
  });
  if (json) return printJson(quotas.map(({ kind, ...rest }) => ({ resource: kind, ...rest })));
  printTable(
    ["ORG", "APP", "RESOURCE", "USED", "LIMIT"],
    quotas.map((quota) => [quota.org, quota.app ?? "-", quota.kind, usedCell(quota), String(quota.limit)]),
  );
}

const usedCell = ({ used, limit }: ListedQuota) => {
  if (used === null) return "-";
  return used >= limit ? ([String(used), "red"] as const) : String(used);
};

async function remove(_: Flags, command: Command): Promise<void> {
  const flags = command.optsWithGlobals<Flags>();
  const folder = dataFolder(flags.data);
  if (flags.org === undefined && flags.app === undefined)
    throw new Problem("say whose quotas to remove, with --org or --app");
  const { name, removed } = await withStore(command, (store) => {
    const found = quotaHolder(store, flags, folder);
    return { name: found.name, removed: removeQuotas(store, found.holder) };
  });
  if (removed === 0) throw new Problem(`${name} has no quota; \`${ownCommand("quota list", folder)}\` shows them`);
  print(`${name} has no quota any more`);
}

const withHolder = (command: Command, org: string): Command =>
  command.option("--org <slug>", org).option("--app <name>", "only of this app");

/** Adds the commands. */
export function addQuotas(program: Command): void {
  const quota = program.command("quota").description("limit how much an organization or an app may have");
  const limit = (flags: string, description: string, parse = limitOf): Option =>
    new Option(flags, `${description}, or none`).argParser(parse);
  withHolder(
    quota.command("set").description("set limits; what exists beyond them stays, and only growth is refused"),
    "organization (default: personal, or the app's)",
  )
    .addOption(limit("--machines <count>", "Machines that are not destroyed"))
    .addOption(limit("--memory <mb>", "configured memory of these Machines together"))
    .addOption(limit("--volumes <count>", "volumes that are not being deleted"))
    .addOption(limit("--volume-gb <gb>", "size of these volumes together"))
    .addOption(limit("--clusters <count>", "Postgres clusters of an organization"))
    .addOption(limit("--requests <count>", "requests per second; twice as many after a pause", rateOf))
    .action(set);
  withHolder(
    quota.command("list").description("list the limits, and what is used of them"),
    "only of this organization (default: all)",
  )
    .option("--json", "print a JSON array")
    .action(list);
  withHolder(
    quota.command("remove").description("remove all limits of an organization, or of an app"),
    "organization",
  ).action(remove);
}
