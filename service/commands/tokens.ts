// The commands token and org. They work on the store directly, also while the service runs.
import { readFileSync } from "node:fs";
import { InvalidArgumentError, Option, type Command } from "commander";
import { parseDuration } from "../../api/schema.ts";
import { firstIssue } from "../../api/validated.ts";
import { createIds, systemRandom } from "../ids.ts";
import { ownCommand } from "../ownCommand.ts";
import { rfc3339 } from "../time/clock.ts";
import { commandStore } from "../local/commandStore.ts";
import { dataFolder } from "../local/options.ts";
import { Problem } from "../local/problem.ts";
import { orgSlug } from "../local/seedFile.ts";
import { requireStore } from "../store/openForCommand.ts";
import { storeFile, type Store } from "../store/database.ts";
import { isCopyFile } from "../store/memberCopy.ts";
import { proxyRole, roles, type TokenRole } from "../store/roles.ts";
import type { OrgRow } from "../store/rows.ts";
import { writePrivately } from "../store/privateFile.ts";
import { currentToken, sharedToken, tokenFile } from "../store/tokenFile.ts";
import {
  addToken,
  ensureOrg,
  findOrg,
  idOf,
  listTokens,
  longestExpiryMs,
  revokeTokens,
  rotateToken,
  type Grant,
  type ListedToken,
} from "../store/tokens.ts";
import { holderOf, nearestOr } from "./holder.ts";
import { print, printJson, printTable } from "./print.ts";

interface Flags {
  readonly data?: string;
  readonly json?: true;
}

interface CreateFlags extends Flags {
  readonly org?: string;
  readonly app?: readonly string[];
  readonly network?: string;
  readonly role?: TokenRole;
  readonly expires?: number;
  readonly name?: string;
}

/** Changes the store of a data folder; an error rolls the change back. */
export async function withStore<T>(command: Command, use: (store: Store) => T): Promise<T> {
  const store = commandStore(dataFolder(command.optsWithGlobals<Flags>().data));
  try {
    return await store.write(() => use(store));
  } finally {
    store.close();
  }
}

function printFirst(_: Flags, command: Command): void {
  const [unknown] = command.args;
  if (unknown !== undefined) {
    const names = command.commands.map((inner) => inner.name());
    throw new Problem(
      `there is no command token ${unknown}${nearestOr(unknown, names, `; there are ${names.join(", ")}`)}`,
    );
  }
  const folder = dataFolder(command.optsWithGlobals<Flags>().data);
  requireStore(folder);
  try {
    print(readFileSync(tokenFile(folder), "utf8").trim());
  } catch {
    throw new Problem(`${tokenFile(folder)} is missing; restart the service to create another token`);
  }
}

/** What a token is for, by the names of options. Throws a Problem for Apps of several organizations, and for Apps with a network. */
export function scopeOf(
  store: Store,
  { org, app = [], network }: Pick<CreateFlags, "org" | "app" | "network">,
  folder: string,
): Pick<Grant, "slug" | "apps" | "network"> {
  if (app.length > 0 && network !== undefined) throw new Problem("give --app or --network, not both");
  const hint = "; create it first, or give --network instead, in which it can be created";
  const holders = app.map((name) => holderOf(store, { org, app: name, hint }, folder));
  const [first, ...others] = holders;
  if (!first) return { slug: holderOf(store, { org }, folder).slug, network };
  const other = others.findIndex(({ slug }) => slug !== first.slug);
  if (other >= 0)
    throw new Problem(
      `a token is for one organization: the app ${app[0]} belongs to ${first.slug}, and ${app[other + 1]} to ${others[other]?.slug}`,
    );
  return { slug: first.slug, apps: [...new Set(holders.map((holder) => holder.app ?? ""))] };
}

async function create(_: CreateFlags, command: Command): Promise<void> {
  const { data, name, role, expires, json, ...scope } = command.optsWithGlobals<CreateFlags>();
  const folder = dataFolder(data);
  if (role === proxyRole) requireWhole(scope);
  const token = createIds(systemRandom()).accessToken();
  const now = Date.now();
  const id = await withStore(command, (store) => {
    const expiresAt = expires === undefined ? null : now + expires;
    return addToken(store, token, { ...scopeOf(store, scope, folder), name, role, expiresAt }, now);
  });
  printToken(folder, { id, token, json });
}

/** A proxy has what all organizations route, so its token is for no part of them. */
function requireWhole({ org, app, network }: Pick<CreateFlags, "org" | "app" | "network">): void {
  const given = app ? "--app" : network === undefined ? (org === undefined ? undefined : "--org") : "--network";
  if (given !== undefined)
    throw new Problem(`--role proxy cannot be combined with ${given}: a proxy has what all organizations route`);
}

function printToken(
  folder: string,
  made: { readonly id: string; readonly token: string; readonly json?: true | undefined },
) {
  const { id, token, json } = made;
  if (json) return printJson({ id, token });
  print(token);
  // Not on stdout, which a script takes as the token.
  process.stderr.write(`Its ID is ${id}. To revoke it: ${ownCommand(`token revoke ${id}`, folder)}\n`);
}

async function rotate(id: string, _: Flags, command: Command): Promise<void> {
  const { data, keep, json } = command.optsWithGlobals<Flags & { readonly keep: number }>();
  const folder = dataFolder(data);
  const now = Date.now();
  let token = createIds(systemRandom()).accessToken();
  let isFirst = false;
  const next = await withStore(command, (store) => {
    isFirst = idOf(currentToken(store, folder)) === id;
    // The other members have to know it too.
    if (isFirst && isCopyFile(storeFile(folder))) token = sharedToken(folder, now);
    return rotateToken(store, id, { token, oldEnds: now + keep, now });
  });
  if (next === undefined)
    throw new Problem(`there is no token ${id} to rotate; \`${ownCommand("token list", folder)}\` shows the ids`);
  // Commands on this computer use the token in its file.
  if (isFirst) writePrivately(tokenFile(folder), `${token}\n`);
  printToken(folder, { id: next, token, json });
  if (!json) process.stderr.write(`The token ${id} is valid until ${rfc3339(now + keep)} at the latest.\n`);
}

/** A moment of a list; `otherwise` without one. */
export const moment = <T>(at: number | null, otherwise: T): string | T => (at === null ? otherwise : rfc3339(at));

const shown = ({ apps, created_at, expires_at, used_at, ...token }: ListedToken) => ({
  ...token,
  apps: apps === null ? null : (JSON.parse(apps) as readonly string[]),
  created_at: rfc3339(created_at),
  expires_at: moment(expires_at, null),
  used_at: moment(used_at, null),
});

async function list(_: Flags, command: Command): Promise<void> {
  const tokens = (await withStore(command, (store) => listTokens(store, Date.now()))).map(shown);
  if (command.optsWithGlobals<Flags>().json) return printJson(tokens);
  printTable(
    ["ID", "NAME", "ORG", "FOR", "ROLE", "CREATED", "EXPIRES", "LAST USE"],
    tokens.map(({ id, name, org, apps, network, role, created_at, expires_at, used_at }) => [
      ...[id, name ?? "-", org, forText(apps, network), role, created_at, expires_at ?? "never", used_at ?? "never"],
    ]),
  );
}

/** What a token is for, in a table. */
export const forText = (apps: readonly string[] | null, network: string | null): string =>
  apps ? apps.join(", ") : network === null ? "all" : `network ${network}`;

async function revoke(id: string, _: Flags, command: Command): Promise<void> {
  const folder = dataFolder(command.optsWithGlobals<Flags>().data);
  if ((await withStore(command, (store) => revokeTokens(store, id))) === 0)
    throw new Problem(`there is no token ${id}; \`${ownCommand("token list", folder)}\` shows the ids`);
  print(`token ${id} is revoked`);
}

async function createOrg(slug: string, { name }: { readonly name?: string }, command: Command): Promise<void> {
  await withStore(command, (store) => {
    if (findOrg(store, slug)) throw new Problem(`organization ${slug} exists already`);
    ensureOrg(store, slug, name);
  });
  const folder = dataFolder(command.optsWithGlobals<Flags>().data);
  const next = ownCommand(`token create --org ${slug}`, folder);
  print(`created organization ${slug}; create a token for it with \`${next}\``);
}

async function listOrgs(_: Flags, command: Command): Promise<void> {
  const orgs = await withStore(command, (store) => store.all<OrgRow>("SELECT slug, name FROM orgs ORDER BY id"));
  if (command.optsWithGlobals<Flags>().json) return printJson(orgs);
  printTable(
    ["SLUG", "NAME"],
    orgs.map(({ slug, name }) => [slug, name]),
  );
}

function durationMs(text: string): number {
  const nanoseconds = parseDuration(text);
  if (nanoseconds === undefined || nanoseconds < 1e6 || nanoseconds > longestExpiryMs * 1e6)
    throw new InvalidArgumentError('It must be a duration such as "1h" or "30m", at most 876000h.');
  return Math.floor(nanoseconds / 1e6);
}

function slugOf(text: string): string {
  const issue = firstIssue(orgSlug, text);
  if (issue) throw new InvalidArgumentError(`It ${issue.message}.`);
  return text;
}

/** Adds the options of {@link scopeOf}. */
export const withScope = (command: Command): Command =>
  command
    .option("--org <slug>", "organization (default: personal, or the apps')", slugOf)
    .option("--app <name...>", "restrict it to these apps")
    .option("--network <name>", "restrict it to the apps of this network");

/** Adds the commands for tokens and organizations. */
export function addTokens(program: Command): void {
  const token = program
    .command("token")
    .description("print the first token of organization personal, or manage tokens")
    .allowExcessArguments()
    .action(printFirst);
  withScope(token.command("create").description("create a token and print it; it is shown only once"))
    .addOption(
      new Option("--role <role>", "what it may do (default: own, and deploy with --app or --network)").choices([
        ...roles,
        proxyRole,
      ]),
    )
    .option("--expires <duration>", 'time until it expires, such as "1h" (default: never)', durationMs)
    .option("--name <text>", "name in the list of tokens")
    .option("--json", "print a JSON object with its id")
    .action(create);
  token
    .command("list")
    .description("list the tokens, without their values")
    .option("--json", "print a JSON array")
    .action(list);
  token
    .command("rotate <id>")
    .description("create a token with the rights of another one, which is valid for a while longer")
    .option("--keep <duration>", "how long the old one stays valid", durationMs, 24 * 3600_000)
    .option("--json", "print a JSON object with the id of the new one")
    .action(rotate);
  token
    .command("revoke <id>")
    .description("revoke a token; a running service refuses it within a second")
    .action(revoke);
  const org = program.command("org").description("manage organizations");
  org
    .command("create")
    .description("create an organization")
    .argument("<slug>", "slug, 1 to 62 of a-z, 0-9 and -", slugOf)
    .option("--name <text>", "name (default: the slug)")
    .action(createOrg);
  org.command("list").description("list the organizations").option("--json", "print a JSON array").action(listOrgs);
}
