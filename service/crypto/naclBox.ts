// NaCl's public-key encryption as a sealed box: anyone with the public key can encrypt, with a key pair per message; only
// the service can decrypt. X25519, then XSalsa20 and Poly1305; the nonce is a hash of both public keys, as in libsodium.
import { hsalsa, xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import { u32 } from "@noble/ciphers/utils.js";
import { blake2b } from "@noble/hashes/blake2.js";
import { createPrivateKey, createPublicKey, diffieHellman, type KeyObject } from "node:crypto";
import { keyLengthProblem } from "../../api/secretKeys.ts";
import type { Cipher } from "./kind.ts";

// The fixed beginnings of PKCS #8 and SPKI for X25519.
const privateHead = Buffer.from("302e020100300506032b656e04220420", "hex");
const publicHead = Buffer.from("302a300506032b656e032100", "hex");

const privateKey = (key: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.concat([privateHead, key]), format: "der", type: "pkcs8" });
const publicKey = (key: Uint8Array): KeyObject =>
  createPublicKey({ key: Buffer.concat([publicHead, key]), format: "der", type: "spki" });
const publicOf = (key: Uint8Array): Buffer =>
  createPublicKey(privateKey(key)).export({ format: "der", type: "spki" }).subarray(-32);

/** The shared key of two key pairs: `crypto_box_beforenm`. */
export function sharedKey(recipient: Uint8Array, other: Uint8Array): Uint8Array {
  const secret = diffieHellman({ privateKey: privateKey(recipient), publicKey: publicKey(other) });
  const out = new Uint32Array(8);
  hsalsa(u32(new TextEncoder().encode("expand 32-byte k")), u32(Uint8Array.from(secret)), new Uint32Array(4), out);
  return new Uint8Array(out.buffer);
}

/** ASSUMED: associated data of a `nacl_box` is bound by the nonce; without any the box is libsodium's sealed box. */
const nonceFor = (ephemeral: Uint8Array, recipient: Uint8Array, associated: Uint8Array): Uint8Array =>
  blake2b(Buffer.concat([ephemeral, recipient, associated]), { dkLen: 24 });

/** `crypto_box_seal` of libsodium. */
export const naclBox: Cipher = {
  problem: (key) => keyLengthProblem("nacl_box", key.length),
  generate: (random) => random(32),
  publicKey: publicOf,
  encrypt(key, plaintext, associated, random) {
    const once = random(32);
    const [ephemeral, recipient] = [publicOf(once), publicOf(key)];
    const box = xsalsa20poly1305(sharedKey(once, recipient), nonceFor(ephemeral, recipient, associated));
    return Buffer.concat([ephemeral, box.encrypt(plaintext)]);
  },
  decrypt(key, ciphertext, associated) {
    if (ciphertext.length < 48) return undefined;
    const ephemeral = ciphertext.subarray(0, 32);
    try {
      const box = xsalsa20poly1305(sharedKey(key, ephemeral), nonceFor(ephemeral, publicOf(key), associated));
      return box.decrypt(ciphertext.subarray(32));
    } catch {
      return undefined; // wrong tag, or a point of low order
    }
  },
};
