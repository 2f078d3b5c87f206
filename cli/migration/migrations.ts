// Resources of a state whose objects the program declares as another type: Machines that become a fleet, and secrets that become part
// of an AppSecrets. No I/O.
import { bareId } from "../../api/names.ts";
import { define, isObject } from "../../api/schema.ts";
import { CONTEXT, contextOf, type Resource, type Values } from "../../provider/core/resource.ts";
import { equal, hasUnknown, same, withoutUndefined } from "../../provider/core/values.ts";
import { regionsOf, totalOf, type Placement } from "../../provider/fleets/placement.ts";
import { resources as types } from "../../provider/registry.ts";
import { inOrder, type DeploymentEntry } from "../entries.ts";
import { heldIn, isSealed, listIn, sealed } from "../stackState.ts";
import type { OpenState, OpenResource } from "../drift/openState.ts";
import { inputsAfter, type Plans, type ResourcePlan } from "../savedPlan.ts";

/** The types that the objects of other types can become part of. */
const sourceTypes: Readonly<Record<string, string>> = { Fleet: "Machine", AppSecrets: "Secret" };

/** A resource that takes over the objects of others. */
export interface Migration {
  readonly resource: Resource;
  /** URN of the resource that the program declares. */
  readonly urn: string;
  /** Its name in the program. */
  readonly name: string;
  readonly app: string;
  /** The id that it has then. */
  readonly id: string;
  /** The resources that the program no longer declares. */
  readonly sources: readonly OpenResource[];
  readonly planned: ResourcePlan;
  /** Its inputs, with the values that the objects have, and with secrets sealed. */
  readonly inputs: Values;
  /** The inputs of the objects in plain text, as the handlers of the type take them. Never print them. */
  readonly open: Values;
  /** Its entry in the state; undefined if it is new. */
  readonly existing: DeploymentEntry | undefined;
  /** The outputs in that entry, in plain text. */
  readonly before: Values | undefined;
}

/** What there is to migrate, and why some of it cannot be. */
export interface Found {
  readonly migrations: readonly Migration[];
  /** Sentences without their end. */
  readonly problems: readonly string[];
}

/** The states that are compared. */
export interface States {
  /** The deployment of the export with sealed secrets. */
  readonly sealed: Values;
  /** The same with its values in plain text. */
  readonly open: OpenState;
}

/** What becomes part of something else, by the plan of an update. */
export function migrationsIn(plan: Plans, states: States): Found {
  const entries = listIn(states.sealed, "resources") as readonly DeploymentEntry[];
  const providerOf = (urn: string): unknown => entries.find((entry) => entry.urn === urn)?.["provider"];
  const leaving = states.open.resources.filter(
    ({ urn, id, isReplaced, isExternal }) =>
      id !== "" && !isReplaced && !isExternal && plan[urn]?.steps?.join() === "delete",
  );
  const targets = Object.entries(plan).flatMap(([urn, planned]) => targetOf(urn, planned, entries, states.open) ?? []);
  const problems: string[] = [];
  const migrations: Migration[] = [];
  const taken = new Map<string, string>();
  for (const target of targets) {
    const { type, name, app, inputs } = target;
    const ofApp = leaving.filter(
      (one) =>
        one.type === sourceTypes[type] &&
        bareId(String(one.inputs["app"])) === app &&
        providerOf(one.urn) === target.planned.goal?.["provider"],
    );
    if (ofApp.length === 0) continue;
    const found = type === "Fleet" ? machinesFor(target, ofApp, entries) : secretsFor(target, ofApp, states.open);
    if ("problem" in found) {
      problems.push(`${type} ${name}: ${found.problem}`);
      continue;
    }
    const again = found.sources.find(({ urn }) => taken.has(urn));
    if (again !== undefined) {
      problems.push(
        `${type} ${name}: Machine ${again.name} also has the configuration of ${taken.get(again.urn) ?? ""}; declare one of the two fleets first, migrate, and then declare the other`,
      );
      continue;
    }
    for (const { urn } of found.sources) taken.set(urn, name);
    if (hasUnknown(found.inputs)) {
      problems.push(`${type} ${name}: an input depends on resources that do not exist yet; run up for these first`);
      continue;
    }
    migrations.push({ ...target, ...found, id: target.resource.id.render({ ...inputs, app }) });
  }
  return { migrations, problems };
}

/** A resource that the program declares, before it is known what becomes part of it. */
type Target = Omit<Migration, "id" | "sources" | "open"> & { readonly type: string };

function targetOf(
  urn: string,
  planned: ResourcePlan,
  entries: readonly DeploymentEntry[],
  open: OpenState,
): Target | undefined {
  const { steps = [], goal, state } = planned;
  const held = heldIn({ ...goal, urn, id: "" });
  const resource = types[held?.type ?? ""];
  // What exists already can only gain secrets: Machines join a fleet that exists by its input `adopt`.
  const isWanted = steps.join() === "create" || (steps.join() === "update" && held?.type === "AppSecrets");
  if (!held || !resource || sourceTypes[held.type] === undefined || !isWanted) return undefined;
  const existing = entries.find((entry) => entry.urn === urn && entry["delete"] !== true);
  const inputs = inputsAfter(isObject(existing?.["inputs"]) ? existing["inputs"] : {}, planned);
  // The plan leaves these out of the difference.
  for (const name of [CONTEXT, "__provider"]) if (state?.[name] !== undefined) inputs[name] = state[name];
  const app = inputs["app"];
  if (typeof app !== "string" || hasUnknown(app)) return undefined;
  const before = existing && open.resources.find((one) => one.urn === urn)?.outputs;
  return { resource, urn, name: held.name, app: bareId(app), planned, inputs, type: held.type, existing, before };
}

type Sources = Pick<Migration, "sources" | "inputs" | "open"> | { readonly problem: string };

/** A value with what it has sealed replaced by what another one has there: only the engine can compare sealed values. */
function opened(value: unknown, like: unknown): unknown {
  if (isSealed(value)) return like;
  if (Array.isArray(value)) return value.map((item, i) => opened(item, Array.isArray(like) ? like[i] : undefined));
  if (!isObject(value)) return value;
  const open: Values = {};
  for (const [name, inner] of Object.entries(value))
    define(open, name, opened(inner, isObject(like) ? like[name] : undefined));
  return open;
}

/** The inputs that a Machine and its fleet share. */
const shared = ["config", "minSecretsVersion", "memoryLimitMb"] as const;

const sharedOf = (values: Values): Values =>
  withoutUndefined(Object.fromEntries(shared.map((name) => [name, values[name]])));

const namesOf = (all: readonly OpenResource[]): string => all.map(({ name }) => name).join(", ");

/** The Machines that have the fleet's configuration. */
function machinesFor(
  { resource, inputs }: Target,
  leaving: readonly OpenResource[],
  entries: readonly DeploymentEntry[],
): Sources {
  const field = resource.inputFields["config"];
  if (field === undefined || hasUnknown(inputs["config"]))
    return { problem: "its configuration depends on resources that do not exist yet; run up for these first" };
  const configOf = ({ inputs: { config } }: OpenResource): Values => (isObject(config) ? config : {});
  const equals = leaving.filter((one) => same(field, opened(inputs["config"], configOf(one)), configOf(one)));
  const [first] = equals;
  if (first === undefined)
    return {
      problem: `none of ${namesOf(leaving)}, which the program no longer declares, has its configuration. Give the fleet exactly their configuration, migrate, and change it afterwards`,
    };
  const others = equals.filter((one) => !equal(sharedOf(one.inputs), sharedOf(first.inputs)));
  if (others.length > 0)
    return {
      problem: `${first.name} and ${namesOf(others)} differ in config, minSecretsVersion or memoryLimitMb; give them the same values first`,
    };
  if (inputs["volume"] !== undefined || configOf(first)["mounts"] !== undefined)
    return {
      problem: "Machines with volumes cannot be migrated; its inputs adopt and volume.adopt take them over",
    };
  const resting = equals.filter(
    ({ inputs: { state = "started", cordoned } }) => state !== "started" || cordoned === true,
  );
  if (resting.length > 0)
    return { problem: `${namesOf(resting)} is stopped or cordoned, and a fleet has only Machines that serve` };
  const counts: Record<string, number> = {};
  for (const { inputs: has, outputs } of equals) {
    const region = String(outputs["region"] ?? has["region"]);
    counts[region] = (counts[region] ?? 0) + 1;
  }
  const wanted = Object.fromEntries(Object.entries(regionsOf(inputs as Placement)).filter(([, count]) => count > 0));
  if (!equal(counts, wanted))
    return {
      problem: `it wants ${countsText(wanted)}, and ${countsText(counts)} have its configuration. Let it want as many as there are, migrate, and change the number afterwards`,
    };
  const entry = entries.find(({ urn }) => urn === first.urn);
  const own = sharedOf(isObject(entry?.["inputs"]) ? entry["inputs"] : {});
  // What only the fleet has would count as what the Machines run with: the next preview shows it instead.
  const rest = Object.fromEntries(
    Object.entries(inputs).filter(([name]) => !(shared as readonly string[]).includes(name)),
  );
  return {
    sources: equals,
    inputs: { ...rest, ...own },
    open: { ...(opened(rest, first.inputs) as Values), ...sharedOf(first.inputs) },
  };
}

const countsText = (counts: Readonly<Record<string, number>>): string =>
  totalOf(counts) === 0
    ? "no Machines"
    : Object.entries(counts)
        .map(([region, count]) => `${count} in ${region}`)
        .join(" and ");

/** The secrets of the App. Only the engine can compare their values with the program's. */
function secretsFor({ urn, inputs }: Target, leaving: readonly OpenResource[], open: OpenState): Sources {
  const { values: _, ...rest } = inputs;
  const isWriteOnly = inputs["valuesVersion"] !== undefined;
  const unlike = leaving.filter((one) => (one.inputs["valueVersion"] !== undefined) !== isWriteOnly);
  if (unlike.length > 0)
    return {
      problem: isWriteOnly
        ? `the state has the value of ${namesOf(unlike)}, and none of valuesWo; use values`
        : `no state has the write-only value of ${namesOf(unlike)}; use valuesWo and valuesVersion`,
    };
  if (isWriteOnly) return { sources: leaving, inputs: rest, open: rest };
  const before = open.resources.find((one) => one.urn === urn)?.inputs["values"];
  const values = {
    ...(isObject(before) ? before : {}),
    ...Object.fromEntries(leaving.map(({ inputs: { name, value } }) => [String(name), value])),
  };
  return { sources: leaving, inputs: { ...rest, values: sealed(values) }, open: { ...rest, values } };
}

/** The outputs of a migrated resource. */
export type Outputs = ReadonlyMap<string, Values>;

/**
 * The resources of the deployment after the migrations.
 * @param outputs of each resource that takes over, by its URN
 * @param now the time, RFC 3339
 */
export function migrated(
  entries: readonly DeploymentEntry[],
  migrations: readonly Migration[],
  { plan, outputs, now }: { readonly plan: Plans; readonly outputs: Outputs; readonly now: string },
): DeploymentEntry[] {
  const successors = new Map(
    migrations.flatMap(({ urn, sources }) => sources.map((source) => [source.urn, urn] as const)),
  );
  const next = new Map(migrations.map((one) => [one.urn, entryOf(one, entries, outputs.get(one.urn) ?? {}, now)]));
  const known = new Set<string>();
  const placed = entries.flatMap((entry) => {
    const to = entry["delete"] === true ? undefined : next.get(successors.get(entry.urn) ?? entry.urn);
    if (to === undefined) return [entry];
    // It takes the place of the first resource whose object it has.
    if (known.has(to.urn)) return [];
    known.add(to.urn);
    return [to];
  });
  const all = withParents(placed, plan);
  const urns = new Set(all.map(({ urn }) => urn));
  return inOrder(all.map((entry) => referring(entry, successors, urns)));
}

/** The entry of a resource that takes over. */
function entryOf(
  { urn, id, inputs, sources, planned, existing }: Migration,
  entries: readonly DeploymentEntry[],
  outputs: Values,
  now: string,
): DeploymentEntry {
  const { type, parent, protect, provider, dependencies, propertyDependencies, customTimeouts, retainOnDelete } =
    planned.goal ?? {};
  const before = entries.filter((entry) => sources.some((source) => source.urn === entry.urn));
  const [first] = before;
  const { stack } = contextOf(isObject(first?.["outputs"]) ? first["outputs"] : {});
  const created = before.map((entry) => entry["created"]).filter((time) => typeof time === "string");
  return {
    ...existing,
    ...withoutUndefined({
      ...{ urn, custom: true, id, type, parent, provider, dependencies, propertyDependencies },
      protect: protect === true || undefined,
      retainOnDelete: retainOnDelete === true || undefined,
      customTimeouts: isObject(customTimeouts) && Object.keys(customTimeouts).length > 0 ? customTimeouts : undefined,
      additionalSecretOutputs: planned.goal?.["additionalSecretOutputs"],
      created: created.sort()[0],
    }),
    modified: now,
    inputs,
    outputs: { ...inputs, ...outputs, [CONTEXT]: { ...contextOf(inputs), stack } },
  };
}

/** Adds components of the program that become parents, and are not in the state yet. */
function withParents(entries: readonly DeploymentEntry[], plan: Plans): DeploymentEntry[] {
  const all = [...entries];
  const known = new Set(entries.map(({ urn }) => urn));
  for (const entry of all) {
    const parent = entry["parent"];
    if (typeof parent !== "string" || known.has(parent)) continue;
    const goal = plan[parent]?.goal;
    if (goal === undefined || goal["custom"] === true) continue;
    known.add(parent);
    const { type, parent: above } = goal;
    // The loop comes to it too: its own parent may be new.
    all.push({
      urn: parent,
      custom: false,
      type,
      inputs: {},
      outputs: {},
      ...withoutUndefined({ parent: above }),
    });
  }
  return all;
}

/** An entry that refers to the successors of resources. Dependencies that are not in the state yet come with the next update. */
function referring(
  entry: DeploymentEntry,
  successors: ReadonlyMap<string, string>,
  known: ReadonlySet<string>,
): DeploymentEntry {
  const one = (urn: unknown): unknown => (typeof urn === "string" ? (successors.get(urn) ?? urn) : urn);
  const list = (urns: unknown): unknown =>
    Array.isArray(urns)
      ? [...new Set(urns.map(one))].filter((urn) => urn !== entry.urn && known.has(String(urn)))
      : urns;
  const { dependencies, propertyDependencies, deletedWith, replaceWith } = entry;
  return {
    ...entry,
    ...withoutUndefined({
      dependencies: list(dependencies),
      replaceWith: list(replaceWith),
      deletedWith: one(deletedWith),
      propertyDependencies: isObject(propertyDependencies)
        ? Object.fromEntries(Object.entries(propertyDependencies).map(([name, urns]) => [name, list(urns)]))
        : undefined,
    }),
  };
}
