// Inputs as policies read and change them.
import { isUnknownValue } from "./unknown.ts";

/**
 * A view of the resource that Pulumi's SDK passes to a policy, which is a view itself: it throws on unknown values, and
 * keeps secrets secret when one is set. In addition, null counts as absent, as in the provider, and lists can be mapped
 * and filtered. The SDK's list cannot, because the result would be built by the class that it wraps.
 * @param name name of the resource, for the paths of unknown values; left out if only one resource exists
 */
export function view<T>(value: T, name?: string): T {
  if (!(value instanceof Object) || typeof value === "function") return value;
  return new Proxy(value, {
    get: (target, key) => {
      if (key === "constructor") return undefined;
      const found = named(() => Reflect.get(target, key) as unknown, name);
      return found === null ? undefined : view(found, name);
    },
  });
}

/** Reads a value; the path of an unknown one begins with the name. */
function named<T>(read: () => T, name: string | undefined): T {
  try {
    return read();
  } catch (error) {
    if (name !== undefined && isUnknownValue(error)) error.props.unshift(name);
    throw error;
  }
}
