// The configuration of one provider instance: checked, compared, read. Its values are plain strings, numbers and booleans,
// or JSON in a string, as SDKs send what is no string.
import { configKeys, normalEndpoint, readConfig, type Config } from "../core/config.ts";
import { messageOf } from "../core/errors.ts";
import { nearest } from "../core/nearest.ts";
import type { Values } from "../core/resource.ts";
import { UNKNOWN } from "../core/values.ts";

type Key = keyof typeof configKeys;
const keys = Object.keys(configKeys) as Key[];
/** What the engine adds to a provider's configuration. */
const enginesOwn = new Set(["version", "pluginDownloadURL", "pluginChecksums", "parameterization"]);

/** Configuration values as text. */
const reader =
  (values: Values) =>
  (key: string): string | undefined => {
    const value = values[key];
    if (value === undefined || value === null) return undefined;
    return typeof value === "string" ? value : JSON.stringify(value);
  };

/** Reads the configuration an instance is given. @throws MachinesError `configuration` */
export const configFrom = (values: Values): Config => readConfig(reader(values), process.env);

/** What is wrong with a configuration; what is not known yet passes. */
export function configurationProblems(values: Values): string[] {
  const given = Object.keys(values).filter((name) => !name.startsWith("__") && !enginesOwn.has(name));
  const problems = given
    .filter((name) => !Object.hasOwn(configKeys, name))
    .map((name) => {
      const meant = nearest(name, keys);
      return `machines:${name}: there is no such configuration${meant === undefined ? `; known are ${keys.join(", ")}` : `; did you mean machines:${meant}?`}`;
    });
  // Anything that passes stands for what is yet to come.
  const anything: Values = { endpoint: "local", token: "unknown" };
  const known = Object.fromEntries(
    given.map((name) => [name, values[name] === UNKNOWN ? anything[name] : values[name]]),
  );
  try {
    configFrom(known);
  } catch (error) {
    problems.push(messageOf(error));
  }
  return problems;
}

/** One configuration key that changed. */
export interface ConfigurationChange {
  readonly key: string;
  readonly kind: "add" | "update" | "delete";
  readonly replaces: boolean;
}

const identity: Partial<Record<Key, (value: string) => string>> = {
  endpoint: (value) => normalEndpoint(value) ?? value,
  organization: (value) => value,
};

/**
 * What a changed configuration means: another endpoint or organization is another place, with none of the resources in it;
 * everything else is another way to the same place. Where one side does not say (the environment may) or is not known yet,
 * nothing is replaced.
 */
export function configurationChanges(olds: Values, news: Values): ConfigurationChange[] {
  return keys.flatMap((key): ConfigurationChange[] => {
    const [old, next] = [reader(olds)(key), reader(news)(key)];
    if (old === next) return [];
    if (old === undefined || next === undefined)
      return [{ key, kind: old === undefined ? "add" : "delete", replaces: false }];
    const place = identity[key];
    if (place && next !== UNKNOWN && place(old) === place(next)) return [];
    return [{ key, kind: "update", replaces: place !== undefined && old !== UNKNOWN && next !== UNKNOWN }];
  });
}
