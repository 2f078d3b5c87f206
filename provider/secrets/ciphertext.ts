// Data encrypted with a secret key (docs/interface.md#secret-keys).
import { z } from "zod";
import { bytes, optional, required } from "../../api/schema.ts";
import { pathId } from "../core/ids.ts";
import { defineResource } from "../core/resource.ts";
import { keyUseInputs, keyUseNoImport, keyUseOutputs, computedWithKey, newSerial, plaintextIfStale } from "./keyUse.ts";

const inputs = z.object({
  ...keyUseInputs,
  associatedData: optional(
    bytes(),
    "Data, base64, that is not part of the ciphertext, but must be the same for decrypting. Changing it computes the output again.",
  ),
});

const outputs = z.object({
  ...keyUseOutputs,
  ciphertext: required(bytes(), "The ciphertext with its nonce, base64."),
});

export const ciphertext = defineResource({
  name: "Ciphertext",
  summary: "Data encrypted with a secret key.",
  description:
    "Encrypting the same data twice gives different ciphertexts, so this one is kept until the data or the key changes. " +
    "It exists only in the state: deleting it sends nothing to the service.",
  inputs,
  outputs,
  id: pathId("app", "key", "serial"),
  unlisted: "the service does not keep it",
  noImport: keyUseNoImport,
  replaceOn: ["app", "key"],
  dependsOn: { ciphertext: "any", madeWith: "any" },

  async create({ inputs: { app, key, plaintext, associatedData }, api }) {
    const result = await computedWithKey(api, { app, key }, (at) =>
      api.secretKeys.encrypt({ ...at, body: { plaintext, associatedData } }),
    );
    return { app, key, serial: newSerial(), ...result };
  },

  async read({ id, state, api }) {
    const { ciphertext: kept = "", madeWith } = state ?? {};
    return { serial: id.serial, ciphertext: kept, madeWith, plaintext: await plaintextIfStale(api, id, madeWith) };
  },

  async update({ id, inputs: { plaintext, associatedData }, api }) {
    const result = await computedWithKey(api, id, (at) =>
      api.secretKeys.encrypt({ ...at, body: { plaintext, associatedData } }),
    );
    return { serial: id.serial, ...result };
  },

  delete: () => Promise.resolve(),
});
