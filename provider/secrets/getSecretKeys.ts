// The secret keys of an App (docs/interface.md#secret-keys).
import { z } from "zod";
import { secretKeyType } from "../../api/secretKeys.ts";
import { named, optional, required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { atLeast, inApp, leastVersion } from "../shared/fields.ts";
import { secretKeyDetails, toSecretKeyDetails } from "./getSecretKey.ts";

export const getSecretKeys = defineFunction({
  name: "getSecretKeys",
  summary: "Lists the secret keys of an App; their values never leave the service.",
  inputs: z.object({
    ...inApp,
    types: named("ListedSecretKeyType", optional(z.array(secretKeyType), "Only keys of these kinds.")),
    ...leastVersion,
  }),
  outputs: z.object({
    keys: required(z.array(named("SecretKeyDetails", secretKeyDetails)), "The keys, by name."),
  }),

  async call({ inputs: { app, types, minVersion }, api }) {
    const found = await api.secretKeys.list({ appName: app, types, ...atLeast(minVersion) });
    return { keys: found.secretKeys.map((live) => toSecretKeyDetails(app, live)) };
  },
});
