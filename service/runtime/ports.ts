// The public ports of a service.
import type { MachineConfig } from "../../api/machineConfig.ts";

/** A service of a configuration. */
export type Service = NonNullable<MachineConfig["services"]>[number];
/** An entry of its ports. */
export type ServicePort = NonNullable<Service["ports"]>[number];

/** The public ports of an entry: one, or a range, of which at most the first `most`. */
export function numbersOf(
  { port, start_port: start = port, end_port: end = start }: ServicePort,
  most = Infinity,
): number[] {
  return start === undefined || end === undefined
    ? []
    : Array.from({ length: Math.min(most, Math.max(0, end - start + 1)) }, (_, i) => start + i);
}
