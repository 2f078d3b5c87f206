// Secret keys of an App: keys that never leave the service and are used by name (docs/interface.md#secret-keys).
import { z } from "zod";
import { appNameParam, secretName, secretNameParam } from "./names.ts";
import { operations } from "./operation.ts";
import { bytes, optional, required } from "./schema.ts";
import { minVersion, writtenVersion } from "./secrets.ts";

/** Types that can sign. */
export const signingTypes = ["nacl_auth", "hs256", "hs384", "hs512", "es256", "nacl_sign"] as const;
/** Types that can encrypt. */
export const encryptingTypes = ["nacl_secretbox", "xaes256gcm", "nacl_box"] as const;

/** Kinds of keys. */
export const secretKeyType = z.enum([...signingTypes, ...encryptingTypes]);

/** The minimum and maximum number of bytes of a key. */
const keyBytes: Readonly<Record<z.infer<typeof secretKeyType>, readonly [number, number]>> = {
  nacl_auth: [32, 32],
  hs256: [32, 1024],
  hs384: [48, 1024],
  hs512: [64, 1024],
  es256: [32, 32],
  nacl_sign: [32, 32],
  nacl_secretbox: [32, 32],
  xaes256gcm: [32, 32],
  nacl_box: [32, 32],
};

/** The error for a key of the wrong length, or undefined. */
export function keyLengthProblem(type: z.infer<typeof secretKeyType>, length: number): string | undefined {
  const [least, most] = keyBytes[type];
  if (length >= least && length <= most) return undefined;
  return `got ${length} bytes, must be ${least === most ? least : `${least} to ${most}`} bytes`;
}

/** A key. Its value never leaves the service. */
export const secretKey = z.object({
  name: required(z.string(), "Name."),
  type: optional(z.string(), "Kind of key."),
  public_key: optional(bytes(), "Public half, of the kinds that have one (`es256`, `nacl_box`, `nacl_sign`)."),
  created_at: optional(z.string(), "RFC 3339 time of creation."),
  updated_at: optional(z.string(), "RFC 3339 time of the last change."),
});

const plaintext = required(bytes(), "The data, base64.", { secret: true });
const associated = optional(bytes(), "Data that is not part of the ciphertext, but must be the same for decrypting.");

const path = "/v1/apps/{app_name}/secretkeys";
const app = z.object({ app_name: appNameParam });
const one = app.extend({ secret_name: secretNameParam });
const named = app.extend({ secret_name: secretName });
const missing = "no such App or key";
const version = z.object(minVersion);
const written = secretKey.extend(writtenVersion);

export const secretKeys = operations("secretKeys", {
  list: {
    method: "GET",
    path,
    source: "docs/interface.md#secret-keys",
    summary: "Lists the secret keys of an App.",
    params: app,
    query: version.extend({
      types: optional(z.array(secretKeyType), "Only keys of these kinds; comma-separated."),
    }),
    status: 200,
    answer: z.object({ secret_keys: required(z.array(secretKey), "The keys, by name.") }),
    failures: { 400: "bad type or version", 404: "no such App" },
    repeat: "read",
  },
  get: {
    method: "GET",
    path: `${path}/{secret_name}`,
    source: "docs/interface.md#secret-keys",
    summary: "Shows a secret key.",
    params: one,
    query: version,
    status: 200,
    answer: secretKey,
    failures: { 400: "bad version", 404: missing },
    repeat: "read",
  },
  set: {
    method: "POST",
    path: `${path}/{secret_name}`,
    source: "docs/interface.md#secret-keys",
    summary: "Sets a secret key to a given value.",
    params: named,
    body: z.object({
      type: required(secretKeyType, "Kind of key."),
      value: required(bytes(), "The key, base64.", { secret: true }),
    }),
    status: 201,
    answer: written,
    failures: { 400: "bad name or type, or a value that is no such key", 404: "no such App" },
    repeat: "repeatable",
  },
  delete: {
    method: "DELETE",
    path: `${path}/{secret_name}`,
    source: "docs/interface.md#secret-keys",
    summary: "Removes a secret key.",
    params: one,
    status: 200,
    answer: z.object(writtenVersion),
    failures: { 404: missing },
    repeat: "repeatable",
  },
  generate: {
    method: "POST",
    path: `${path}/{secret_name}/generate`,
    source: "docs/interface.md#secret-keys",
    summary: "Sets a secret key to a random value.",
    params: named,
    body: z.object({
      type: required(secretKeyType, "Kind of key."),
      value: optional(bytes(), "Must be left out; the service generates the value.", { secret: true }),
    }),
    status: 201,
    answer: written,
    failures: { 400: "bad name or type, or a value was given", 404: "no such App" },
    repeat: "once",
  },
  encrypt: {
    method: "POST",
    path: `${path}/{secret_name}/encrypt`,
    source: "docs/interface.md#secret-keys",
    summary: "Encrypts with a secret key.",
    params: one,
    query: version,
    body: z.object({ plaintext, associated_data: associated }),
    status: 200,
    answer: z.object({ ciphertext: required(bytes(), "The ciphertext with its nonce, base64.") }),
    failures: { 400: "bad field, or the key does not encrypt", 404: missing },
    repeat: "read",
  },
  decrypt: {
    method: "POST",
    path: `${path}/{secret_name}/decrypt`,
    source: "docs/interface.md#secret-keys",
    summary: "Decrypts with a secret key.",
    params: one,
    query: version,
    body: z.object({
      ciphertext: required(bytes(), "The ciphertext that encrypt returned, base64."),
      associated_data: associated,
    }),
    status: 200,
    answer: z.object({ plaintext }),
    failures: { 400: "bad field, not encrypted with this key and data, or the key does not decrypt", 404: missing },
    repeat: "read",
  },
  sign: {
    method: "POST",
    path: `${path}/{secret_name}/sign`,
    source: "docs/interface.md#secret-keys",
    summary: "Signs with a secret key.",
    params: one,
    query: version,
    body: z.object({ plaintext }),
    status: 200,
    answer: z.object({ signature: required(bytes(), "The signature, base64.") }),
    failures: { 400: "bad field, or the key does not sign", 404: missing },
    repeat: "read",
  },
  verify: {
    method: "POST",
    path: `${path}/{secret_name}/verify`,
    source: "docs/interface.md#secret-keys",
    summary: "Verifies a signature with a secret key.",
    params: one,
    query: version,
    body: z.object({ plaintext, signature: required(bytes(), "The signature that sign returned, base64.") }),
    status: 204,
    failures: { 400: "bad field, not a signature of this data, or the key does not sign", 404: missing },
    repeat: "read",
  },
});
