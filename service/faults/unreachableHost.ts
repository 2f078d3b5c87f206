// The planned fault of an unreachable host: Machines and volumes stay listed, and nothing can be done with them
// (docs/interface.md#machine, docs/interface.md#volumes).
import { z } from "zod";
import type { Operation } from "../../api/operation.ts";
import { isObject } from "../../api/schema.ts";
import type { Context } from "../context.ts";
import { configOf, findMachine } from "../lifecycle/machines.ts";
import { findVolume } from "../lifecycle/volumes.ts";
import { refuse, type Refusal } from "../refusal.ts";
import { noHost, noVolumeHost } from "../rules/placement.ts";
import type { AppRow, MachineRow } from "../store/rows.ts";

/** What is on the host: all that is given must be met, so `{}` is every Machine. */
export const unreachableHost = z.strictObject({
  machines: z.array(z.string().min(1)).min(1).optional(),
  app: z.string().min(1).optional(),
  region: z.string().min(1).optional(),
});

/** The Machines of a host, by their ids, App and region. */
export type Host = Readonly<z.infer<typeof unreachableHost>>;

/** A request that a fault may concern. */
export interface Request {
  readonly row: Operation;
  /** Id of the caller's organization. */
  readonly caller: number;
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: unknown;
  readonly body: unknown;
}

type Subject = "machine" | "volume";

// ASSUMED: while a host is unreachable, the platform shows its Machines and volumes, and all else that concerns them needs the
// host: also their events, metadata, leases and waits.
const shown: Readonly<Record<string, Subject>> = {
  "machines.list": "machine",
  "machines.get": "machine",
  "orgs.machines": "machine",
  "volumes.list": "volume",
  "volumes.get": "volume",
  "orgs.volumes": "volume",
};

/** Whether an operation shows Machines or volumes, which works without their host. */
export const worksWithoutHost = ({ id }: Operation): boolean => Object.hasOwn(shown, id);

const isCreate = ({ id }: Operation): boolean => id === "machines.create" || id === "volumes.create";

/** The one Machine or volume that an operation is for, or undefined. */
function subjectOf({
  row,
  params,
  body,
}: Omit<Request, "caller" | "query">): readonly [Subject, id: string] | undefined {
  if (row.path.includes("{machine_id}")) return ["machine", String(params["machine_id"])];
  if (row.path.includes("{volume_id}")) return ["volume", String(params["volume_id"])];
  const volume =
    row.id === "machines.create" ? volumeIn(body) : row.id === "volumes.create" ? sourceIn(body) : undefined;
  return volume === undefined ? undefined : ["volume", volume];
}

const sourceIn = (body: unknown): string | undefined => {
  const source = isObject(body) ? body["source_volume_id"] : undefined;
  return typeof source === "string" && source !== "" ? source : undefined;
};

/** The first volume that a body mounts. */
export function volumeIn(body: unknown): string | undefined {
  const config = isObject(body) ? body["config"] : undefined;
  const mounts = isObject(config) ? config["mounts"] : undefined;
  const [mount] = Array.isArray(mounts) ? (mounts as unknown[]) : [];
  return isObject(mount) && typeof mount["volume"] === "string" ? mount["volume"] : undefined;
}

/** Whether an operation can have to do with a host. */
export const mayConcernHost = (row: Operation): boolean =>
  worksWithoutHost(row) || row.path.includes("{machine_id}") || row.path.includes("{volume_id}") || isCreate(row);

type Placed = Pick<MachineRow, "app" | "region">;

const appOf = ({ store }: Context, { app }: Placed): Pick<AppRow, "name" | "org"> | undefined =>
  store.get("SELECT name, org FROM apps WHERE id = ?", app);

const isAt = (context: Context, { app, region }: Host, row: Placed): boolean =>
  (region === undefined || region === row.region) && (app === undefined || appOf(context, row)?.name === app);

/** Whether a Machine is on the host. A destroyed one is on none, because the platform has forgotten it. */
function hasMachine(context: Context, host: Host, id: string): boolean {
  const machine = findMachine(context, id);
  if (!machine || machine.destroyed_at !== null || host.machines?.includes(id) === false) return false;
  return isAt(context, host, machine);
}

/** Whether a volume is on the host. It stays there after its Machine was destroyed. */
function hasVolume(context: Context, host: Host, id: string): boolean {
  const volume = findVolume(context, id);
  if (!volume || !isAt(context, host, volume)) return false;
  const mounts = (machineId: string): boolean => {
    const machine = findMachine(context, machineId);
    return machine !== undefined && configOf(context, machine).mounts?.[0]?.volume === id;
  };
  return host.machines === undefined || host.machines.some(mounts);
}

const has = (context: Context, host: Host, [kind, id]: readonly [Subject, string]): boolean =>
  kind === "machine" ? hasMachine(context, host, id) : hasVolume(context, host, id);

/** Whether the caller's organization has a Machine or volume: the rules refuse all others, and tell them nothing about it. */
function isOf(caller: number, context: Context, [kind, id]: readonly [Subject, string]): boolean {
  const row = kind === "machine" ? findMachine(context, id) : findVolume(context, id);
  return row !== undefined && appOf(context, row)?.org === caller;
}

/** Whether a request creates something where nothing can be created: an App and region, and not single Machines, are unreachable. */
function isCreatedAt(context: Context, { machines, app, region }: Host, { row, params, body }: Request): boolean {
  if (machines !== undefined || !isCreate(row)) return false;
  const wanted = isObject(body) && typeof body["region"] === "string" ? body["region"] : context.nearest;
  return (region === undefined || region === wanted) && (app === undefined || app === params["app_name"]);
}

/** Whether a request is for something on the host, or for a list that may show it. */
export function concernsHost(context: Context, host: Host, request: Request): boolean {
  if (isCreatedAt(context, host, request)) return true;
  const subject = subjectOf(request);
  if (subject) return isOf(request.caller, context, subject) && has(context, host, subject);
  if (!worksWithoutHost(request.row)) return false;
  return host.app === undefined || (request.params["app_name"] ?? host.app) === host.app;
}

/**
 * The answer to a request that needs the host (docs/interface.md#refusals); undefined if it works without.
 * ASSUMED: only `force` destroys a Machine of an unreachable host, and a create that needs such a host finds it full.
 */
export function refusalOf(request: Omit<Request, "caller">): Refusal | undefined {
  const { row, query, body } = request;
  const { force, kill } = query as { readonly force?: boolean; readonly kill?: boolean };
  if (worksWithoutHost(row) || (row.id === "machines.destroy" && (force || kill))) return undefined;
  if (row.id === "machines.create") return noHost(volumeIn(body));
  if (row.id === "volumes.create") return noVolumeHost();
  const [kind, id] = subjectOf(request) ?? [];
  return refuse(503, `unavailable: the host of ${kind} ${id} cannot be reached; nothing was changed`);
}

/**
 * A Machine or volume of a list as it is shown while its host is unreachable. ASSUMED: its state is the last known one, and
 * there is no `incomplete_config`, which a client must not need.
 */
export function seenWithoutHost(context: Context, host: Host, row: Operation, one: unknown): unknown {
  const kind = shown[row.id];
  if (!isObject(one) || !kind || !has(context, host, [kind, String(one["id"])])) return one;
  const { config: _, ...rest } = one;
  return "host_status" in rest ? { ...rest, host_status: "unreachable" } : rest;
}
