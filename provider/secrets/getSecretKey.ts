// A secret key of an App (docs/interface.md#secret-keys).
import { z } from "zod";
import { secretKey } from "../../api/secretKeys.ts";
import { required } from "../../api/schema.ts";
import type { AnswerOf } from "../client/api.ts";
import { defineFunction } from "../core/function.ts";
import { atLeast, camelObject, inApp, leastVersion } from "../shared/fields.ts";

/** A secret key in the answers of functions. Its key material never leaves the service. */
export const secretKeyDetails = z.object({
  id: required(z.string(), "Id of the key, `app/name`, as inputs and `pulumi import` take it."),
  ...camelObject(secretKey).shape,
});

/** The outputs of functions about a secret key. */
export const toSecretKeyDetails = (app: string, live: AnswerOf<"secretKeys", "get">) => ({
  ...live,
  id: `${app}/${live.name}`,
});

/** The key a function uses. */
export const ofKey = {
  ...inApp,
  key: required(z.string().min(1), "The key: the `id` of a SecretKey, or its name.", { format: "reference" }),
  ...leastVersion,
};

export const getSecretKey = defineFunction({
  name: "getSecretKey",
  summary: "Looks up a secret key of an App; its value never leaves the service.",
  inputs: z.object(ofKey),
  outputs: secretKeyDetails,

  async call({ inputs: { app, key, minVersion }, api }) {
    return toSecretKeyDetails(app, await api.secretKeys.get({ appName: app, secretName: key, ...atLeast(minVersion) }));
  },
});
