// The command people: who may sign in to the console with the provider of --oidc-issuer. It works on the store directly, also while the
// service runs.
import { Option, type Command } from "commander";
import { dataFolder } from "../local/options.ts";
import { Problem } from "../local/problem.ts";
import { ownCommand } from "../ownCommand.ts";
import type { Store } from "../store/database.ts";
import { roles, type Role } from "../store/roles.ts";
import { addPeople as addToStore, peopleOf, removeTrust } from "../store/trusts.ts";
import { rfc3339 } from "../time/clock.ts";
import { print, printJson, printTable } from "./print.ts";
import { forText, moment, scopeOf, withScope, withStore } from "./tokens.ts";
import { trustId } from "./trusts.ts";

interface Flags {
  readonly data?: string;
  readonly json?: true;
}

interface AddFlags extends Flags {
  readonly group?: string;
  readonly everyone?: true;
  readonly org?: string;
  readonly app?: readonly string[];
  readonly network?: string;
  readonly role: Role;
}

const whoText = (group: string | undefined): string => (group === undefined ? "everyone" : `group ${group}`);

async function add(_: AddFlags, command: Command): Promise<void> {
  const flags = command.optsWithGlobals<AddFlags>();
  const { group, everyone, role } = flags;
  if ((group === undefined) === (everyone === undefined))
    throw new Problem(
      "say who may sign in: --group NAME, as the provider names it, or --everyone who has an account there",
    );
  const id = trustId();
  await withStore(command, (store: Store) => {
    const { slug, apps, network } = scopeOf(store, flags, dataFolder(flags.data));
    addToStore(store, id, { slug, apps, network, role, group }, Date.now());
  });
  if (flags.json) return printJson({ id, group: group ?? null, role });
  print(`people ${id}: ${whoText(group)} may sign in to the console with the role ${role}`);
}

async function list(_: Flags, command: Command): Promise<void> {
  const found = await withStore(command, (store) => peopleOf(store));
  const shown = found.map(({ id, group, slug, appNames, network, role, createdAt, usedAt }) => ({
    ...{ id, group: group ?? null, org: slug, apps: appNames ?? null, network: network ?? null, role },
    ...{ created_at: rfc3339(createdAt), used_at: moment(usedAt, null) },
  }));
  if (command.optsWithGlobals<Flags>().json) return printJson(shown);
  printTable(
    ["ID", "WHO", "ORG", "FOR", "ROLE", "LAST SIGN-IN"],
    shown.map(({ id, group, org, apps, network, role, used_at }) => [
      ...[id, whoText(group ?? undefined), org, forText(apps, network), role, used_at ?? "never"],
    ]),
  );
}

async function remove(id: string, _: Flags, command: Command): Promise<void> {
  const folder = dataFolder(command.optsWithGlobals<Flags>().data);
  if (!(await withStore(command, (store) => removeTrust(store, id, true))))
    throw new Problem(`there are no people ${id}; \`${ownCommand("people list", folder)}\` shows the ids`);
  print(`people ${id} are removed, and their sessions have ended`);
}

/** Adds the commands. */
export function addPeople(program: Command): void {
  const people = program
    .command("people")
    .description("manage who may sign in to the console with the provider of --oidc-issuer");
  withScope(people.command("add").description("let a group of people sign in, with a role"))
    .option("--group <name>", "the group, as the provider names it")
    .option("--everyone", "everyone who has an account at the provider")
    .addOption(new Option("--role <role>", "what they may do").choices(roles).makeOptionMandatory())
    .option("--json", "print a JSON object")
    .action(add);
  people.command("list").description("list who may sign in").option("--json", "print a JSON array").action(list);
  people.command("remove <id>").description("let them sign in no more, and end their sessions").action(remove);
}
