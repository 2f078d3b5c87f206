// The checks of a Machine by name (docs/interface.md#machine).
import type { MachineConfig } from "../../api/machineConfig.ts";

type Check = NonNullable<NonNullable<MachineConfig["services"]>[number]["checks"]>[number];

/** A check with its name in answers and its port. */
export interface NamedCheck {
  readonly name: string;
  readonly type: "tcp" | "http";
  /** Undefined if neither the check nor its service has one. */
  readonly port: number | undefined;
  /** Index of the service that it belongs to; undefined for a check of the Machine. */
  readonly service: number | undefined;
  readonly check: Check;
}

/** All checks of a configuration: those of its services, then its own. */
export function checksOf({ services = [], checks = {} }: MachineConfig): NamedCheck[] {
  const named = ({ type = "tcp", port }: Check, check: Check, service?: number) => ({ type, port, check, service });
  const ofServices = services
    .flatMap(({ internal_port, checks: own = [] }, i) =>
      own.map((check) => named({ ...check, port: check.port ?? internal_port }, check, i)),
    )
    .map((one, i) => ({ name: `servicecheck-${String(i).padStart(2, "0")}-${one.type}-${one.port}`, ...one }));
  return [...ofServices, ...Object.entries(checks).map(([name, check]) => ({ name, ...named(check, check) }))];
}

/** A port of a Machine. */
export interface MachinePort {
  readonly port: number;
  readonly protocol: "tcp" | "udp";
}

/** The ports of a Machine that requests and checks connect to, each once. */
export function portsOf(config: MachineConfig): readonly MachinePort[] {
  const services = (config.services ?? []).map(({ protocol, internal_port: port }) => ({ port, protocol }));
  const checks = checksOf(config).flatMap(({ port }) =>
    port === undefined ? [] : [{ port, protocol: "tcp" as const }],
  );
  return [...new Map([...services, ...checks].map((one) => [`${one.port}/${one.protocol}`, one])).values()];
}
