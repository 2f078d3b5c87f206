// Names and identifiers (docs/interface.md#names-and-identifiers), as schemas shared by both sides.
import { z } from "zod";

/** A lone surrogate, which a path cannot contain. */
const isWhole = (text: string): boolean => !/\p{Surrogate}/u.test(text);
const notWhole = "must not hold half of a character";

/** A path parameter is one segment; anything that could be read as several is refused before it is sent (F34). */
const segment = (what: string) =>
  z
    .string()
    .min(1, `${what} must not be empty`)
    .max(255, `${what} must not be longer than 255 characters`)
    .regex(
      /^(?!\.{1,2}$)(?!.*%2e)[^/\\\u0000-\u001f\u007f?#%]+$/i,
      `${what} must not hold "/", "\\", "?", "#", "%" or control characters, nor be "." or ".."`,
    )
    .refine(isWhole, `${what} ${notWhole}`);

/** App name: 1–62 of `a-z`, `0-9`, `-`; unique on the whole platform. */
export const appName = z.string().regex(/^[a-z0-9-]{1,62}$/, "must be 1 to 62 of a-z, 0-9 and -");

/** Machine name: 1–63 of `a-z`, `0-9`, `-`; unique among the App's live Machines. ASSUMED: a Machine's name is 1 to 63 of `a-z`, `0-9` and `-`. */
export const machineName = z.string().regex(/^[a-z0-9-]{1,63}$/, "must be 1 to 63 of a-z, 0-9 and -");

/** Volume name: 1–30 of `a-z`, `0-9`, `_`; several volumes may share one. */
export const volumeName = z.string().regex(/^[a-z0-9_]{1,30}$/, "must be 1 to 30 of a-z, 0-9 and _");

/** The regions of today (docs/interface.md#regions). */
export const knownRegions = [
  ...(["ams", "arn", "bom", "cdg", "dfw", "ewr", "fra", "gru", "iad"] as const),
  ...(["jnb", "lax", "lhr", "nrt", "ord", "sin", "sjc", "syd", "yyz"] as const),
] as const;

/** Region code: `ams`, `fra`. Which exist is the service's to say. */
export const regionCode = z
  .string()
  .regex(/^[a-z]{2,8}$/, `must be a region code such as ${knownRegions.join(", ")}`)
  .meta({ open: knownRegions, typeName: "Region" });

/** Path parameter `{app_name}`. */
export const appNameParam = segment("app name").meta({ description: "The App's name." });
/** Path parameter `{machine_id}`. */
export const machineIdParam = segment("Machine id").meta({ description: "The Machine's identifier." });
/** Path parameter `{volume_id}`. */
export const volumeIdParam = segment("volume id").meta({ description: "The volume's identifier." });
/** Path parameter `{key}` of metadata: any text except dot segments; it is encoded (F34). */
export const metadataKeyParam = z
  .string()
  .min(1)
  .max(255)
  .refine((key) => key !== "." && key !== "..", 'metadata key must not be "." or ".."')
  .refine(isWhole, `metadata key ${notWhole}`)
  .meta({ description: "The metadata key." });

/** Hostname of a certificate, also a wildcard such as `*.example.com`; up to 253 characters. */
export const hostname = z
  .string()
  .max(253)
  .regex(
    /^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$/i,
    'must be a hostname such as "www.example.com" or "*.example.com"',
  );

/** Secret name: a name an environment variable may have. ASSUMED: a secret's name is 1 to 255 letters, digits and `_`, and does not begin with a digit. */
export const secretName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,254}$/, "must be 1 to 255 letters, digits and _, and not begin with a digit");

/** Cluster name, unique in the organization. ASSUMED: a cluster's name is 1 to 63 of `a-z`, `0-9` and `-`; one that is taken is 422. */
export const clusterName = z
  .string()
  .regex(
    /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
    "must be 1 to 63 of a-z, 0-9 and -, and begin and end with a letter or digit",
  );

/** Database of a cluster (docs/interface.md#names-and-identifiers). */
export const databaseName = z
  .string()
  .regex(
    /^[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$/,
    "must be 1 to 63 letters, digits, - and _, and begin and end with a letter or digit",
  );

/** User of a cluster (docs/interface.md#names-and-identifiers). */
export const userName = z
  .string()
  .regex(
    /^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/,
    "must be 1 to 63 lowercase letters, digits, - and _, and begin and end with a letter or digit",
  );

/** Path parameter `{ip}`. */
export const ipParam = segment("IP address").meta({ description: "The IP address." });
/** Path parameter `{hostname}`. */
export const hostnameParam = segment("hostname").meta({ description: "The hostname." });
/** Path parameter `{secret_name}`. */
export const secretNameParam = segment("secret name").meta({ description: "The secret's name." });
/** Path parameter `{org_slug}`. */
export const orgSlugParam = segment("organization slug").meta({
  description: "The organization's slug; `personal` is the caller's own.",
});
/** Path parameter `{postgres_cluster_id}`. */
export const clusterIdParam = segment("cluster id").meta({ description: "The cluster's identifier." });
/** Path parameter `{database}`. */
export const databaseParam = segment("database name").meta({ description: "The database's name." });
/** Path parameter `{extension}`. */
export const extensionParam = segment("extension name").meta({ description: "The extension's name." });
/** Path parameter `{username}`. */
export const userParam = segment("user name").meta({ description: "The user's name." });

/**
 * 26-character identifier of a Machine version or event (docs/interface.md#names-and-identifiers,
 * docs/interface.md#events).
 */
export const ulid = z.string().regex(/^[0-9A-HJKMNP-TV-Z]{26}$/, "must be a 26-character identifier");

/** An id without its parents (R5): `app/vol_1` and `vol_1` name the same volume. */
export const bareId = (reference: string): string => reference.slice(reference.lastIndexOf("/") + 1);
