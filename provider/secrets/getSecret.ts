// A secret of an App, without its value (docs/interface.md#secrets).
import { z } from "zod";
import { secret } from "../../api/secrets.ts";
import { required } from "../../api/schema.ts";
import type { AnswerOf } from "../client/api.ts";
import { defineFunction } from "../core/function.ts";
import { atLeast, camelObject, inApp, leastVersion } from "../shared/fields.ts";

/** A secret in the results of functions. Values are never requested. */
export const secretDetails = z.object({
  id: required(z.string(), "Id of the secret, `app/name`, as `pulumi import` takes it."),
  ...camelObject(secret).omit({ value: true }).shape,
});

/** The outputs of functions about a secret. */
export const toSecretDetails = (app: string, { value: _, ...live }: AnswerOf<"secrets", "get">) => ({
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

  async call({ inputs: { app, name, minVersion }, api }) {
    return toSecretDetails(app, await api.secrets.get({ appName: app, secretName: name, ...atLeast(minVersion) }));
  },
});
