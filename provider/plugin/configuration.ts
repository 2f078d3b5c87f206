// The configuration of one provider instance: checks, compares and reads it. SDKs send strings as they are, and all
// other values as JSON in a string.
import { isObject } from "../../api/schema.ts";
import { configKeys, normalEndpoint, readConfig, type Config } from "../client/config.ts";
import { messageForUser } from "../client/errors.ts";
import { unknownKeys } from "../core/configurationKeys.ts";
import type { Values } from "../core/resource.ts";
import { UNKNOWN } from "../core/values.ts";

type ConfigKey = keyof typeof configKeys;
const keys = Object.keys(configKeys) as ConfigKey[];
/** Keys that the engine adds to a provider's configuration. */
const enginesOwn = new Set(["version", "pluginDownloadURL", "pluginChecksums", "parameterization"]);

/** Configuration values as text. */
const reader =
  (values: Values) =>
  (key: string): string | undefined => {
    const value = values[key];
    if (value === undefined || value === null) return undefined;
    return typeof value === "string" ? value : JSON.stringify(value);
  };

/** Reads the configuration of an instance. @throws MachinesError `configuration` */
export const configFrom = (values: Values): Config => readConfig(reader(values), process.env);

/** The URN of every provider that `pulumi new` asks whether its credentials work, whatever project and stack are called. */
const URN_IN_NEW = "urn:pulumi:dev::default::pulumi:providers:machines::default";

/** The id of the provider that is configured for that question. */
export const ID_IN_NEW = "preflight";

/**
 * Problems of a configuration; unknown values are accepted. `pulumi new` leaves secrets out, so a token may be among them: a stack
 * `dev` of a project `default` has the same URN, and misses its token when it is configured.
 */
export function configurationProblems(values: Values, urn: string): string[] {
  const given = Object.keys(values).filter((name) => !name.startsWith("__") && !enginesOwn.has(name));
  const problems = unknownKeys(given);
  // A valid value that stands for an unknown one.
  const anything: Values = { endpoint: "local", token: "unknown" };
  const known = Object.fromEntries(
    given.map((name) => [name, values[name] === UNKNOWN ? anything[name] : values[name]]),
  );
  if (urn === URN_IN_NEW && !process.env[configKeys.token.environment]) known["token"] ??= anything["token"];
  try {
    configFrom(known);
  } catch (error) {
    problems.push(messageForUser(error));
  }
  return problems;
}

/**
 * The configuration of the stack as it is now. The engine passes it to the process, also in a refresh and in a destroy,
 * where Configure has the values of the last `up`. Undefined where the engine did not start the process.
 */
export function currentConfiguration(): Values | undefined {
  const { PULUMI_CONFIG: json } = process.env;
  if (json === undefined) return undefined;
  const parsed: unknown = JSON.parse(json);
  return isObject(parsed) ? parsed : undefined;
}

/** Whether a provider is the one that the engine makes from the stack's configuration. */
export const isDefaultProvider = (urn: string | undefined): boolean => /::default(_[^:]*)?$/.test(urn ?? "");

/** One configuration key that changed. */
export interface ConfigurationChange {
  readonly key: string;
  readonly kind: "add" | "update" | "delete";
  /** Whether it may select another service or another part of it. */
  readonly moves: boolean;
}

/** Keys for the location of resources, with the canonical form of their values. */
const place: Partial<Record<ConfigKey, (value: string) => string>> = {
  endpoint: (value) => normalEndpoint(value) ?? value,
  organization: (value) => value,
};

/**
 * The changes in a configuration. None of them replaces a resource (R14): an address is no identity, and the
 * organization only concerns new Apps. Only a request can show whether another address leads to the same service.
 */
export function configurationChanges(olds: Values, news: Values): ConfigurationChange[] {
  return keys.flatMap((key): ConfigurationChange[] => {
    const [old, next] = [reader(olds)(key), reader(news)(key)];
    if (old === next) return [];
    const spelled = place[key];
    if (old === undefined || next === undefined)
      return [{ key, kind: old === undefined ? "add" : "delete", moves: spelled !== undefined }];
    if (spelled && next !== UNKNOWN && spelled(old) === spelled(next)) return [];
    return [{ key, kind: "update", moves: spelled !== undefined }];
  });
}
