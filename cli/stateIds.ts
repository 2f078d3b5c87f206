// Ids of the objects in a state, which are no orphans.
import { isObject } from "../api/schema.ts";
import { bareId } from "../api/names.ts";
import { machinesOf } from "../provider/fleets/roll.ts";
import { isSealed, type StateResource } from "./stackState.ts";

/** The objects of an id: itself, or both addresses of a pair. */
export function keysOf(type: string, id: string): readonly string[] {
  if (type !== "IpAssignment") return [id];
  const [app = "", ips = ""] = id.split("/");
  return ips.split(",").map((ip) => `${app}/${ip.toLowerCase()}`);
}

/** Everything that resources contain, by type. */
export function heldKeys(all: readonly StateResource[]): ReadonlyMap<string, ReadonlySet<string>> {
  const keys = new Map<string, Set<string>>();
  const add = (type: string, key: string): void => {
    keys.set(type, (keys.get(type) ?? new Set()).add(key));
  };
  for (const { type, id, outputs } of all) {
    if (id === "") continue;
    for (const key of keysOf(type, id)) add(type, key);
    // Those that it has by a migration of the state may have no tag of it yet.
    if (type === "Fleet")
      for (const machine of machinesOf(outputs)) add("Machine", `${id.split("/")[0] ?? ""}/${machine}`);
    if (type === "AcmeCertificate" || type === "CustomCertificate") add("Hostname", id);
  }
  for (const key of secretsHeld(all).names) add("Secret", key);
  return keys;
}

/** Secrets of resources other than a Secret: `app/name`, and those whose names the export hides. */
export function secretsHeld(
  all: readonly StateResource[],
  app?: string,
): { readonly names: readonly string[]; readonly sealed: readonly StateResource[] } {
  const names: string[] = [];
  const sealed: StateResource[] = [];
  for (const resource of all) {
    const { type, id, inputs } = resource;
    const [first = "", second = first] = id.split("/");
    const of = type === "PostgresAttachment" ? second : first;
    if (id === "" || (app !== undefined && bareId(of) !== app)) continue;
    const { values, secretName } = inputs;
    if (type === "AppSecrets" && isObject(values) && !isSealed(values))
      names.push(...Object.keys(values).map((name) => `${of}/${name}`));
    else if (type === "AppSecrets") sealed.push(resource);
    if (type === "PostgresAttachment" && typeof secretName === "string") names.push(`${of}/${secretName}`);
    else if (type === "PostgresAttachment" && isSealed(secretName)) sealed.push(resource);
  }
  return { names, sealed };
}
