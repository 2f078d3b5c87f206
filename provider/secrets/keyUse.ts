// What is made with a secret key and kept: ciphertexts and signatures (docs/interface.md#secret-keys).
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { appName } from "../../api/names.ts";
import { bytes, optional, required } from "../../api/schema.ts";
import type { Api } from "../client/api.ts";

/** What both are made of. */
export const keyUseInputs = {
  app: required(appName, "App that has the key: the `id` of an App. Changing it replaces this.", {
    format: "reference",
  }),
  key: required(z.string(), "The key: the `id` or the `name` of a SecretKey. Changing it replaces this.", {
    format: "reference",
  }),
  plaintext: required(bytes(), "The data, base64. Changing it makes the output anew.", { secret: true }),
  keyUpdatedAt: optional(
    z.string(),
    "The key's `updatedAt`: a key that is replaced then makes the output anew in the same up, and not only after the next refresh.",
  ),
};

/** What is kept beside the result. */
export const keyUseOutputs = {
  serial: required(z.string(), "Random end of the id."),
  madeWith: optional(z.string(), "`updatedAt` of the key the output was made with."),
};

interface Use {
  readonly app: string;
  readonly key: string;
}

const keyOf = ({ app, key }: Use) => ({ appName: app, secretName: key });

/** A new end of an id. */
export const newSerial = (): string => randomBytes(6).toString("hex");

/** Makes something with a key, and notes which. Asked for first, a key that changes meanwhile shows at the next refresh. */
export async function madeWithKey<T>(
  api: Api,
  use: Use,
  make: (key: ReturnType<typeof keyOf>) => Promise<T>,
): Promise<T & { madeWith: string | undefined }> {
  const { updatedAt } = await api.secretKeys.get(keyOf(use));
  return { ...(await make(keyOf(use))), madeWith: updatedAt };
}

/** Why neither can be imported. */
export const keyUseNoImport = "the service keeps nothing of it; leave the import out, and up makes a new one";

/** What a read tells of the plaintext: `null` when another key has the name now, so that the next up makes it anew. */
export async function plaintextIfStale(api: Api, use: Use, madeWith: string | undefined): Promise<null | undefined> {
  const { updatedAt } = await api.secretKeys.get(keyOf(use));
  return updatedAt === madeWith ? undefined : null;
}
