// Ed25519 (RFC 8032), as NaCl's crypto_sign: the key is the seed, the signature is detached.
import { createPrivateKey, createPublicKey, sign, verify, type KeyObject } from "node:crypto";
import { keyLengthProblem } from "../../api/secretKeys.ts";
import type { Signer } from "./kind.ts";

// The fixed beginnings of PKCS #8 and SPKI for Ed25519.
const privateHead = Buffer.from("302e020100300506032b657004220420", "hex");

const privateKey = (seed: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.concat([privateHead, seed]), format: "der", type: "pkcs8" });

/** `crypto_sign` of NaCl. */
export const naclSign: Signer = {
  problem: (key) => keyLengthProblem("nacl_sign", key.length),
  generate: (random) => random(32),
  publicKey: (key) => createPublicKey(privateKey(key)).export({ format: "der", type: "spki" }).subarray(-32),
  sign: (key, plaintext) => sign(null, plaintext, privateKey(key)),
  verify: (key, plaintext, signature) => verify(null, plaintext, createPublicKey(privateKey(key)), signature),
};
