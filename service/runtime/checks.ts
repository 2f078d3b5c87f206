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
