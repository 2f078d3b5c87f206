// Data signed with a secret key (docs/interface.md#secret-keys).
import { z } from "zod";
import { bytes, required } from "../../api/schema.ts";
import { pathId } from "../core/ids.ts";
import { defineResource } from "../core/resource.ts";
import { keyUseInputs, keyUseNoImport, keyUseOutputs, computedWithKey, newSerial, plaintextIfStale } from "./keyUse.ts";

const inputs = z.object(keyUseInputs);

const outputs = z.object({ ...keyUseOutputs, signature: required(bytes(), "The signature, base64.") });

export const signature = defineResource({
  name: "Signature",
  summary: "The signature of data by a secret key.",
  description:
    "It is kept until the data or the key changes. " +
    "It exists only in the state: deleting it sends nothing to the service.",
  inputs,
  outputs,
  id: pathId("app", "key", "serial"),
  unlisted: "the service does not keep it",
  noImport: keyUseNoImport,
  replaceOn: ["app", "key"],
  dependsOn: { signature: "any", madeWith: "any" },

  async create({ inputs: { app, key, plaintext }, api }) {
    const result = await computedWithKey(api, { app, key }, (at) =>
      api.secretKeys.sign({ ...at, body: { plaintext } }),
    );
    return { app, key, serial: newSerial(), ...result };
  },

  async read({ id, state, api }) {
    const { signature: kept = "", madeWith } = state ?? {};
    return { serial: id.serial, signature: kept, madeWith, plaintext: await plaintextIfStale(api, id, madeWith) };
  },

  async update({ id, inputs: { plaintext }, api }) {
    const result = await computedWithKey(api, id, (at) => api.secretKeys.sign({ ...at, body: { plaintext } }));
    return { serial: id.serial, ...result };
  },

  delete: () => Promise.resolve(),
});
