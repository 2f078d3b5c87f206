// Authenticated encryption (AES-256-GCM): what the store and the log keep is sealed under a name, and opens only under it.
import { createCipheriv, createDecipheriv } from "node:crypto";

const algorithm = "aes-256-gcm";
const tagLength = 16;

/** Number of random bytes that sealing needs. */
export const nonceLength = 12;

/** Number of bytes that sealing adds to a value. */
export const sealedMore = nonceLength + tagLength;

/** The nonce, the encrypted value and its tag. */
export function sealed(key: Uint8Array, name: string, value: string | Uint8Array, nonce: Uint8Array): Buffer {
  const cipher = createCipheriv(algorithm, key, nonce).setAAD(Buffer.from(name));
  return Buffer.concat([nonce, cipher.update(value), cipher.final(), cipher.getAuthTag()]);
}

/** The value that was sealed under that name. Throws when its key was another one. */
export function openSealed(key: Uint8Array, name: string, bytes: Uint8Array): Buffer {
  const opener = createDecipheriv(algorithm, key, bytes.subarray(0, nonceLength)).setAAD(Buffer.from(name));
  opener.setAuthTag(bytes.subarray(bytes.length - tagLength));
  return Buffer.concat([opener.update(bytes.subarray(nonceLength, bytes.length - tagLength)), opener.final()]);
}
