// Replayed requests: a Machine answers with the header `fly-replay`, and another one gets the request. Clients may name a Machine, too.
import type { IncomingMessage } from "node:http";
import { didYouMean } from "../../api/didYouMean.ts";
import type { MachineRow } from "../store/rows.ts";

/** The Machines that a request is for: the first of these groups that has one that can answer. */
export type Wish = readonly ((machine: Pick<MachineRow, "id" | "region">) => boolean)[];

/** A header `fly-replay`. */
export interface Replay {
  readonly wish: Wish;
  /** The name of an App of the same organization and network; undefined for the same App. */
  readonly app: string | undefined;
  /** What the next Machine gets of this one. */
  readonly state: string | undefined;
  /** Its text, for messages. */
  readonly text: string;
}

const fields = ["instance", "prefer_instance", "region", "app", "state", "elsewhere"] as const;
type Field = (typeof fields)[number];

/** Anybody. */
export const anyMachine: Wish = [() => true];

const only =
  (id: string): Wish[number] =>
  (machine) =>
    machine.id === id;

// ASSUMED: a client's own wish counts as one of a Machine does, and only among the Machines of the App that it asks.
/** The Machine that a client names; any Machine if it names none. */
export function wishOf({ headers }: IncomingMessage): Wish {
  const [forced, preferred] = [headers["fly-force-instance-id"], headers["fly-prefer-instance-id"]];
  if (typeof forced === "string") return [only(forced)];
  if (typeof preferred === "string") return [only(preferred), ...anyMachine];
  return anyMachine;
}

/** Reads the header `fly-replay` of a Machine's answer. Throws an Error that says what is wrong with it. */
export function replayOf(text: string, sender: string): Replay {
  const given = new Map<Field, string>();
  for (const part of partsOf(text)) {
    const [, name = "", quoted, plain = ""] = /^([^=]*)=(?:"([^"]*)"|([^"]*))$/.exec(part) ?? [];
    if (name === "") throw new Error(`${show(part)} is not FIELD=VALUE`);
    const field = fields.find((known) => known === name.trim().toLowerCase());
    if (field === undefined) throw new Error(unknownField(name.trim()));
    if (given.has(field)) throw new Error(`it has ${field} twice`);
    given.set(field, (quoted ?? plain).trim());
  }
  if (given.size === 0) throw new Error(`it is empty; known fields are ${fields.join(", ")}`);
  const elsewhere = given.get("elsewhere") ?? "false";
  if (!["true", "false"].includes(elsewhere)) throw new Error(`elsewhere is ${show(elsewhere)}, not true or false`);
  const groups = groupsOf(given);
  return {
    wish: elsewhere === "true" ? groups.map((group) => (machine) => machine.id !== sender && group(machine)) : groups,
    app: given.get("app"),
    state: given.get("state"),
    text,
  };
}

/** The header `fly-replay-src`, which says to the next Machine who replayed the request, when and why. */
export const sourceOf = ({ id, region }: Pick<MachineRow, "id" | "region">, { state }: Replay, now: number): string =>
  [`instance=${id}`, `region=${region}`, `t=${now * 1000}`, ...(state === undefined ? [] : [`state=${state}`])].join(
    ";",
  );

function groupsOf(given: ReadonlyMap<Field, string>): Wish {
  const [instance, preferred, regions] = [given.get("instance"), given.get("prefer_instance"), given.get("region")];
  if (instance !== undefined) return [only(instance)];
  const codes = regions?.split(",").map((code) => code.trim().toLowerCase()) ?? ["any"];
  const ofRegions = codes.map(
    (code): Wish[number] =>
      (machine) =>
        code === "any" || machine.region === code,
  );
  return preferred === undefined ? ofRegions : [only(preferred), ...ofRegions];
}

/** The parts between semicolons; one in quotes is part of a value. */
const partsOf = (text: string): string[] =>
  (text.match(/(?:[^;"]|"[^"]*"?)+/g) ?? []).map((part) => part.trim()).filter((part) => part !== "");

function unknownField(name: string): string {
  const meant = didYouMean(name, fields);
  return `${show(name)} is no field: ${meant === undefined ? `known are ${fields.join(", ")}` : `did you mean ${meant}?`}`;
}

const show = (text: string): string => JSON.stringify(text.slice(0, 100));
