// HMAC with SHA-2 (RFC 2104, RFC 4231), and NaCl's secret-key authentication, which is HMAC-SHA-512 truncated to 32 bytes.
import { createHmac } from "node:crypto";
import { keyLengthProblem } from "../../api/secretKeys.ts";
import { isSame } from "./isSame.ts";
import type { Signer } from "./kind.ts";

/** HMAC. ASSUMED: a key for HMAC may be longer than the hash, up to 1024 bytes; a shorter one is weak and refused. */
export const hmac = (
  hash: "sha256" | "sha384" | "sha512",
  type: "hs256" | "hs384" | "hs512",
  length: number,
): Signer => {
  const sign = (key: Uint8Array, plaintext: Uint8Array): Uint8Array => createHmac(hash, key).update(plaintext).digest();
  return {
    problem: (key) => keyLengthProblem(type, key.length),
    generate: (random) => random(length),
    sign,
    verify: (key, plaintext, signature) => isSame(sign(key, plaintext), signature),
  };
};

const authenticate = (key: Uint8Array, plaintext: Uint8Array): Uint8Array =>
  createHmac("sha512", key).update(plaintext).digest().subarray(0, 32);

/** `crypto_auth` of NaCl. */
export const naclAuth: Signer = {
  problem: (key) => keyLengthProblem("nacl_auth", key.length),
  generate: (random) => random(32),
  sign: authenticate,
  verify: (key, plaintext, signature) => isSame(authenticate(key, plaintext), signature),
};
