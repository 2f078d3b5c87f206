// What every kind of secret key answers.
import type { RandomBytes } from "../ids.ts";

/** What a key of a kind is. */
export interface Kind {
  /** What keeps bytes from being such a key; undefined when nothing does. */
  problem(key: Uint8Array): string | undefined;
  generate(random: RandomBytes): Uint8Array;
  /** The half that may be shown, of kinds that have one. */
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
