// What a configuration asks for and containers cannot do. It is refused by name, and not ignored.
import { sizeOf, type MachineConfig } from "../../../api/machineConfig.ts";
import { inContainers } from "../unsupported.ts";
import { numbersOf, type Service, type ServicePort } from "../ports.ts";

// ASSUMED: each port of a range takes a port of this computer, so a range has at most a hundred.
const mostPorts = 100;

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
  return { field, why: `runs on a computer with ${memoryMb} MB of memory, and ${asked} MB are requested` };
}

/** The first field that the runtime cannot honour on a computer with this memory, and why; undefined if there is none. */
export function unsupported(
  config: MachineConfig,
  memoryMb: number,
): { readonly field: string; readonly message: string } | undefined {
  const found =
    inContainers.find(({ asked }) => asked(config)) ?? unsupportedPort(config) ?? tooLarge(config, memoryMb);
  return found && { field: found.field, message: `the docker runtime ${found.why}` };
}
