// The secrets of an App, without their values (docs/interface.md#secrets).
import { z } from "zod";
import { named, required } from "../../api/schema.ts";
import { defineFunction } from "../core/function.ts";
import { atLeast, inApp, leastVersion } from "../shared/fields.ts";
import { secretDetails, toSecretDetails } from "./getSecret.ts";

export const getSecrets = defineFunction({
  name: "getSecrets",
  summary: "Lists the secrets of an App: names, digests and times, never their values.",
  inputs: z.object({ ...inApp, ...leastVersion }),
  outputs: z.object({
    secrets: required(z.array(named("SecretDetails", secretDetails)), "The secrets, by name."),
  }),

  async call({ inputs: { app, minVersion }, api }) {
    const { secrets } = await api.secrets.list({ appName: app, ...atLeast(minVersion) });
    return { secrets: secrets.map((live) => toSecretDetails(app, live)) };
  },
});
