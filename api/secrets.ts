// Secrets of an App (docs/interface.md#secrets).
import { z } from "zod";
import { appNameParam, secretName, secretNameParam } from "./names.ts";
import { operations } from "./operation.ts";
import { optional, required } from "./schema.ts";

const version = {
  version: optional(z.int(), "Version of the App's secrets after the change; it grows with every change."),
  Version: optional(z.int(), "Another spelling of `version`.", { deprecationMessage: "Use `version`." }),
};

/** Fields at the end of every answer to a write. */
export const writtenVersion = version;

/** Query of reads that may request a version. */
export const minVersion = {
  min_version: optional(
    z.string().regex(/^\d{1,15}$/, "must be a version, a whole number"),
    "Version the answer must have at least.",
  ),
  version: optional(z.string(), "Another spelling of `min_version`; some clients send it."),
};

/** A secret. Its value is returned only on request. */
export const secret = z.object({
  name: required(z.string(), "Name."),
  digest: optional(z.string(), "Digest that changes with the value. The value cannot be derived from it."),
  created_at: optional(z.string(), "RFC 3339 time of creation."),
  updated_at: optional(z.string(), "RFC 3339 time of the last change."),
  value: optional(z.string(), "The value, with `show_secrets` only.", { secret: true }),
});

const path = "/v1/apps/{app_name}/secrets";
const app = z.object({ app_name: appNameParam });
const one = app.extend({ secret_name: secretNameParam });
const shown = z.object({
  ...minVersion,
  show_secrets: optional(z.boolean(), "Show the values.", { wireDefault: false }),
});

export const secrets = operations("secrets", {
  list: {
    method: "GET",
    path,
    source: "docs/interface.md#secrets",
    summary: "Lists the secrets of an App.",
    params: app,
    query: shown,
    status: 200,
    answer: z.object({ secrets: required(z.array(secret), "The secrets, by name.") }),
    failures: { 400: "min_version is no version", 403: "the token may not see values", 404: "no such App" },
    repeat: "read",
  },
  update: {
    method: "POST",
    path,
    source: "docs/interface.md#secrets",
    summary: "Sets and unsets several secrets at once; others stay.",
    params: app,
    body: z.object({
      values: required(z.record(secretName, z.string().nullable()), "Values by name; null unsets.", { secret: true }),
    }),
    status: 200,
    answer: z.object({ secrets: optional(z.array(secret), "The secrets of the App now."), ...version }),
    failures: { 400: "bad name or value", 404: "no such App" },
    repeat: "repeatable",
  },
  get: {
    method: "GET",
    path: `${path}/{secret_name}`,
    source: "docs/interface.md#secrets",
    summary: "Shows a secret.",
    params: one,
    query: shown,
    status: 200,
    answer: secret,
    failures: { 400: "min_version is no version", 403: "the token may not see values", 404: "no such App or secret" },
    repeat: "read",
  },
  set: {
    method: "POST",
    path: `${path}/{secret_name}`,
    source: "docs/interface.md#secrets",
    summary: "Sets a secret.",
    params: app.extend({ secret_name: secretName }),
    body: z.object({ value: required(z.string(), "The value.", { secret: true }) }),
    status: 201,
    answer: secret.extend(version),
    failures: { 400: "bad name or value", 404: "no such App" },
    repeat: "repeatable",
  },
  delete: {
    method: "DELETE",
    path: `${path}/{secret_name}`,
    source: "docs/interface.md#secrets",
    summary: "Unsets a secret.",
    params: one,
    status: 200,
    answer: z.object(version),
    failures: { 404: "no such App or secret" },
    repeat: "repeatable",
  },
});
