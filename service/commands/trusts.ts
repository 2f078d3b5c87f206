// The command trust: workflows that get a token for their identity token. It works on the store directly, also while the service runs.
import { InvalidArgumentError, Option, type Command } from "commander";
import { systemRandom } from "../ids.ts";
import { isIssuerUrl } from "../identity/issuerKeys.ts";
import { findRunning } from "../local/daemon.ts";
import { dataFolder } from "../local/options.ts";
import { Problem } from "../local/problem.ts";
import { ownCommand } from "../ownCommand.ts";
import { roles, type Role } from "../store/roles.ts";
import type { Store } from "../store/database.ts";
import { addTrust, listTrusts, removeTrust, type Claims } from "../store/trusts.ts";
import { rfc3339 } from "../time/clock.ts";
import { print, printJson, printTable } from "./print.ts";
import { forText, moment, scopeOf, withScope, withStore } from "./tokens.ts";

interface Flags {
  readonly data?: string;
  readonly json?: true;
}

interface AddFlags extends Flags {
  readonly issuer: string;
  readonly repository?: string;
  readonly project?: string;
  readonly branch?: string;
  readonly environment?: string;
  readonly claim?: readonly (readonly [string, string])[];
  readonly audience?: string;
  readonly reusable?: true;
  readonly org?: string;
  readonly app?: readonly string[];
  readonly network?: string;
  readonly role: Role;
  readonly name?: string;
}

/** Issuers by a short name. */
const issuers: Readonly<Record<string, string>> = {
  github: "https://token.actions.githubusercontent.com",
  gitlab: "https://gitlab.com",
  // Of Pulumi Cloud's environments (ESC).
  pulumi: "https://api.pulumi.com/oidc/v2",
};

/** Claims of which one must be given: without them, everyone who has an account at the issuer would be trusted. */
const identifying = [
  ...["repository", "repository_id", "project_path", "project_id", "sub"],
  ...["https://pulumi.com/org", "https://pulumi.com/org_id"],
];

function issuerOf(text: string): string {
  const issuer = issuers[text] ?? text;
  if (!isIssuerUrl(issuer))
    throw new InvalidArgumentError('It must be "github", "gitlab", "pulumi", or an address that begins with https://.');
  return issuer;
}

function audienceOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw new InvalidArgumentError("It must be the address of the service.");
  return url.origin;
}

function claimOf(text: string, before: readonly (readonly [string, string])[] = []) {
  const [, name, value] = /^([\w:/.-]{1,200})=(.{1,500})$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError("It must be NAME=VALUE, such as ref_protected=true.");
  return [...before, [name, value] as const];
}

/** The claims that options ask for. Throws a Problem if they do not say whose workflow it is. */
function claimsOf({ repository, project, branch, environment, claim = [] }: AddFlags): Claims {
  if (repository !== undefined && project !== undefined) throw new Problem("give --repository or --project, not both");
  if (branch !== undefined && repository === undefined && project === undefined)
    throw new Problem("--branch needs --repository or --project");
  const claims: Record<string, string> = {
    ...(repository === undefined ? {} : { repository }),
    ...(project === undefined ? {} : { project_path: project }),
    ...(branch === undefined
      ? {}
      : { ref: project === undefined ? `refs/heads/${branch}` : branch, ref_type: "branch" }),
    ...(environment === undefined ? {} : { environment }),
  };
  for (const [name, value] of claim) {
    if (Object.hasOwn(claims, name)) throw new Problem(`the claim ${name} is given twice`);
    claims[name] = value;
  }
  if (!identifying.some((name) => Object.hasOwn(claims, name)))
    throw new Problem(
      "say whose workflow it is, with --repository (GitHub), --project (GitLab), --claim https://pulumi.com/org=… (Pulumi Cloud), or --claim sub=…; otherwise everyone at the issuer is trusted",
    );
  return claims;
}

/** The address of the running service. Every computer has a loopback address, so one of these names no service. */
function audienceOfRunning(folder: string): string {
  const running = findRunning(folder);
  const url = running?.publicUrl ?? running?.url;
  if (url === undefined || /^(localhost|127\..*|\[::1\])$/.test(new URL(url).hostname))
    throw new Problem("give the address that programs have in machines:endpoint with --audience");
  return new URL(url).origin;
}

/** A new id of a trust: hexadecimal digits as those of tokens, because one that began with a dash would be read as an option. */
export const trustId = (): string => Buffer.from(systemRandom()(6)).toString("hex");

async function add(_: AddFlags, command: Command): Promise<void> {
  const flags = command.optsWithGlobals<AddFlags>();
  const folder = dataFolder(flags.data);
  const claims = claimsOf(flags);
  const audience = flags.audience ?? audienceOfRunning(folder);
  const id = trustId();
  const { issuer, role, reusable } = flags;
  const name =
    flags.name ?? claims["repository"] ?? claims["project_path"] ?? claims["https://pulumi.com/root_env"] ?? issuer;
  await withStore(command, (store: Store) => {
    const scope = scopeOf(store, flags, folder);
    addTrust(store, id, { ...scope, name, issuer, audience, claims, role, isReusable: reusable === true }, Date.now());
  });
  if (flags.json) return printJson({ id, issuer, audience, claims, role });
  print(`trust ${id}: identity tokens of ${issuer} for ${audience} with ${claimText(claims)} get the role ${role}`);
}

const claimText = (claims: Claims): string =>
  Object.entries(claims)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");

async function list(_: Flags, command: Command): Promise<void> {
  const trusts = await withStore(command, (store) => listTrusts(store));
  const shown = trusts.map(({ created_at, used_at, ...trust }) => ({
    ...trust,
    created_at: rfc3339(created_at),
    used_at: moment(used_at, null),
  }));
  if (command.optsWithGlobals<Flags>().json) return printJson(shown);
  printTable(
    ["ID", "NAME", "ORG", "FOR", "ROLE", "ISSUER", "AUDIENCE", "CLAIMS", "LAST USE"],
    shown.map(({ id, name, org, apps, network, role, issuer, audience, claims, used_at }) => [
      ...[id, name, org, forText(apps, network), role, issuer, audience, claimText(claims), used_at ?? "never"],
    ]),
  );
}

async function remove(id: string, _: Flags, command: Command): Promise<void> {
  const folder = dataFolder(command.optsWithGlobals<Flags>().data);
  if (!(await withStore(command, (store) => removeTrust(store, id))))
    throw new Problem(`there is no trust ${id}; \`${ownCommand("trust list", folder)}\` shows the ids`);
  print(`trust ${id} is removed, and the tokens that it gave are revoked`);
}

/** Adds the commands. */
export function addTrusts(program: Command): void {
  const trust = program.command("trust").description("manage workflows that deploy without a stored secret");
  withScope(
    trust
      .command("add")
      .description("trust the identity tokens of a workflow: each is exchanged for a token of 15 minutes"),
  )
    .requiredOption("--issuer <url>", "who signs them: github, gitlab, pulumi (Pulumi Cloud), or an address", issuerOf)
    .option("--repository <owner/name>", "only of this repository of GitHub")
    .option("--project <path>", "only of this project of GitLab")
    .option("--branch <name>", "only of this branch")
    .option("--environment <name>", "only of this environment")
    .option("--claim <name=value>", "only with this claim; may be repeated", claimOf)
    .option(
      "--audience <url>",
      "address of the service that they must name (default: that of the running one, unless it is a loopback address)",
      audienceOf,
    )
    .option(
      "--reusable",
      "let a token be exchanged more than once, for issuers that give one for a whole job, such as GitLab",
    )
    .addOption(new Option("--role <role>", "what they may do").choices(roles).default("deploy"))
    .option("--name <text>", "name in the list of trusts (default: the repository or project)")
    .option("--json", "print a JSON object")
    .action(add);
  trust.command("list").description("list the trusts").option("--json", "print a JSON array").action(list);
  trust.command("remove <id>").description("remove a trust, and revoke the tokens that it gave").action(remove);
}
