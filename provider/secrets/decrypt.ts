// Decrypting with a secret key of an App (docs/interface.md#secret-keys).
import { z } from "zod";
import { secretKeys } from "../../api/secretKeys.ts";
import { defineFunction } from "../core/function.ts";
import { atLeast, camelObject } from "../shared/fields.ts";
import { ofKey } from "./getSecretKey.ts";

export const decrypt = defineFunction({
  name: "decrypt",
  summary: "Decrypts with a secret key of an App. The answer is a secret.",
  inputs: z.object({ ...ofKey, ...camelObject(secretKeys.decrypt.body).shape }),
  outputs: camelObject(secretKeys.decrypt.answer),

  call: ({ inputs: { app, key, minVersion, ...body }, api }) =>
    api.secretKeys.decrypt({ appName: app, secretName: key, ...atLeast(minVersion), body }),
});
