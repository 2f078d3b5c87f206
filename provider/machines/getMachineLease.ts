// The current lease of a Machine (docs/interface.md#leases).
import { z } from "zod";
import { optional, required } from "../../api/schema.ts";
import { isNotFound } from "../client/errors.ts";
import { defineFunction } from "../core/function.ts";
import { ofMachine } from "../shared/fields.ts";

const outputs = z.object({
  held: required(z.boolean(), "Whether a client holds the lease now."),
  owner: optional(z.string(), "Who holds it."),
  description: optional(z.string(), "Why it is held."),
  expiresAt: optional(z.string(), "RFC 3339 time at which it ends unless it is renewed."),
  version: optional(z.string(), "Version of the Machine when it was granted."),
});

export const getMachineLease = defineFunction({
  name: "getMachineLease",
  summary: "Shows whether a client holds the lease of a Machine, and which one; never its nonce.",
  inputs: z.object(ofMachine),
  outputs,

  async call({ inputs: { app, machine }, api }) {
    const key = { appName: app, machineId: machine };
    try {
      const answer = await api.machines.getLease(key);
      const { owner, description, expiresAt, version } = answer.data ?? answer;
      const at = expiresAt === undefined ? undefined : new Date(expiresAt * 1000).toISOString();
      return { held: true, owner, description, expiresAt: at, version };
    } catch (error) {
      if (!isNotFound(error)) throw error;
      // The same status is the answer for an unknown Machine.
      await api.machines.get(key);
      return { held: false };
    }
  },
});
