// Verifying a signature with a secret key of an App (docs/interface.md#secret-keys).
import { z } from "zod";
import { secretKeys, signingTypes } from "../../api/secretKeys.ts";
import { required } from "../../api/schema.ts";
import { ApiError } from "../client/errors.ts";
import { defineFunction } from "../core/function.ts";
import { atLeast, camelObject } from "../shared/fields.ts";
import { ofKey } from "./getSecretKey.ts";

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
