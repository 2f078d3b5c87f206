// What a configuration asks for and containers cannot do. It is refused by name, and not ignored.
import { sizeOf, type MachineConfig } from "../../../api/machineConfig.ts";
import { numbersOf, type Service, type ServicePort } from "../ports.ts";

// ASSUMED: each port of a range takes a port of this computer, so a range has at most a hundred.
const mostPorts = 100;

const reasons: readonly {
  readonly field: string;
  readonly asked: (config: MachineConfig) => unknown;
  readonly why: string;
}[] = [
  { field: "config.containers", asked: ({ containers }) => containers?.length, why: "runs one container per Machine" },
  {
    field: "config.mounts[0].extend_threshold_percent",
    asked: ({ mounts }) => mounts?.some(({ extend_threshold_percent: threshold }) => threshold),
    why: "does not limit the size of volumes",
  },
  { field: "config.processes", asked: ({ processes }) => processes?.length, why: "runs one process per Machine" },
  { field: "config.volumes", asked: ({ volumes }) => volumes?.length, why: "mounts only volumes of the App" },
  { field: "config.guest.gpus", asked: ({ guest }) => guest?.gpus, why: "has no GPUs" },
  { field: "config.guest.gpu_kind", asked: ({ guest }) => guest?.gpu_kind, why: "has no GPUs" },
  {
    field: "config.guest.host_dedication_id",
    asked: ({ guest }) => guest?.host_dedication_id,
    why: "has no dedicated hosts",
  },
  {
    field: "config.guest.required_host_features",
    asked: ({ guest }) => guest?.required_host_features?.length,
    why: "has one host without named features",
  },
  {
    field: "config.guest.kernel_args",
    asked: ({ guest }) => guest?.kernel_args?.length,
    why: "shares the kernel of the engine",
  },
  {
    field: "config.init.kernel_args",
    asked: ({ init }) => init?.kernel_args?.length,
    why: "shares the kernel of the engine",
  },
  {
    field: "config.files",
    asked: ({ files }) => files?.some(({ image_config }) => image_config !== undefined),
    why: "cannot write the configuration of an image into a file",
  },
  { field: "config.statics", asked: ({ statics }) => statics?.length, why: "does not serve files by itself" },
  { field: "config.rootfs.size_gb", asked: ({ rootfs }) => rootfs?.size_gb, why: "cannot limit the root file system" },
  { field: "config.cache_drive", asked: ({ cache_drive }) => cache_drive, why: "has no drives for caches" },
  {
    field: "config.dns.dns_forward_rules",
    asked: ({ dns }) => dns?.dns_forward_rules?.length,
    why: "cannot forward single domains",
  },
  {
    field: "config.restart.policy",
    asked: ({ restart }) => restart?.policy === "spot-price",
    why: "has no spot prices",
  },
];

const ofPorts: readonly {
  readonly field: string;
  readonly asked: (port: ServicePort, service: Service) => unknown;
  readonly why: string;
}[] = [
  {
    field: "",
    asked: (_, { protocol }) => protocol === "udp",
    why: "forwards no UDP; Machines can use it between them",
  },
  {
    field: ".handlers",
    asked: ({ handlers }) => handlers?.includes("pg_tls"),
    why: "does not negotiate TLS for Postgres",
  },
  {
    field: ".end_port",
    asked: (port) => numbersOf(port).length > mostPorts,
    why: `forwards at most ${mostPorts} ports of a range`,
  },
  {
    field: ".http_options.h2_backend",
    asked: ({ http_options: http }) => http?.h2_backend,
    why: "speaks HTTP/1.1 to Machines",
  },
  {
    field: ".http_options.headers_read_timeout",
    asked: ({ http_options: http }) => http?.headers_read_timeout,
    why: "has one time limit for headers",
  },
  {
    field: ".http_options.replay_cache",
    asked: ({ http_options: http }) => http?.replay_cache?.length,
    why: "does not replay requests",
  },
  {
    field: ".tls_options.alpn",
    asked: ({ tls_options: tls }) => tls?.alpn?.length && !tls.alpn.includes("http/1.1"),
    why: "speaks HTTP/1.1",
  },
  {
    field: ".proxy_proto_options.version",
    asked: ({ proxy_proto_options: proto }) => ![undefined, "v1"].includes(proto?.version),
    why: "knows version v1",
  },
];

/** The first field of a service that the proxy cannot honour. */
function unsupportedPort({
  services = [],
}: MachineConfig): { readonly field: string; readonly why: string } | undefined {
  for (const [i, service] of services.entries())
    for (const [j, port] of (service.ports ?? []).entries()) {
      const found = ofPorts.find(({ asked }) => asked(port, service));
      if (found) return { field: `config.services[${i}].ports[${j}]${found.field}`, why: found.why };
    }
  return undefined;
}

/** The field that asks for more memory than the computer of the engine has. */
function tooLarge(
  config: MachineConfig,
  memoryMb: number,
): { readonly field: string; readonly why: string } | undefined {
  const asked = sizeOf(config).memoryMb;
  if (asked <= memoryMb) return undefined;
  const field = config.guest ? "config.guest.memory_mb" : "config.size";
  return { field, why: `runs on a computer with ${memoryMb} MB of memory, and ${asked} MB are asked for` };
}

/** The first field that the runtime cannot honour on a computer with this memory, and why; undefined if there is none. */
export function unsupported(
  config: MachineConfig,
  memoryMb: number,
): { readonly field: string; readonly message: string } | undefined {
  const found = reasons.find(({ asked }) => asked(config)) ?? unsupportedPort(config) ?? tooLarge(config, memoryMb);
  return found && { field: found.field, message: `the docker runtime ${found.why}` };
}
