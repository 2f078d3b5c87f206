// NaCl's secret-key encryption: XSalsa20 and Poly1305 with a nonce of 24 bytes at the beginning of the ciphertext.
import { xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import { createHmac } from "node:crypto";
import { keyLengthProblem } from "../../api/secretKeys.ts";
import type { Cipher } from "./kind.ts";

const nonceLength = 24;

/**
 * The key for associated data. ASSUMED: associated data of a `nacl_secretbox`, which NaCl does not support, is bound by a derived key;
 * without any the key is used directly, and the ciphertext is compatible with NaCl.
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
      return undefined; // wrong tag
    }
  },
};
