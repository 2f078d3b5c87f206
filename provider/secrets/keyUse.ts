// Shared parts of ciphertexts and signatures, which are computed with a secret key and kept
// (docs/interface.md#secret-keys).
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { appName } from "../../api/names.ts";
import { bytes, optional, required } from "../../api/schema.ts";
import type { Api } from "../client/api.ts";

/** Inputs of both. */
export const keyUseInputs = {
  app: required(appName, "App that has the key: the `id` of an App. Changing it replaces this.", {
    format: "reference",
  }),
  key: required(z.string(), "The key: the `id` or the `name` of a SecretKey. Changing it replaces this.", {
    format: "reference",
  }),
  plaintext: required(bytes(), "The data, base64. Changing it computes the output again.", { secret: true }),
  keyUpdatedAt: optional(
    z.string(),
    "The key's `updatedAt`. With it, the output is computed again in the same up that replaces the key, and not only after the next refresh.",
  ),
};

/** Outputs besides the result. */
export const keyUseOutputs = {
  serial: required(z.string(), "Random last part of the id."),
  madeWith: optional(z.string(), "`updatedAt` of the key that the output was computed with."),
};

interface Use {
  readonly app: string;
  readonly key: string;
}

const keyOf = ({ app, key }: Use) => ({ appName: app, secretName: key });

/** A new random end of an id. */
export const newSerial = (): string => randomBytes(6).toString("hex");

/**
 * Computes a result with a key, and records the key's version. It is read first, so a concurrent change of the key shows
 * at the next refresh.
 */
export async function computedWithKey<T>(
  api: Api,
  use: Use,
  make: (key: ReturnType<typeof keyOf>) => Promise<T>,
): Promise<T & { madeWith: string | undefined }> {
  const { updatedAt } = await api.secretKeys.get(keyOf(use));
  return { ...(await make(keyOf(use))), madeWith: updatedAt };
}

/** Why neither can be imported. */
export const keyUseNoImport = "the service does not store it; leave the import out, and up computes a new one";

/**
 * The plaintext after a read: `null` if another key has the name now, so that the next up computes the output again.
 */
export async function plaintextIfStale(api: Api, use: Use, madeWith: string | undefined): Promise<null | undefined> {
  const { updatedAt } = await api.secretKeys.get(keyOf(use));
  return updatedAt === madeWith ? undefined : null;
}
