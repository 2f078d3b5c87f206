// What the service tells a proxy of its own: a line of JSON for each App and each Machine, with what a proxy needs to route and no more.
import type { MachineConfig } from "../../api/machineConfig.ts";
import type { Context } from "../context.ts";
import { keyNames } from "../lifecycle/hostnames.ts";
import { findMachine, storedConfig } from "../lifecycle/machines.ts";
import type { CheckResult, Reach } from "../runtime/runtime.ts";
import type { AppRow, HostnameRow, MachineRow } from "../store/rows.ts";

/** A hostname that belongs to an App, and its certificates. The keys are in clear text: they are for this proxy. */
export interface FedHostname extends Pick<
  HostnameRow,
  "hostname" | "owned_at" | "issued_chain" | "expires_at" | "custom_chain" | "custom_status" | "custom_expires_at"
> {
  readonly issued_key: string | null;
  readonly custom_key: string | null;
}

/** An App. */
export interface FedApp extends Pick<AppRow, "id" | "org" | "name" | "network"> {
  readonly hostnames: readonly FedHostname[];
}

/** A Machine. */
export interface FedMachine extends Pick<
  MachineRow,
  "id" | "app" | "region" | "state" | "version" | "cordoned" | "checks" | "created_at"
> {
  /** The result of each check by its name; null if all have the same. */
  readonly results: Readonly<Record<string, CheckResult["status"]>> | null;
  /** Whether the restart policy will start it again. */
  readonly isRetried: boolean;
  readonly config: Pick<MachineConfig, "services" | "checks">;
  /** Where its ports are reached. */
  readonly endpoints: Readonly<Record<string, string>>;
}

/** A line of the feed. */
export type FeedLine =
  /** The first one: which run of the service it is, and whether all follows or only what has changed. */
  | { readonly begin: { readonly run: string; readonly isWhole: boolean } }
  | { readonly app: FedApp }
  | { readonly machine: FedMachine }
  /** The id of an App or a Machine. */
  | { readonly gone: string }
  /** Everything up to this number has been said. */
  | { readonly at: number };

type Checks = NonNullable<MachineConfig["checks"]>;
type Service = NonNullable<MachineConfig["services"]>[number];

/** A check without what it sends: only its name counts, which follows from the rest. */
const bare = ({ type, port, kind }: Checks[string] & { readonly kind?: unknown }) => ({ type, port, kind });

/** The parts of a configuration by which requests are routed. */
function routing({ services, checks }: MachineConfig): FedMachine["config"] {
  const own = checks && Object.fromEntries(Object.entries(checks).map(([name, check]) => [name, bare(check)]));
  return {
    ...(own ? { checks: own } : {}),
    ...(services
      ? {
          services: services.map((service) => ({
            ...service,
            ...(service.checks ? { checks: service.checks.map(bare) as NonNullable<Service["checks"]> } : {}),
          })),
        }
      : {}),
  };
}

function fedMachine(context: Context, reach: Reach, machine: MachineRow): FedMachine {
  const { id, app, region, state, version, cordoned, checks, created_at, check_results } = machine;
  const config = routing(storedConfig(context, machine).parsed);
  const ports = new Set(
    (config.services ?? []).flatMap(({ ports: given, internal_port }) => (given ? [internal_port] : [])),
  );
  const endpoints = [...ports].flatMap((port): [number, string][] => {
    const endpoint = state === "started" ? reach.endpoint(id, port) : undefined;
    return endpoint === undefined ? [] : [[port, endpoint]];
  });
  const results = JSON.parse(check_results ?? "null") as Readonly<Record<string, CheckResult>> | null;
  return {
    ...{ id, app, region, state, version, cordoned, checks, created_at, config },
    results: results && Object.fromEntries(Object.entries(results).map(([name, { status }]) => [name, status])),
    isRetried: state === "stopped" && context.timers.pending(id, "machine.retry"),
    endpoints: Object.fromEntries(endpoints),
  };
}

function fedApp({ store, vault }: Context, { id, org, name, network }: Omit<FedApp, "hostnames">): FedApp {
  const rows = store.all<HostnameRow>(
    "SELECT * FROM hostnames WHERE app = ? AND owned_at IS NOT NULL ORDER BY hostname",
    id,
  );
  const opened = (sealedFor: string, key: Uint8Array | null): string | null =>
    key && vault.open(sealedFor, key).toString();
  const hostnames = rows.map((row): FedHostname => {
    const { hostname, owned_at, issued_chain, expires_at, custom_chain, custom_status, custom_expires_at } = row;
    return {
      ...{ hostname, owned_at, issued_chain, expires_at, custom_chain, custom_status, custom_expires_at },
      issued_key: opened(keyNames.issued(row), row.issued_key),
      custom_key: opened(keyNames.custom(row), row.custom_key),
    };
  });
  return { id, org, name, network, hostnames };
}

/** What there is to say of the App or the Machine with an id now; undefined if the id is neither's. */
export function lineOf(context: Context, reach: Reach, id: string): FeedLine | undefined {
  const machine = findMachine(context, id);
  if (machine) return machine.destroyed_at === null ? { machine: fedMachine(context, reach, machine) } : { gone: id };
  const app = context.store.get<AppRow>("SELECT id, org, name, network, deleting FROM apps WHERE id = ?", id);
  if (!app) return undefined;
  return app.deleting < 2 ? { app: fedApp(context, app) } : { gone: id };
}
