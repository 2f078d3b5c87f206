// Converts a Machine's configuration for the service and back: references to bare ids, `extra` merged in, metadata of
// others kept, unknown fields shown as `extra` (R6).
import { z } from "zod";
import { camelSchema, fromWire, toWire, type Camel } from "../../api/case.ts";
import { machineConfig } from "../../api/machineConfig.ts";
import { fieldOf, isObject, named } from "../../api/schema.ts";
import { canonical, equal, merged, modelled, unmodelled } from "../core/values.ts";

/** A Machine's configuration in the service's form, in camelCase. */
export type ServiceConfig = Camel<z.infer<typeof machineConfig>>;
/** A Machine's configuration in a program's form. */
export type Config = ServiceConfig & { extra?: Record<string, unknown> | undefined };

/** Power states that a program can request. */
export type Power = "started" | "stopped" | "suspended";

const camel = camelSchema(machineConfig) as unknown as z.ZodObject;

/** Schema of the `config` input: the service's configuration in camelCase, and `extra`. */
export const config = named(
  "MachineConfig",
  camel.extend({
    extra: z.record(z.string(), z.unknown()).optional().meta({
      sensitive: true,
      description:
        "Fields of the configuration that this version does not know, by the service's own names. They are merged in last, lists item by item.",
    }),
  }),
) as unknown as z.ZodType<Config>;

/** Schema of a Machine's CPU and memory. */
export const guest = camel.shape["guest"] as unknown as z.ZodType<ServiceConfig["guest"]>;

const settings = fieldOf(config);
/** Fields of the configuration in a program's form. */
export const configFields = settings.shape.kind === "object" ? settings.shape.fields : {};
const known = fieldOf(camel);

/**
 * A Machine that ends by itself: success is exit code 0, not that it keeps running. Without restarts, it is one unless the program
 * sets the state that it is kept in.
 */
export const isJob = ({ schedule, autoDestroy, restart }: Config, state?: Power): boolean =>
  schedule !== undefined ||
  autoDestroy === true ||
  (restart?.policy === "no" && state !== "started" && state !== "suspended");

/** Metadata keys that no program manages: the provider's own tags and the platform's. */
export const isForeign = (key: string): boolean => /^(pulumi-|fly_)/.test(key);

/**
 * The configuration to post. References are already bare ids (core), `others` is others' metadata, which is kept.
 */
export function toService(written: Config, others: Readonly<Record<string, string>> = {}): ServiceConfig {
  const { extra, ...rest } = written;
  const whole = (extra === undefined ? rest : merged(rest, fromWire(machineConfig, extra))) as ServiceConfig;
  const metadata = { ...others, ...whole.metadata };
  const { metadata: _, ...body } = whole;
  return Object.keys(metadata).length > 0 ? { ...body, metadata } : body;
}

/**
 * The configuration in a program's form. Its metadata has only keys that `written` owns; on an import, all keys of users.
 */
export function fromService(live: ServiceConfig, written: Config | undefined): Config {
  const extra = toWire(machineConfig, unmodelled(known, live));
  const { metadata, ...rest } = modelled(known, live) as ServiceConfig;
  const owned = Object.entries(metadata ?? {}).filter(([key]) =>
    written ? Object.hasOwn(written.metadata ?? {}, key) : !isForeign(key),
  );
  return {
    ...rest,
    ...(owned.length > 0 ? { metadata: Object.fromEntries(owned) } : {}),
    ...(isObject(extra) ? { extra } : {}),
  };
}

/** Metadata of a live Machine that the program neither owns nor owned: it survives every update. */
export function othersMetadata(
  live: ServiceConfig | undefined,
  ...ours: readonly (Config | undefined)[]
): Record<string, string> {
  const owned = new Set(ours.flatMap((written) => Object.keys(written?.metadata ?? {})));
  return Object.fromEntries(Object.entries(live?.metadata ?? {}).filter(([key]) => !owned.has(key)));
}

/** Whether two configurations are the same version, which does not include metadata. */
export const sameVersion = (a: Config, b: Config): boolean =>
  equal(canonical(settings, { ...a, metadata: undefined }), canonical(settings, { ...b, metadata: undefined }));

/** Whether two configurations have the same metadata. */
export const sameMetadata = (a: Config, b: Config): boolean =>
  equal(canonical(settings, { metadata: a.metadata }), canonical(settings, { metadata: b.metadata }));

/** Our keys whose value is neither the written nor the wanted one: others changed or removed them (R6). */
export const movedKeys = (
  ours: Readonly<Record<string, string>> = {},
  live: Readonly<Record<string, string>> = {},
  wanted: Readonly<Record<string, string>> = {},
): string[] => Object.keys(ours).filter((key) => live[key] !== ours[key] && live[key] !== wanted[key]);

/** Paths in `extra` of fields that this version knows: they belong in the configuration itself, where diffs see them. */
export function modelledInExtra({ extra }: Config): string[][] {
  const paths = (value: unknown, path: string[]): string[][] => {
    if (Array.isArray(value)) return value.flatMap((item: unknown, i) => paths(item, [...path, String(i)]));
    if (isObject(value)) return Object.entries(value).flatMap(([name, inner]) => paths(inner, [...path, name]));
    return value === undefined ? [] : [path];
  };
  return extra === undefined ? [] : paths(modelled(known, fromWire(machineConfig, extra)), []);
}

/** Top-level fields in which two configurations differ, metadata aside. */
export function differingFields(a: Config, b: Config): string[] {
  const [left, right] = [a, b].map(
    (value) => (canonical(settings, { ...value, metadata: undefined }) ?? {}) as Record<string, unknown>,
  );
  return [...new Set([...Object.keys(left ?? {}), ...Object.keys(right ?? {})])].filter(
    (name) => !equal(left?.[name], right?.[name]),
  );
}
