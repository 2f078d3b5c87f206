// The functions about secrets and secret keys.
import { z } from "zod";
import { secretKey, secretKeys, secretKeyType, signingTypes } from "../../api/secretKeys.ts";
import { named, optional, required } from "../../api/schema.ts";
import { secret } from "../../api/secrets.ts";
import type { AnswerOf } from "../client/api.ts";
import { ApiError } from "../client/errors.ts";
import { defineFunction, listFunction } from "../core/function.ts";
import { atLeast, camelObject, inApp, leastVersion } from "../shared/fields.ts";

// docs/interface.md#secrets: values are never requested.
const secretDetails = z.object({
  id: required(z.string(), "Id of the secret, `app/name`, as `pulumi import` takes it."),
  ...camelObject(secret).omit({ value: true }).shape,
});

const toSecretDetails = (app: string, { value: _, ...live }: AnswerOf<"secrets", "get">) => ({
  ...live,
  id: `${app}/${live.name}`,
});

export const getSecret = defineFunction({
  name: "getSecret",
  summary: "Looks up a secret of an App: its digest and times, never its value.",
  inputs: z.object({
    ...inApp,
    name: required(z.string().min(1), "Name of the secret, or the `id` of a Secret.", { format: "reference" }),
    ...leastVersion,
  }),
  outputs: secretDetails,
  call: async ({ inputs: { app, name, minVersion }, api }) =>
    toSecretDetails(app, await api.secrets.get({ appName: app, secretName: name, ...atLeast(minVersion) })),
});

export const getSecrets = listFunction({
  name: "getSecrets",
  summary: "Lists the secrets of an App: names, digests and times, never their values.",
  inputs: { ...inApp, ...leastVersion },
  items: ["secrets", "The secrets, by name.", named("SecretDetails", secretDetails)],
  list: async ({ app, minVersion }, api) =>
    (await api.secrets.list({ appName: app, ...atLeast(minVersion) })).secrets.map((live) =>
      toSecretDetails(app, live),
    ),
});

// docs/interface.md#secret-keys: their values never leave the service.
const secretKeyDetails = z.object({
  id: required(z.string(), "Id of the key, `app/name`, as inputs and `pulumi import` take it."),
  ...camelObject(secretKey).shape,
});

const toSecretKeyDetails = (app: string, live: AnswerOf<"secretKeys", "get">) => ({
  ...live,
  id: `${app}/${live.name}`,
});

const ofKey = {
  ...inApp,
  key: required(z.string().min(1), "The key: the `id` of a SecretKey, or its name.", { format: "reference" }),
  ...leastVersion,
};

export const getSecretKey = defineFunction({
  name: "getSecretKey",
  summary: "Looks up a secret key of an App; its value never leaves the service.",
  inputs: z.object(ofKey),
  outputs: secretKeyDetails,
  call: async ({ inputs: { app, key, minVersion }, api }) =>
    toSecretKeyDetails(app, await api.secretKeys.get({ appName: app, secretName: key, ...atLeast(minVersion) })),
});

export const getSecretKeys = listFunction({
  name: "getSecretKeys",
  summary: "Lists the secret keys of an App; their values never leave the service.",
  inputs: {
    ...inApp,
    types: named("ListedSecretKeyType", optional(z.array(secretKeyType), "Only keys of these kinds.")),
    ...leastVersion,
  },
  items: ["keys", "The keys, by name.", named("SecretKeyDetails", secretKeyDetails)],
  async list({ app, types, minVersion }, api) {
    const found = await api.secretKeys.list({ appName: app, types, ...atLeast(minVersion) });
    return found.secretKeys.map((live) => toSecretKeyDetails(app, live));
  },
});

export const decrypt = defineFunction({
  name: "decrypt",
  summary: "Decrypts with a secret key of an App. The answer is a secret.",
  inputs: z.object({ ...ofKey, ...camelObject(secretKeys.decrypt.body).shape }),
  outputs: camelObject(secretKeys.decrypt.answer),
  call: ({ inputs: { app, key, minVersion, ...body }, api }) =>
    api.secretKeys.decrypt({ appName: app, secretName: key, ...atLeast(minVersion), body }),
});

export const verify = defineFunction({
  name: "verify",
  summary: "Verifies a signature with a secret key of an App.",
  inputs: z.object({ ...ofKey, ...camelObject(secretKeys.verify.body).shape }),
  outputs: z.object({ valid: required(z.boolean(), "Whether the signature was created with this key for this data.") }),

  async call({ inputs: { app, key, minVersion, ...body }, api }) {
    const one = { appName: app, secretName: key, ...atLeast(minVersion) };
    try {
      await api.secretKeys.verify({ ...one, body });
      return { valid: true };
    } catch (error) {
      if (!isAboutSignature(error)) throw error;
      // A key that cannot sign is an error of the program, whatever the service's text is.
      const { type } = await api.secretKeys.get(one);
      if (!signingTypes.some((signing) => signing === type)) throw error;
      return { valid: false };
    }
  },
});

// ASSUMED: the refusal of a wrong signature is a 400 whose text speaks of the signature or of verifying.
const isAboutSignature = (error: unknown): boolean =>
  error instanceof ApiError && error.status === 400 && /signature|verif/i.test(error.reason);
