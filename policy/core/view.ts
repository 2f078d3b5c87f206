// Inputs as policies read and repair them.
import { isUnknownValue } from "./unknown.ts";

/**
 * A view of what Pulumi's SDK hands a policy, which is a view itself: it throws where a value is unknown, and keeps secrets
 * secret where one is set. On top of that, null is nothing, as for the provider, and a list may be mapped and filtered: the
 * SDK's view of a list cannot be, because the new one would be made by the class of the old one, which it wraps.
 * @param name name of the resource, for the paths of unknown values; left out where there is one resource alone
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

/** Reads a value; the path of one that is unknown begins with the name. */
function named<T>(read: () => T, name: string | undefined): T {
  try {
    return read();
  } catch (error) {
    if (name !== undefined && isUnknownValue(error)) error.props.unshift(name);
    throw error;
  }
}
