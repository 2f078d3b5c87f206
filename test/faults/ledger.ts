// What data there is that the program never said may be lost (I12), and what the program says that must be there (I11).
import { createHash } from "node:crypto";
import type { Values } from "../../provider/core/resource.ts";
import type { Service } from "../../service/index.ts";
import { sealedName } from "../../service/store/secretValues.ts";
import type { Declared, Kept, Stack } from "../support/modelStack.ts";
import { linesOf, onService } from "./inventory.ts";
import { Broken } from "./invariants.ts";

/** Types that hold data, and whether their values let it be lost. */
const guarded: Readonly<Record<string, (values: Values) => boolean>> = {
  Volume: ({ allowDataLoss }) => allowDataLoss === true,
  SecretKey: ({ allowDataLoss }) => allowDataLoss === true,
  PostgresDatabase: ({ allowDataLoss }) => allowDataLoss === true,
  PostgresCluster: ({ deletionProtection }) => deletionProtection === false,
};

/** Whether something holds data that these values do not let be lost. */
export const isGuarded = ({ type, inputs }: Pick<Declared, "type" | "inputs">): boolean =>
  guarded[type]?.(inputs) === false;

/** Whether it is protected also from a program that no longer has it. */
export const isProtected = (kept: Kept): boolean => kept.type === "PostgresCluster" && isGuarded(kept);

/** What tells an object from another one of its name: when it was made. */
function birthOf({ context }: Service, line: string): number | undefined {
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
  birth: number | undefined;
  isProtected: boolean;
  mayGo: boolean;
}

/** The data that states have known, and what programs have said of it. */
export class Ledger {
  readonly #entries = new Map<string, Entry>();

  /** Before a run: what its program says of what there is. A destroy has none. */
  open(stack: Stack, program: readonly Declared[] | undefined): void {
    // Where its parent is deleted first, the engine asks about it as the last up left it: a permission is withdrawn by an up.
    const isHeld = (kept: Kept) => kept.mark === undefined && isGuarded(kept);
    const held = new Set(stack.resources.filter(isHeld).flatMap(linesOf));
    for (const [line, entry] of this.#entries) {
      const declared = program?.find(({ name, aliases = [] }) => name === entry.name || aliases.includes(entry.name));
      if (!declared) entry.mayGo ||= !entry.isProtected;
      else if (!isGuarded(declared)) entry.mayGo = true;
      else if (held.has(line)) entry.mayGo = false;
    }
  }

  /** After a run, whatever came of it: everything is there that may not go. */
  close(stack: Stack, service: Service): void {
    const there = new Set(onService(service));
    for (const [line, { birth, mayGo }] of this.#entries) {
      const isThere = there.has(line) && birthOf(service, line) === birth;
      if (!isThere && !mayGo) throw new Broken(`${line} is gone, though nothing ever said that it may be lost`);
      if (!isThere) this.#entries.delete(line);
    }
    for (const kept of stack.resources.filter(({ type, mark }) => Object.hasOwn(guarded, type) && mark !== "replacing"))
      for (const line of linesOf(kept).filter((one) => there.has(one))) {
        const { birth = birthOf(service, line), mayGo = !isGuarded(kept) } = this.#entries.get(line) ?? {};
        this.#entries.set(line, { name: kept.name, birth, mayGo, isProtected: isProtected(kept) });
      }
  }

  /** Somebody else takes something away. */
  forget(line: string): void {
    this.#entries.delete(line);
  }
}

/** I11: what the program declares and the state has is there, as the program says; but for types of which nobody knows. */
export function judgeValues(
  program: readonly Declared[],
  { resources }: Stack,
  service: Service,
  unsure: ReadonlySet<string>,
): void {
  const names = new Set(program.map(({ name }) => name));
  const there = new Set(onService(service));
  const written = ["Secret", "AppSecrets", "PostgresAttachment"];
  const isUnsure = (type: string) =>
    (written.includes(type) ? written : type === "MachineMetadata" ? [type, "Machine"] : [type]).some((one) =>
      unsure.has(one),
    );
  for (const kept of resources.filter(({ name, mark, type }) => names.has(name) && !mark && !isUnsure(type))) {
    const missing = linesOf(kept).filter((line) => !there.has(line));
    if (missing.length > 0)
      throw new Broken(
        `${missing.join(", ")} is not there after an up that succeeded, though ${kept.name} declares it`,
      );
    for (const [what, wanted, live] of valuesOf(kept, service))
      if (wanted !== live)
        throw new Broken(
          `${what} is not what ${kept.name} says: it is ${fingerprint(live)} and not ${fingerprint(wanted)}`,
        );
  }
}

/** No message may hold a value. */
const fingerprint = (text: string | undefined): string =>
  text === undefined ? "not there" : createHash("sha256").update(text).digest("hex").slice(0, 8);

type Compared = readonly [what: string, wanted: string, live: string | undefined];

/** Values a resource has written under names of others, as the program says them and as they are. */
function valuesOf({ type, id, inputs, state }: Kept, service: Service): Compared[] {
  const [app = "", name = ""] = id.split("/");
  if (type === "Secret") return [[`Secret ${id}`, String(inputs["value"]), secretValue(service, app, name)]];
  if (type === "AppSecrets")
    return Object.entries(inputs["values"] ?? {}).map(([one, value]) => [
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
