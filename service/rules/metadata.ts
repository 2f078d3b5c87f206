// Metadata of a Machine (docs/interface.md#metadata): part of its running state, so a change creates no new version.
// ASSUMED: a lease does not guard metadata.
import type { machines } from "../../api/machines.ts";
import { changeMachine } from "../lifecycle/machines.ts";
import { refuse } from "../refusal.ts";
import type { MachineRow } from "../store/rows.ts";
import type { Context } from "../context.ts";
import { liveMachineOf, machineOf } from "./find.ts";
import { metadataTextOf } from "./placement.ts";
import type { Input, Rules } from "./rule.ts";

type MetadataRules = Pick<
  Rules<typeof machines>,
  "getMetadata" | "patchMetadata" | "putMetadata" | "getMetadataKey" | "setMetadataKey" | "deleteMetadataKey"
>;

const read = ({ metadata }: Pick<MachineRow, "metadata">): Record<string, string> =>
  metadata === null ? {} : (JSON.parse(metadata) as Record<string, string>);

/** Whether a Machine has all of these values. */
export function hasMetadata(
  machine: Pick<MachineRow, "metadata">,
  wanted: readonly (readonly [string, string])[],
): boolean {
  const values = read(machine);
  return wanted.every(([key, value]) => Object.hasOwn(values, key) && values[key] === value);
}

/** Merges: null and the empty string remove a key, other keys stay. */
function merge(context: Context, machine: MachineRow, changes: Iterable<readonly [string, string | null]>): void {
  const merged = new Map(Object.entries(read(machine)));
  for (const [key, value] of changes) {
    if (value === null || value === "") merged.delete(key);
    else merged.set(key, value);
  }
  const metadata = metadataTextOf(Object.fromEntries(merged));
  if (metadata !== machine.metadata) changeMachine(context, machine, { metadata });
}

function update(input: Pick<Input<typeof machines.patchMetadata>, "context" | "caller" | "params" | "body">): void {
  const { context, body } = input;
  const machine = liveMachineOf(input);
  if (body.machine_version !== undefined && body.machine_version !== machine.version) {
    throw refuse(412, "failed_precondition: machine version mismatch");
  }
  merge(context, machine, Object.entries(body.metadata ?? {}));
}

/** The rules of the metadata operations. */
export const metadata: MetadataRules = {
  getMetadata: (input) => read(machineOf(input)),
  patchMetadata: update,
  putMetadata: update,

  getMetadataKey(input) {
    const value = new Map(Object.entries(read(machineOf(input)))).get(input.params.key);
    if (value === undefined) throw refuse(404, "metadata key not found");
    return { value };
  },

  setMetadataKey(input) {
    merge(input.context, liveMachineOf(input), [[input.params.key, input.body.value]]);
  },

  deleteMetadataKey(input) {
    merge(input.context, liveMachineOf(input), [[input.params.key, null]]);
  },
};
