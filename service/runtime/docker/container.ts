// A Machine's version as a container: what the engine is asked to create.
import { randomBytes } from "node:crypto";
import type Dockerode from "dockerode";
import { sizeOf, type MachineConfig } from "../../../api/machineConfig.ts";
import { portsOf } from "../checks.ts";
import { environmentOf } from "../environment.ts";
import type { Subject } from "../runtime.ts";
import { confinement } from "./confinement.ts";
import type { Engine } from "./engine.ts";
import { tarOf } from "./tar.ts";

/** The labels by which the runtime recognizes what it created. */
export const labels = {
  data: "machines-service.data",
  machine: "machines-service.machine",
  version: "machines-service.version",
  app: "machines-service.app",
  volume: "machines-service.volume",
  network: "machines-service.network",
  copy: "machines-service.copy",
} as const;

const mib = 2 ** 20;

/** Memory and swap in bytes for a limit in MB. */
export const memoryLimits = (config: MachineConfig, limitMb: number | undefined) => {
  const Memory = (limitMb ?? sizeOf(config).memoryMb) * mib;
  return { Memory, MemorySwap: Memory + (config.init?.swap_size_mb ?? 0) * mib };
};

/** Whether the files of a Machine outlive its stop, so that it keeps its container. */
export const keepsFiles = ({ rootfs, guest }: MachineConfig): boolean =>
  (rootfs?.persist ?? guest?.persist_rootfs ?? "never") !== "never";

/**
 * A name for a container, which `docker ps` shows: what it is, and an end that no other container has. For a moment a Machine has two
 * containers, and several services can share an engine, so nothing is found by its name, only by its labels.
 */
export const containerName = (...parts: readonly string[]): string =>
  ["machines", ...parts, randomBytes(4).toString("hex")].join("-");

/** The names by which the Machines of a network find each other. */
export const namesOf = ({ id, app, region, config }: Subject): string[] =>
  config.dns?.skip_registration ? [] : [`${id}.vm.${app}.internal`, `${region}.${app}.internal`, `${app}.internal`];

/**
 * The request to create a container.
 * ASSUMED: a Machine has at most as many CPUs as the engine; a shared CPU counts as a whole one.
 */
export function containerOptions(
  engine: Engine,
  machine: Subject,
  {
    dataId,
    image,
    network,
    mounts,
    capabilities,
  }: {
    readonly dataId: string;
    readonly image: string;
    readonly network: string;
    readonly mounts: Dockerode.MountSettings[];
    /** Those that the operator allows in addition. */
    readonly capabilities: readonly string[];
  },
): Dockerode.ContainerCreateOptions {
  const { id, app, version, config, memoryLimitMb } = machine;
  const { init = {}, dns = {}, stop_config: stop = {} } = config;
  // As engines write them: `8080/tcp`.
  const ports = portsOf(config).map(({ port, protocol }) => `${port}/${protocol}`);
  const entrypoint = init.exec ?? init.entrypoint;
  return {
    name: containerName(app, id),
    Image: image,
    Hostname: dns.hostname ?? id,
    ...(dns.hostname_fqdn === undefined ? {} : { Domainname: dns.hostname_fqdn }),
    Env: Object.entries(environmentOf(machine)).map(([name, value]) => `${name}=${value}`),
    ...(entrypoint === undefined ? {} : { Entrypoint: [...entrypoint] }),
    // The image's arguments belong to its own entrypoint.
    ...(init.cmd !== undefined || entrypoint !== undefined ? { Cmd: init.exec ? [] : [...(init.cmd ?? [])] } : {}),
    Tty: init.tty ?? false,
    StopSignal: stop.signal ?? "SIGINT",
    Labels: { [labels.data]: dataId, [labels.machine]: id, [labels.version]: version, [labels.app]: app },
    ExposedPorts: Object.fromEntries(ports.map((port) => [port, {}])),
    HostConfig: {
      ...confinement(engine, capabilities),
      ...memoryLimits(config, memoryLimitMb),
      NanoCpus: Math.min(sizeOf(config).cpus, engine.cpus) * 1e9,
      ...(engine.hasInit ? { Init: true } : {}),
      RestartPolicy: { Name: "no" },
      // Only this computer can reach a Machine's ports.
      PortBindings: Object.fromEntries(ports.map((port) => [port, [{ HostIp: "127.0.0.1", HostPort: "" }]])),
      ...(dns.nameservers ? { Dns: [...dns.nameservers] } : {}),
      ...(dns.searches ? { DnsSearch: [...dns.searches] } : {}),
      ...(dns.options
        ? { DnsOptions: dns.options.map(({ name, value }) => (value === undefined ? name : `${name}:${value}`)) }
        : {}),
      NetworkMode: network,
      ...(mounts.length === 0 ? {} : { Mounts: mounts }),
    },
    NetworkingConfig: { EndpointsConfig: { [network]: { Aliases: namesOf(machine) } } },
  };
}

/** The files of a configuration as a tar archive; undefined if there are none. */
export async function filesOf({ config, secrets }: Subject): Promise<Buffer | undefined> {
  if (!config.files?.length) return undefined;
  const values = new Map(Object.entries(secrets()));
  return tarOf(
    config.files.map(({ guest_path, raw_value, secret_name, mode }) => {
      const base64 = raw_value ?? (secret_name === undefined ? "" : (values.get(secret_name) ?? ""));
      const contents = Buffer.from(base64, "base64");
      return { name: guest_path.replace(/^\/+/, ""), mode: mode ?? 0o644, contents };
    }),
  );
}
