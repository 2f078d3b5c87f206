// What assistants see of objects. Only the fields that are named here: a Machine's configuration may hold secrets anywhere.
import { fleetTag, phaseTag } from "../../api/fleetTags.ts";
import { isObject } from "../../api/schema.ts";
import type { AnswerOf } from "../../provider/client/api.ts";
import type { Machine } from "../../provider/client/machine.ts";
import { bounded } from "./tool.ts";

type Config = NonNullable<Machine["config"]>;
type OrgMachine = AnswerOf<"orgs", "machines">["machines"][number];

/** Characters of a text that a program, a check or another person wrote. */
const longestText = 500;

/** Events of a Machine that are shown, the newest first. */
const mostEvents = 20;

const sizeOf = (guest: Config["guest"]): string | undefined =>
  guest && `${guest.cpuKind ?? "shared"}, ${guest.cpus ?? 1} CPU, ${guest.memoryMb ?? "?"} MB`;

/** A Machine in the list of its organization. */
export const orgMachineView = ({ id, name, appName, region, state, config, updatedAt }: OrgMachine) => ({
  ...{ id, name, app: appName, region, state, image: config?.image },
  ...{ size: sizeOf(config?.guest), fleet: config?.metadata?.[fleetTag], updatedAt },
});

/** A Machine, with the names of its variables and without their values. */
export function machineView(app: string, machine: Machine) {
  const { id, name, state, region, version, privateIp, config, createdAt, updatedAt } = machine;
  return {
    ...{ id, app, name, state, region, version, image: config?.image, imageDigest: machine.imageRef?.digest },
    ...{ size: sizeOf(config?.guest), cordoned: machine.cordoned ?? false, hostStatus: machine.hostStatus },
    ...{ privateIp, createdAt, updatedAt },
    fleet: config?.metadata?.[fleetTag],
    phase: config?.metadata?.[phaseTag],
    variables: Object.keys(config?.env ?? {}),
    files: (config?.files ?? []).map(({ guestPath }) => guestPath),
    services: (config?.services ?? []).map(({ internalPort, protocol, ports }) => ({
      ...{ internalPort, protocol },
      ports: (ports ?? []).map(({ port, handlers }) => ({ port, handlers })),
    })),
    mounts: (config?.mounts ?? []).map(({ path, volume }) => ({ path, volume })),
    restart: config?.restart?.policy,
    schedule: config?.schedule,
    checks: (machine.checks ?? []).map(({ name: check, status, output = "", updatedAt: at }) => ({
      ...{ name: check, status, updatedAt: at, output: bounded(output, longestText) },
    })),
    events: (machine.events ?? []).slice(0, mostEvents).map(eventView),
  };
}

type Event = NonNullable<Machine["events"]>[number];

function eventView({ type, status, source, timestamp, request }: Event) {
  const exit = isObject(request) && isObject(request["exit_event"]) ? request["exit_event"] : undefined;
  const lines = exit?.["last_lines"];
  return {
    ...{ type, status, source },
    time: timestamp === undefined ? undefined : new Date(timestamp).toISOString(),
    ...(exit && {
      exit: {
        exitCode: exit["exit_code"],
        outOfMemory: exit["oom_killed"],
        requestedStop: exit["requested_stop"],
        restarting: exit["restarting"],
        error: typeof exit["error"] === "string" ? bounded(exit["error"], longestText) : undefined,
        lastLines: Array.isArray(lines) ? lines.map((line) => bounded(String(line), longestText)) : undefined,
      },
    }),
  };
}

type Volume = AnswerOf<"volumes", "get">;

/** A volume. */
export const volumeView = (app: string, volume: Volume) => {
  const { id, name, region, state, sizeGb, encrypted, attachedMachineId, snapshotRetention, createdAt } = volume;
  return {
    ...{ id, app, name, region, state, sizeGb, encrypted, machine: attachedMachineId ?? undefined },
    ...{ bytesUsed: volume.bytesUsed, autoBackup: volume.autoBackupEnabled, snapshotRetention, createdAt },
  };
};

type Ip = AnswerOf<"ipAssignments", "list">["ips"][number];

/** An IP address; an App has at most one of each. */
export const ipView = (app: string, { ip, region, shared, egress, serviceName, createdAt }: Ip) => ({
  ...{ id: ip ?? "", app, region, shared, egress, service: serviceName, createdAt },
});

type Hostname = AnswerOf<"certificates", "list">["certificates"][number];

/** A hostname in a list. */
export const hostnameView = (app: string, { hostname, status, configured, acmeRequested, createdAt }: Hostname) => ({
  ...{ id: hostname, app, state: status, configured, acmeRequested, createdAt },
});

type Certificate = AnswerOf<"certificates", "get">;

/** A hostname with its certificates and what keeps them from being valid. */
export const certificateView = (app: string, certificate: Certificate) => {
  const { hostname, status, configured, acmeRequested, dnsProvider, certificates = [] } = certificate;
  return {
    ...{ id: hostname, app, state: status, configured, acmeRequested, dnsProvider },
    certificates: certificates.map(({ source, status: state, expiresAt, issuer }) => ({
      source,
      state,
      expiresAt,
      issuer,
    })),
    rateLimitedUntil: certificate.rateLimitedUntil ?? undefined,
    problems: (certificate.validationErrors ?? []).map(({ message = "", remediation = "" }) => ({
      message: bounded(message, longestText),
      remediation: bounded(remediation, longestText),
    })),
  };
};

/** Name, Machines by region, by state and by image, of each fleet: a fleet is its Machines, by their tags. */
export function fleetsOf(machines: readonly OrgMachine[]) {
  const fleets = new Map<string, OrgMachine[]>();
  for (const machine of machines) {
    const fleet = machine.config?.metadata?.[fleetTag];
    if (fleet === undefined) continue;
    const id = `${machine.appName}/${fleet}`;
    fleets.set(id, [...(fleets.get(id) ?? []), machine]);
  }
  const counts = (members: readonly OrgMachine[], of: (machine: OrgMachine) => string | undefined) => {
    const found = new Map<string, number>();
    for (const member of members) found.set(of(member) ?? "?", (found.get(of(member) ?? "?") ?? 0) + 1);
    return Object.fromEntries(found);
  };
  return [...fleets].map(([id, members]) => ({
    ...{ id, app: id.slice(0, id.indexOf("/")), name: id.slice(id.indexOf("/") + 1), machines: members.length },
    regions: counts(members, ({ region }) => region),
    states: counts(members, ({ state }) => state),
    images: Object.entries(counts(members, ({ config }) => config?.image)).map(([image, n]) => ({
      image,
      machines: n,
    })),
    phases: counts(members, ({ config }) => config?.metadata?.[phaseTag] ?? "none"),
  }));
}
