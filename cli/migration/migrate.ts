// `pulumi-machines migrate`: lets a resource of another type take over the objects of resources that the program no longer declares.
// It changes only the state, and checks the result by a preview.
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import type { Call, Values } from "../../provider/core/resource.ts";
import { forHandler, outputsOf } from "../../provider/core/state.ts";
import { withoutUndefined } from "../../provider/core/values.ts";
import { noTag } from "../../provider/fleets/drift.ts";
import { openState } from "../drift/openState.ts";
import type { DeploymentEntry } from "../entries.ts";
import { exportStack, stackConfig } from "../pulumi.ts";
import { previewed, selectedStack, type Plans } from "../savedPlan.ts";
import { deploymentIn, listIn, readState, sealed, type StateProvider } from "../stackState.ts";
import { clientOf, readingCall } from "../targets.ts";
import { agreed, requireInteractiveTerminal, untilItEnds, type Asking, type Streams } from "../terminal.ts";
import { earlierText, restoreState, restoring, writeState } from "../writtenState.ts";
import { migrated, migrationsIn, type Migration } from "./migrations.ts";

/** Options of the command. */
export interface MigrateOptions extends Asking {
  readonly stack?: string;
}

const source = "the output of `pulumi stack export`";

/**
 * Finds what the program declares as another type, checks it with the service, asks, writes the state, and checks it by a preview.
 * Returns the exit code: 0 if it is done or nothing is to do, 1 if the user refused or something cannot be migrated.
 * @throws MachinesError `refused` if a preview fails, the state has changed meanwhile, or the next update would change something
 */
export async function migrate(given: MigrateOptions, { out, err }: Streams): Promise<0 | 1> {
  const stack = given.stack ?? (await selectedStack());
  const options = { ...given, stack };
  const text = await exportStack(options.stack);
  const state = readState(text, source);
  refusePending(text);
  const config = await stackConfig(options.stack);
  if (config.get("fleetViews") === "true")
    throw new MachinesError(
      "refused",
      "machines:fleetViews is true, and a migration cannot write views: set it to false, run up, migrate, and set it back",
    );
  const open = openState(readState(await exportStack(options.stack, "clear"), source));
  const plan = await previewed(stack);
  const { migrations, problems } = migrationsIn(plan, { sealed: deploymentIn(text, source), open });
  // An empty state names neither.
  if (state.stack !== undefined) out(`Stack ${state.stack} of ${state.project ?? ""}\n\n`);
  for (const problem of problems) err(`Not migrated: ${problem}.`);
  if (migrations.length === 0) {
    if (problems.length === 0) out(nothing);
    return problems.length === 0 ? 0 : 1;
  }
  const outputs = await seen(migrations, { config, providers: open.providers, err });
  out(migrations.map(planText).join("\n"));
  if (options.dryRun) {
    out("This was a dry run: nothing has changed.\n");
    return problems.length === 0 ? 0 : 1;
  }
  requireInteractiveTerminal(options);
  if (!(await agreed(options, `\nMigrate these in the state of ${state.stack ?? ""}?`))) {
    out("Not migrated. Nothing has changed.\n");
    return 1;
  }
  const entries = listIn(deploymentIn(text, source), "resources") as readonly DeploymentEntry[];
  const next = migrated(entries, migrations, { plan, outputs, now: new Date().toISOString() });
  await untilItEnds(async () => {
    const copy = await writeState(text, next, { stack: state.stack, given: options.stack, before: "migration" });
    await requireUnchanged(migrations, text, copy, stack);
    out(doneText(migrations, copy, given));
  });
  return problems.length === 0 ? 0 : 1;
}

const nothing =
  "There is nothing to migrate: the program declares no Fleet in place of Machines, and no AppSecrets in place of Secrets, that it no longer declares.\n";

/** An interrupted update may have created something that the state does not have. */
function refusePending(text: string): void {
  const pending = listIn(deploymentIn(text, source), "pending_operations").length;
  if (pending > 0)
    throw new MachinesError(
      "refused",
      `the state has ${pending} operation${pending === 1 ? "" : "s"} of an interrupted update: run \`pulumi refresh\` first. Nothing has changed`,
    );
}

/** What is needed to ask the service. */
interface Asked {
  readonly config: ReadonlyMap<string, string>;
  readonly providers: readonly StateProvider[];
  readonly err: Streams["err"];
}

/** The outputs of the resources that take over, as a refresh would read them. */
async function seen(migrations: readonly Migration[], asked: Asked): Promise<ReadonlyMap<string, Values>> {
  const found = new Map<string, Values>();
  for (const migration of migrations) {
    const api = clientOf(migration.sources[0]?.provider, asked.config, asked.providers, asked.err);
    try {
      // What a read would warn of is in the outputs.
      found.set(
        migration.urn,
        await outputsNow(
          migration,
          readingCall(api, () => undefined, asked.err),
        ),
      );
    } finally {
      await api.close();
    }
  }
  return found;
}

async function outputsNow(migration: Migration, call: Call): Promise<Values> {
  const { resource, id, open, sources } = migration;
  const before = migration.resource.name === "Fleet" ? fleetOf(sources) : secretsOf(migration);
  const state = forHandler(resource, { ...open, ...before });
  const live = await resource.read({ ...call, id: resource.id.parse(id), state });
  const { drift, ...outputs } = outputsOf(resource, withoutUndefined({ ...before, ...live }));
  const changed = Array.isArray(drift) ? drift.filter((entry) => !String(entry).endsWith(noTag)) : [];
  const isChanged = live === undefined || changed.length > 0 || live["valuesVersion"] === null || lacks(live, open);
  if (isChanged)
    throw new MachinesError(
      "refused",
      `${resource.name} ${migration.name}: the service has something else than the state${changed.length > 0 ? `: ${changed.join("; ")}` : ""}. Run \`pulumi refresh\` and \`pulumi up\` with the program as it was before, and migrate then. Nothing has changed`,
    );
  const sealing = Object.entries(outputs).map(([name, value]) => [
    name,
    resource.outputFields[name]?.meta.secret === true ? sealed(value) : value,
  ]);
  return { ...Object.fromEntries(sealing), ...(drift === undefined ? {} : { drift: [] }) };
}

/** Whether a value that the state has was changed by others: a read leaves it out then. */
const lacks = ({ values }: Values, open: Values): boolean =>
  open["values"] !== undefined && Object.keys(values ?? {}).length < Object.keys(open["values"] as object).length;

/** What a fleet has of the Machines' states. */
const fleetOf = (sources: Migration["sources"]): Values => ({
  machines: sources.map(({ id }) => ({ id })),
  rollout: "complete",
  drift: [],
});

/** What an AppSecrets has of the secrets' states. */
function secretsOf({ sources, before }: Migration): Values {
  const all = [...sources.map(({ outputs }) => outputs), ...(before === undefined ? [] : [before])];
  const digests = Object.fromEntries(sources.map(({ inputs, outputs }) => [String(inputs["name"]), outputs["digest"]]));
  return {
    version: Math.max(...all.map(({ version }) => Number(version ?? 0))),
    digests: { ...(before?.["digests"] as object | undefined), ...digests },
    updatedAt: all
      .flatMap(({ updatedAt }) => (typeof updatedAt === "string" ? [updatedAt] : []))
      .sort()
      .at(-1),
  };
}

/** Restores the state, if the next update would change what was migrated. */
async function requireUnchanged(
  migrations: readonly Migration[],
  text: string,
  copy: string,
  stack: string,
): Promise<void> {
  let problems: readonly string[] = [];
  try {
    // The CLI encrypts secrets again, so only an export tells what another run changes from here on.
    const written = await exportStack(stack);
    problems = await differences(migrations, stack);
    if (problems.length === 0) return;
    await restoreState(text, written, stack);
  } catch (error) {
    const lines = [
      ...problems,
      `The earlier state could not be restored, and the state may still have the migration: ${messageOf(error)}`,
      earlierText(copy, stack),
      "Otherwise declare what there is before the next up",
    ];
    throw new MachinesError("refused", lines.join("\n"), { cause: error });
  }
  throw new MachinesError(
    "refused",
    `${problems.join("\n")}\nThe state is as before; ${copy} has it, too. Declare what there is, migrate, and change it afterwards`,
  );
}

/** What the next update would change of the migrated resources, or why that is not known. */
async function differences(migrations: readonly Migration[], stack: string): Promise<readonly string[]> {
  try {
    const plan = await previewed(stack);
    return migrations.flatMap((migration) => differenceIn(plan, migration) ?? []);
  } catch (error) {
    return [messageOf(error)];
  }
}

/** What the next update would change. */
function differenceIn(plan: Plans, { urn, resource, name, sources }: Migration): string | undefined {
  const { steps = [], goal } = plan[urn] ?? {};
  const { adds, updates, deletes = [] } = goal?.inputDiff ?? {};
  const deleted = sources.find((one) => plan[one.urn]?.steps?.includes("delete") === true);
  if (deleted !== undefined) return `${resource.name} ${name}: the next update would still delete ${deleted.name}.`;
  if (steps.every((step) => step === "same")) return undefined;
  const names = [...Object.keys({ ...adds, ...updates }), ...deletes];
  return `${resource.name} ${name}: the next update would ${steps.join(", ")} it${names.length === 0 ? "" : `, because the program has another ${names.join(", ")}`}.`;
}

const planText = ({ resource, name, urn, sources }: Migration): string =>
  [
    `${resource.name} ${name}  ${urn}`,
    ...sources.map((one) => `  takes over ${one.type} ${one.name} (${one.id})`),
    "",
  ].join("\n");

const doneText = (migrations: readonly Migration[], copy: string, { stack }: MigrateOptions): string =>
  [
    "",
    "Migrated. A preview shows no change of these, and no request has changed anything.",
    ...(migrations.some(({ resource }) => resource.name === "Fleet")
      ? [
          "The Machines have no tags of their fleet yet. `pulumi up --refresh` sets them without a restart: run it before the next change of the fleet.",
        ]
      : []),
    `The previous state is in ${copy}. Until the next up, this restores it: ${restoring(copy, stack)}`,
    "",
  ].join("\n");
