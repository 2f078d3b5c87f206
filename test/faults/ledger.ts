// Data that the program never allowed to be lost (I12), and objects that the program requires (I11).
import { createHash } from "node:crypto";
import { leavesIn } from "../../provider/core/redaction.ts";
import type { Values } from "../../provider/core/resource.ts";
import { idFrom } from "../../provider/core/run/program.ts";
import { writeOnlyIn } from "../../provider/core/writeOnly.ts";
import type { ResourceName } from "../../provider/registry.ts";
import type { Service } from "../../service/index.ts";
import { sealedName } from "../../service/store/secretValues.ts";
import type { Declared, Kept, Stack } from "../support/modelStack.ts";
import { resourceOf } from "../support/simulation.ts";
import { linesOf, onService } from "./inventory.ts";
import { Broken } from "./invariants.ts";
import { isKind, kindNames, kinds } from "./kinds.ts";

/** Whether a resource contains data that its inputs do not allow to be lost. */
export function isGuarded({ type, inputs }: Pick<Declared, "type" | "inputs">): boolean {
  const { losable } = kinds[type];
  return losable !== undefined && inputs[losable[0]] !== losable[1];
}

/** Whether it is protected even after its removal from the program. */
export const isProtected = (kept: Kept): boolean => kept.type === "PostgresCluster" && isGuarded(kept);

/** What distinguishes an object from another one with its name: its creation time. */
function creationTimeOf({ context }: Service, line: string): number | undefined {
  const [type = "", id = ""] = line.split(" ");
  const [holder = "", name = ""] = id.split("/");
  if (type === "PostgresDatabase")
    return context.store.get<{ at: number }>(
      "SELECT created_at AS at FROM databases WHERE cluster = ? AND name = ?",
      ...[holder, name],
    )?.at;
  if (type === "SecretKey")
    return context.store.get<{ at: number }>(
      "SELECT s.updated_at AS at FROM secret_keys s JOIN apps a ON a.id = s.app WHERE a.name = ? AND s.name = ?",
      ...[holder, name],
    )?.at;
  return 0;
}

interface Entry {
  name: string;
  createdAt: number | undefined;
  isProtected: boolean;
  mayGo: boolean;
}

/** Simulated milliseconds for which the last requests of a run that died may be under way: four ways of up to 10 s each. */
const lateMs = 40_000;

/** The data that states have had, and what programs allow for it. */
export class Ledger {
  readonly #entries = new Map<string, Entry>();
  /** Until when requests of a run that died may arrive. */
  #lateUntil = 0;

  /**
   * Before a run: records what its program allows for existing data. A destroy has no program. A target that the program has only under
   * another name is deleted, as with a destroy: the engine does not check that other resource. Nor does it say that a tainted object had
   * another name, which the provider knows only if the inputs decide on the id.
   */
  open(
    stack: Stack,
    program: readonly Declared[] | undefined,
    service: Service,
    targets: readonly string[] = [],
  ): void {
    // The last request of a run that died may have arrived after that run, or may still arrive.
    this.#forgetGone(new Set(onService(service)), service);
    const isSettled = service.context.clock.now() >= this.#lateUntil;
    // If its parent is deleted first, the engine uses the inputs of the last up; only an up withdraws a permission.
    const isHeld = (kept: Kept) => kept.mark === undefined && isGuarded(kept);
    const held = new Set(stack.resources.filter(isHeld).flatMap(linesOf));
    const isUnknown = ({ type, inputs, tainted }: Kept) => tainted && idFrom(resourceOf(type), inputs) === undefined;
    const unguarded = new Set([...targets, ...stack.resources.filter(isUnknown).map(({ name }) => name)]);
    for (const [line, entry] of this.#entries) {
      const declared = program?.find(
        ({ name, aliases = [] }) => name === entry.name || (aliases.includes(entry.name) && !unguarded.has(entry.name)),
      );
      if (!declared) entry.mayGo ||= !entry.isProtected;
      else if (!isGuarded(declared)) entry.mayGo = true;
      else if (held.has(line) && isSettled) entry.mayGo = false;
    }
  }

  /** After a run, whatever its result: all data that must not be lost still exists. */
  close(stack: Stack, service: Service, died = false): void {
    if (died) this.#lateUntil = service.context.clock.now() + lateMs;
    const there = new Set(onService(service));
    this.#forgetGone(there, service);
    for (const kept of stack.resources.filter(
      ({ type, mark }) => kinds[type].losable !== undefined && mark !== "replacing",
    ))
      for (const line of linesOf(kept).filter((one) => there.has(one))) {
        const { createdAt = creationTimeOf(service, line), mayGo = !isGuarded(kept) } = this.#entries.get(line) ?? {};
        this.#entries.set(line, { name: kept.name, createdAt, mayGo, isProtected: isProtected(kept) });
      }
  }

  /** Forgets data that is gone, and had to be allowed to be lost. */
  #forgetGone(there: ReadonlySet<string>, service: Service): void {
    for (const [line, { createdAt, mayGo }] of this.#entries) {
      const isThere = there.has(line) && creationTimeOf(service, line) === createdAt;
      if (!isThere && !mayGo) throw new Broken(`${line} is gone, though nothing ever said that it may be lost`);
      if (!isThere) this.#entries.delete(line);
    }
  }

  /** Another client deletes something. */
  forget(line: string): void {
    this.#entries.delete(line);
  }
}

/**
 * I11: objects that the program declares and the state has exist with the declared values, except types with unknown
 * results.
 */
export function judgeValues(
  program: readonly Declared[],
  { resources }: Stack,
  service: Service,
  unsure: ReadonlySet<ResourceName>,
): void {
  const declared = new Map(program.map(({ name, inputs }) => [name, inputs]));
  const there = new Set(onService(service));
  const written = kindNames.filter((type) => isKind(type, "written"));
  const isUnsure = (type: ResourceName) =>
    (written.includes(type) ? written : type === "MachineMetadata" ? [type, "Machine" as const] : [type]).some((one) =>
      unsure.has(one),
    );
  for (const kept of resources.filter(({ name, mark, type }) => declared.has(name) && !mark && !isUnsure(type))) {
    const unstored = unstoredOf(kept, declared.get(kept.name) ?? {});
    const stored = JSON.stringify([kept.inputs, kept.state]);
    if (leavesIn(unstored).some((value) => stored.includes(JSON.stringify(value))))
      throw new Broken(`the state of ${kept.name} has a value that must not be stored`);
    const missing = linesOf(kept).filter((line) => !there.has(line));
    if (missing.length > 0)
      throw new Broken(
        `${missing.join(", ")} is not there after an up that succeeded, though ${kept.name} declares it`,
      );
    for (const [what, wanted, live] of valuesOf({ ...kept, inputs: { ...kept.inputs, ...unstored } }, service))
      if (wanted !== live)
        throw new Broken(
          `${what} is not what ${kept.name} says: it is ${fingerprint(live)} and not ${fingerprint(wanted)}`,
        );
  }
}

/** The values that a resource wrote and does not store. One that was not a target still has those of an earlier program. */
function unstoredOf({ type, inputs }: Kept, wanted: Values): Values {
  const { inputFields } = resourceOf(type);
  const versions = Object.values(inputFields).flatMap(({ meta }) => meta.writeOnly?.version ?? []);
  const isCurrent = versions.every((version) => inputs[version] === wanted[version]);
  return isCurrent ? writeOnlyIn({ inputFields }, wanted) : {};
}

/** Messages must not contain values, so they show a hash. */
const fingerprint = (text: string | undefined): string =>
  text === undefined ? "not there" : createHash("sha256").update(text).digest("hex").slice(0, 8);

type Compared = readonly [what: string, wanted: string, live: string | undefined];

/** Values that a resource wrote under names of other resources, as declared and as live. */
function valuesOf({ type, id, inputs, state }: Kept, service: Service): Compared[] {
  const [app = "", name = ""] = id.split("/");
  if (type === "Secret") {
    const value = inputs["valueWo"] ?? inputs["value"];
    return typeof value === "string" ? [[`Secret ${id}`, value, secretValue(service, app, name)]] : [];
  }
  if (type === "AppSecrets")
    return Object.entries(inputs["valuesWo"] ?? inputs["values"] ?? {}).map(([one, value]) => [
      `Secret ${app}/${one}`,
      String(value),
      secretValue(service, app, one),
    ]);
  if (type === "MachineMetadata")
    return Object.entries(inputs["values"] ?? {}).map(([key, value]) => [
      `metadata ${key} of ${id}`,
      String(value),
      metadataOf(service, String(state["machineId"]))[key],
    ]);
  return [];
}

function secretValue({ context }: Service, app: string, name: string): string | undefined {
  const row = context.store.get<{ app: string; value: Uint8Array }>(
    "SELECT s.app, s.value FROM secrets s JOIN apps a ON a.id = s.app WHERE a.name = ? AND s.name = ?",
    ...[app, name],
  );
  return row && context.vault.open(sealedName(row.app, name), row.value).toString();
}

function metadataOf({ context }: Service, machine: string): Record<string, string> {
  const row = context.store.get<{ metadata: string | null }>("SELECT metadata FROM machines WHERE id = ?", machine);
  return JSON.parse(row?.metadata ?? "{}") as Record<string, string>;
}
