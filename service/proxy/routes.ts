// What an App offers: its public ports, and the Machines behind each.
import type { MachineConfig } from "../../api/machineConfig.ts";
import type { ProxyContext } from "./context.ts";
import { hostnamesFor, labelBelow } from "../lifecycle/hostnames.ts";
import { findMachine, storedConfig } from "../lifecycle/machines.ts";
import { checksOf } from "../runtime/checks.ts";
import { numbersOf, type Service, type ServicePort } from "../runtime/ports.ts";
import type { CheckResult } from "../runtime/runtime.ts";
import type { MachineRow } from "../store/rows.ts";

/** How clients speak to a public port. */
export type Kind = "http" | "https" | "tcp" | "tls";

const usualPorts: Readonly<Partial<Record<Kind, number>>> = { http: 80, https: 443 };

/** The part of a URL that names a port: nothing for the usual one. */
export const portPart = (kind: Kind, port: number): string => (usualPorts[kind] === port ? "" : `:${port}`);

/** A Machine behind a public port. */
export interface Offer {
  readonly machine: MachineRow;
  readonly service: Service;
  readonly port: ServicePort;
  /** The checks that must pass before it gets requests. */
  readonly checks: readonly string[];
}

/** A public port of an App. The newest Machine's options apply. */
export interface PublicPort {
  readonly app: string;
  readonly port: number;
  readonly kind: Kind;
  readonly offers: readonly Offer[];
  readonly options: ServicePort;
}

const kindOf = ({ handlers = [] }: ServicePort): Kind => {
  const [isHttp, isTls] = [handlers.includes("http"), handlers.includes("tls")];
  return isHttp ? (isTls ? "https" : "http") : isTls ? "tls" : "tcp";
};

/** Names of the checks that decide whether a service of a Machine gets requests: its own, and those for readiness. */
const decisive = (config: MachineConfig, service: number): string[] =>
  checksOf(config)
    .filter((one) => one.service === service || ("kind" in one.check && one.check.kind === "readiness"))
    .map(({ name }) => name);

// ASSUMED: the first 200 public ports of an App for HTTP and HTTPS can be reached, and the first 200 others. A range may have 65,535,
// for each of thousands of Machines (F76).
const mostPorts = 200;
const groupOf = (kind: Kind): "web" | "raw" => (kind === "http" || kind === "https" ? "web" : "raw");

/** The public ports of an App, by number. */
export function publicPorts(context: ProxyContext, app: string): ReadonlyMap<number, PublicPort> {
  const ids = context.store.all<{ id: string }>(
    "SELECT id FROM machines WHERE app = ? AND destroyed_at IS NULL ORDER BY created_at DESC, id",
    app,
  );
  const ports = new Map<number, PublicPort & { offers: Offer[] }>();
  const left = { web: mostPorts, raw: mostPorts };
  for (const { id } of ids) {
    const machine = findMachine(context, id);
    if (!machine) continue;
    const config = storedConfig(context, machine).parsed;
    for (const [i, service] of (config.services ?? []).entries())
      for (const port of service.protocol === "udp" ? [] : (service.ports ?? []))
        for (const number of numbersOf(port, mostPorts)) {
          const kind = kindOf(port);
          const known = ports.get(number) ?? { app, port: number, kind, offers: [], options: port };
          if (!ports.has(number) && left[groupOf(kind)]-- <= 0) continue;
          ports.set(number, known);
          // During an update, Machines may differ about a port. Only those that agree with the newest one are used.
          if (known.kind === kind) known.offers.push({ machine, service, port, checks: decisive(config, i) });
        }
  }
  return ports;
}

const worst = ["critical", "warning", "passing"] as const;

/** The result of the checks that decide about an offer; `warning` before they have run. */
export function statusOf({ machine, checks }: Offer): CheckResult["status"] {
  if (checks.length === 0 || machine.checks === "passing") return "passing";
  const results = JSON.parse(machine.check_results ?? "{}") as Record<string, CheckResult | undefined>;
  const statuses = checks.map((name) => results[name]?.status ?? "warning");
  return worst.find((status) => statuses.includes(status)) ?? "passing";
}

/** Whether they pass. */
export const passes = (offer: Offer): boolean => statusOf(offer) === "passing";

/** What a host name means. */
export interface Host {
  /** Id of the App. */
  readonly app: string;
  readonly name: string;
  /** The public port, if the name has one. */
  readonly port: number | undefined;
}

/** Characters of the longest host name with a final point and a port. */
const longestHeader = 260;

/**
 * The host name in a header `Host`, in the one form that all of its spellings share; undefined if there is none. A header may have
 * 16 KB, and a part of a text keeps the whole in memory.
 */
export function nameIn(header: string): string | undefined {
  if (header.length > longestHeader) return undefined;
  return /^([^:]+?)\.?(?::\d{1,5})?$/.exec(header)?.[1]?.toLowerCase();
}

/**
 * A host name of an App: `web.localhost`, or with a port of the App `8081.web.localhost`, its name below the domain of Apps, or one of
 * its hostnames. The service's own names are never those of a hostname.
 */
export function hostOf(context: ProxyContext, header: string): Host | undefined {
  const { store } = context;
  const host = nameIn(header);
  if (host === undefined) return undefined;
  const { hostname, appsDomain } = context.publicNames;
  if (host === hostname) return undefined;
  const [, digits, here] = /^(?:(\d{1,5})\.)?([a-z\d][a-z\d-]*)\.localhost$/.exec(host) ?? [];
  const name = here ?? labelBelow(appsDomain, host);
  const id = name === undefined ? hostnamesFor(context, host)[0]?.app : undefined;
  const app = store.get<{ id: string; name: string }>(
    `SELECT id, name FROM apps WHERE ${name === undefined ? "id" : "name"} = ? AND deleting < 2`,
    name ?? id ?? "",
  );
  return app && { app: app.id, name: app.name, port: digits === undefined ? undefined : Number(digits) };
}
