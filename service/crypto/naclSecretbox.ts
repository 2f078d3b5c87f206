// NaCl's secret-key encryption: XSalsa20 and Poly1305 under a nonce of 24 bytes, which the ciphertext begins with.
import { xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import { createHmac } from "node:crypto";
import { keyLengthProblem } from "../../api/secretKeys.ts";
import type { Cipher } from "./kind.ts";

const nonceLength = 24;

/**
 * The key for some associated data. ASSUMED: associated data of a `nacl_secretbox`, for which NaCl has no place, is bound by a key of its own;
 * without any the key is used as it is, and the ciphertext is NaCl's.
 */
const keyFor = (key: Uint8Array, associated: Uint8Array): Uint8Array =>
  associated.length === 0 ? key : createHmac("sha256", key).update(associated).digest();

/** `crypto_secretbox` of NaCl. */
export const naclSecretbox: Cipher = {
  problem: (key) => keyLengthProblem("nacl_secretbox", key.length),
  generate: (random) => random(32),
  encrypt(key, plaintext, associated, random) {
    const nonce = random(nonceLength);
    return Buffer.concat([nonce, xsalsa20poly1305(keyFor(key, associated), nonce).encrypt(plaintext)]);
  },
  decrypt(key, ciphertext, associated) {
    if (ciphertext.length < nonceLength + 16) return undefined;
    try {
      const box = xsalsa20poly1305(keyFor(key, associated), ciphertext.subarray(0, nonceLength));
      return box.decrypt(ciphertext.subarray(nonceLength));
    } catch {
      return undefined; // the tag does not fit
    }
  },
};
