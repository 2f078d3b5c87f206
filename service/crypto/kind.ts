// The interface of a kind of secret key.
import type { RandomBytes } from "../ids.ts";

/** A kind of key. */
export interface Kind {
  /** The reason why bytes are not such a key; undefined when they are one. */
  problem(key: Uint8Array): string | undefined;
  generate(random: RandomBytes): Uint8Array;
  /** The public key, for kinds that have one. */
  publicKey?(key: Uint8Array): Uint8Array;
}

/** A kind that signs. */
export interface Signer extends Kind {
  sign(key: Uint8Array, plaintext: Uint8Array): Uint8Array;
  verify(key: Uint8Array, plaintext: Uint8Array, signature: Uint8Array): boolean;
}

/** A kind that encrypts; the ciphertext begins with its nonce. */
export interface Cipher extends Kind {
  encrypt(key: Uint8Array, plaintext: Uint8Array, associated: Uint8Array, random: RandomBytes): Uint8Array;
  /** Undefined when it was not encrypted with this key and associated data. */
  decrypt(key: Uint8Array, ciphertext: Uint8Array, associated: Uint8Array): Uint8Array | undefined;
}
