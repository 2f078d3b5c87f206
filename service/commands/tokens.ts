// The commands token and org. They work on the store directly, also while the service runs.
import { readFileSync } from "node:fs";
import { InvalidArgumentError, type Command } from "commander";
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
import type { Store } from "../store/database.ts";
import type { OrgRow } from "../store/rows.ts";
import { tokenFile } from "../store/tokenFile.ts";
import {
  addToken,
  ensureOrg,
  findOrg,
  listTokens,
  longestExpiryMs,
  revokeTokens,
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
  readonly app?: string;
  readonly readOnly?: true;
  readonly expires?: number;
  readonly name?: string;
}

/** Changes the store of a data folder; an error rolls the change back. */
async function withStore<T>(command: Command, use: (store: Store) => T): Promise<T> {
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

async function create(_: CreateFlags, command: Command): Promise<void> {
  const { data, org, app, name, readOnly = false, expires, json } = command.optsWithGlobals<CreateFlags>();
  const folder = dataFolder(data);
  const token = createIds(systemRandom()).accessToken();
  const now = Date.now();
  const id = await withStore(command, (store) => {
    const expiresAt = expires === undefined ? null : now + expires;
    return addToken(store, token, { ...holderOf(store, { org, app }, folder), name, readOnly, expiresAt }, now);
  });
  if (json) return printJson({ id, token });
  print(token);
  // Not on stdout, which a script takes as the token.
  process.stderr.write(`Its ID is ${id}. To revoke it: ${ownCommand(`token revoke ${id}`, folder)}\n`);
}

const shown = ({ read_only, created_at, expires_at, ...token }: ListedToken) => ({
  ...token,
  read_only: read_only === 1,
  created_at: rfc3339(created_at),
  expires_at: expires_at === null ? null : rfc3339(expires_at),
});

async function list(_: Flags, command: Command): Promise<void> {
  const tokens = (await withStore(command, (store) => listTokens(store, Date.now()))).map(shown);
  if (command.optsWithGlobals<Flags>().json) return printJson(tokens);
  printTable(
    ["ID", "NAME", "ORG", "APP", "READ-ONLY", "CREATED", "EXPIRES"],
    tokens.map(({ id, name, org, app, read_only, created_at, expires_at }) => [
      ...[id, name ?? "-", org, app ?? "-", read_only ? "yes" : "no", created_at, expires_at ?? "never"],
    ]),
  );
}

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

/** Adds the commands for tokens and organizations. */
export function addTokens(program: Command): void {
  const token = program
    .command("token")
    .description("print the first token of organization personal, or manage tokens")
    .allowExcessArguments()
    .action(printFirst);
  token
    .command("create")
    .description("create a token and print it; it is shown only once")
    .option("--org <slug>", "organization of the token (default: personal, or the app's)", slugOf)
    .option("--app <name>", "restrict the token to this app")
    .option("--read-only", "let the token only read")
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
