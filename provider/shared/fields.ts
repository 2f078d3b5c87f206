// Fields that several functions share, and the conversion of the service's answers to results.
import { z } from "zod";
import { camelSchema, type Camel, type CamelKey } from "../../api/case.ts";
import { appName } from "../../api/names.ts";
import { optional, required } from "../../api/schema.ts";

type CamelField<S> =
  S extends z.ZodOptional<infer Inner> ? z.ZodOptional<CamelField<Inner>> : z.ZodType<Camel<z.output<S>>>;
type CamelShape<Shape> = { [K in keyof Shape as K extends string ? CamelKey<K> : K]: CamelField<Shape[K]> };

/** The camelCase schema of an HTTP object, to be extended or reduced like any other. */
export const camelObject = <Shape extends z.core.$ZodShape>(wire: z.ZodObject<Shape>) =>
  camelSchema(wire) as unknown as z.ZodObject<CamelShape<Shape>>;

const reference = { format: "reference" } as const;

/** The App that a function reads. */
export const inApp = { app: required(appName, "App to read: the `id` of an App.", reference) };

/** The Machine that a function reads. */
export const ofMachine = {
  app: required(appName, "App of the Machine: the `id` of an App.", reference),
  machine: required(z.string().min(1), "The Machine: the `id` of a Machine.", reference),
};

/** The volume that a function reads. */
export const ofVolume = {
  app: required(appName, "App of the volume: the `id` of an App.", reference),
  volume: required(z.string().min(1), "The volume: the `id` of a Volume.", reference),
};

/** The organization a function lists. */
export const ofOrganization = {
  organization: optional(z.string(), "Slug of the organization; the provider's `organization` when left out."),
};

/** The minimum version of the App's secrets in an answer. */
export const leastVersion = {
  minVersion: optional(
    z.int().min(0),
    "Lowest version of the App's secrets that the answer must have: the `version` that a change of them returned.",
  ),
};

/** The query for {@link leastVersion}. */
export const atLeast = (minVersion: number | undefined) => ({
  minVersion: minVersion === undefined ? undefined : String(minVersion),
});

/** A list of values in HTTP form: separated by commas. */
export const commaSeparated = (values: readonly string[] | undefined): string | undefined =>
  values === undefined || values.length === 0 ? undefined : values.join(",");

/** An answer in which null means nothing, as programs see it. */
export type WithoutNull<T> = { [K in keyof T]: null extends T[K] ? Exclude<T[K], null> | undefined : T[K] };

/** The object without its own nulls; nested objects stay unchanged. */
export const withoutNull = <T extends object>(value: T): WithoutNull<T> =>
  Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== null)) as WithoutNull<T>;
