// A state whose secrets were decrypted: plain values, and the paths at which they are secret.
import { define, isObject } from "../../api/schema.ts";
import type { Values } from "../../provider/core/resource.ts";
import { isSealed, openText, type StackState, type StateResource } from "../stackState.ts";

/** The names and positions that lead to a value. */
export type Path = readonly (string | number)[];

/** A resource with plain values. */
export interface OpenResource extends StateResource {
  /** Paths of values that are secret in its inputs or outputs. */
  readonly secretPaths: readonly Path[];
}

/** A stack with plain values. Never print one that is secret. */
export interface OpenState extends StackState {
  readonly resources: readonly OpenResource[];
}

/** Opens the values of an export that was written with `--show-secrets`. */
export function openState(state: StackState): OpenState {
  return {
    ...state,
    resources: state.resources.map((resource) => {
      const secretPaths: Path[] = [];
      const [inputs, outputs] = [resource.inputs, resource.outputs].map((values) => openValues(values, secretPaths));
      return { ...resource, inputs: inputs ?? {}, outputs: outputs ?? {}, secretPaths };
    }),
    providers: state.providers.map((provider) => ({ ...provider, inputs: openValues(provider.inputs, []) })),
  };
}

const openValues = (values: Values, secretPaths: Path[]): Values => open(values, [], secretPaths) as Values;

function open(value: unknown, path: Path, secretPaths: Path[]): unknown {
  if (isSealed(value)) {
    const plaintext = (value as Values)["plaintext"];
    // The other special values, such as assets, are never properties of ours.
    if (typeof plaintext !== "string") return openText(value);
    secretPaths.push(path);
    return open(JSON.parse(plaintext), path, secretPaths);
  }
  if (Array.isArray(value)) return value.map((item, i) => open(item, [...path, i], secretPaths));
  if (!isObject(value)) return value;
  const plain: Values = {};
  for (const [name, inner] of Object.entries(value)) define(plain, name, open(inner, [...path, name], secretPaths));
  return plain;
}
