// Finds the objects that a path names, or refuses the request (docs/interface.md#refusals).
import { findMachine } from "../lifecycle/machines.ts";
import { findVolume } from "../lifecycle/volumes.ts";
import { periods } from "../time/delays.ts";
import { refuse } from "../refusal.ts";
import type { AppRow, MachineRow, OrgRow, VolumeRow } from "../store/rows.ts";
import { isFor, isForAll } from "../store/tokens.ts";
import type { Context } from "../context.ts";
import type { Caller } from "./rule.ts";

/** The parts of a request that the lookups need. */
export interface Asking {
  readonly context: Context;
  readonly caller: Caller;
  readonly params: Readonly<Record<string, unknown>>;
}

/** The organization of a slug; a token of some Apps cannot use it. ASSUMED: `personal` is the organization of the token, whatever its slug. */
export function orgOf(asking: Pick<Asking, "context" | "caller">, slug: string): OrgRow {
  const found = ownOrg(asking, slug);
  if (!isForAll(asking.caller)) throw refuse(403, "unauthorized");
  return found;
}

/** The same for a new App. ASSUMED: a token of a network may create Apps in that network. */
export function orgOfNewApp(asking: Pick<Asking, "context" | "caller">, slug: string, network: string): OrgRow {
  const found = ownOrg(asking, slug);
  if (!isForAll(asking.caller) && asking.caller.network !== network) throw refuse(403, "unauthorized");
  return found;
}

/** The organization of a slug, for a token of it with any scope. */
export function ownOrg({ context, caller }: Pick<Asking, "context" | "caller">, slug: string): OrgRow {
  const found = context.store.get<OrgRow>(
    "SELECT * FROM orgs WHERE slug = ?",
    slug === "personal" ? caller.slug : slug,
  );
  // ASSUMED: an unknown organization is 404 everywhere, as for databases (docs/interface.md#managed-postgres);
  // the organization of another token is 403.
  if (!found) throw refuse(404, "organization not found");
  if (found.id !== caller.org) throw refuse(403, "unauthorized");
  return found;
}

/** The organization of the token, also of a token of some Apps. */
export function callerOrg({ context, caller }: Pick<Asking, "context" | "caller">): OrgRow {
  const org = context.store.get<OrgRow>("SELECT * FROM orgs WHERE id = ?", caller.org);
  if (!org) throw refuse(404, "organization not found");
  return org;
}

/** The App of the path. */
export function appOf({ context, caller, params }: Asking, missing = "app not found"): AppRow {
  const name = String(params["app_name"]);
  const app = context.appRows.get(name, () => context.store.get<AppRow>("SELECT * FROM apps WHERE name = ?", name));
  if (!app) throw refuse(404, missing);
  if (app.org !== caller.org || !isFor(caller, app)) throw refuse(403, "unauthorized");
  return app;
}

/** The App of the path, to add something. ASSUMED: an App that is being deleted can be read but not changed. */
export function openAppOf(asking: Asking): AppRow {
  const app = appOf(asking);
  if (app.deleting === 1) throw refuse(404, "app not found");
  return app;
}

/** The Machine of the path, or a destroyed one while it is still shown (docs/interface.md#machine-states). */
export function machineOf(asking: Asking): MachineRow {
  const app = appOf(asking);
  const machine = findMachine(asking.context, String(asking.params["machine_id"]));
  if (!machine || machine.app !== app.id || isForgotten(asking.context, machine))
    throw refuse(404, "not_found: machine not found");
  return machine;
}

/** The Machine of the path, to change it. ASSUMED: changing a destroyed Machine is 404. */
export function liveMachineOf(asking: Asking): MachineRow {
  const machine = machineOf(asking);
  if (machine.destroyed_at !== null) throw refuse(404, "not_found: machine not found");
  return machine;
}

const isForgotten = (context: Context, machine: MachineRow): boolean =>
  machine.destroyed_at !== null && machine.destroyed_at + periods.destroyedShown <= context.clock.now();

/** The volume of the path. */
export function volumeOf(asking: Asking): VolumeRow {
  const app = appOf(asking);
  const volume = findVolume(asking.context, String(asking.params["volume_id"]));
  if (!volume || volume.app !== app.id) throw refuse(404, "volume not found");
  return volume;
}
