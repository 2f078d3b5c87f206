// XAES-256-GCM as c2sp.org/XAES-256-GCM defines it: AES-256-GCM under a key derived from the first half of a nonce of 24
// bytes, so that random nonces never run out.
import { createCipheriv, createDecipheriv } from "node:crypto";
import { keyLengthProblem } from "../../api/secretKeys.ts";
import type { Cipher } from "./kind.ts";

const nonceLength = 24;
const tagLength = 16;

function block(key: Uint8Array, input: Uint8Array): Buffer {
  const cipher = createCipheriv("aes-256-ecb", key, null).setAutoPadding(false);
  return Buffer.concat([cipher.update(input), cipher.final()]);
}

/** Doubles a block in the field of CMAC: one bit to the left, and 0x87 when a bit falls out. */
function double(input: Uint8Array): Buffer {
  const out = Buffer.alloc(16);
  for (let i = 0; i < 16; i++) out[i] = ((input[i] ?? 0) << 1) | ((input[i + 1] ?? 0) >> 7);
  if ((input[0] ?? 0) & 0x80) out[15] = (out[15] ?? 0) ^ 0x87;
  return out;
}

const xor = (a: Uint8Array, b: Uint8Array): Uint8Array => a.map((byte, i) => byte ^ (b[i] ?? 0));

/** The key for a nonce's first half: two blocks of a counter-mode KDF over CMAC (NIST SP 800-108). */
function derive(key: Uint8Array, half: Uint8Array): Uint8Array {
  const mask = double(block(key, Buffer.alloc(16)));
  const part = (count: number): Buffer =>
    block(key, xor(Buffer.concat([Buffer.from([0, count, 0x58, 0]), half]), mask));
  return Buffer.concat([part(1), part(2)]);
}

/** Encrypts under a given nonce. */
export function sealXaes(key: Uint8Array, nonce: Uint8Array, plaintext: Uint8Array, associated: Uint8Array): Buffer {
  const cipher = createCipheriv("aes-256-gcm", derive(key, nonce.subarray(0, 12)), nonce.subarray(12));
  cipher.setAAD(associated);
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

/** XAES-256-GCM; the ciphertext begins with its nonce. */
export const xaes256gcm: Cipher = {
  problem: (key) => keyLengthProblem("xaes256gcm", key.length),
  generate: (random) => random(32),
  encrypt(key, plaintext, associated, random) {
    const nonce = random(nonceLength);
    return Buffer.concat([nonce, sealXaes(key, nonce, plaintext, associated)]);
  },
  decrypt(key, ciphertext, associated) {
    if (ciphertext.length < nonceLength + tagLength) return undefined;
    const nonce = ciphertext.subarray(0, nonceLength);
    const opener = createDecipheriv("aes-256-gcm", derive(key, nonce.subarray(0, 12)), nonce.subarray(12));
    opener.setAAD(associated).setAuthTag(ciphertext.subarray(-tagLength));
    try {
      return Buffer.concat([opener.update(ciphertext.subarray(nonceLength, -tagLength)), opener.final()]);
    } catch {
      return undefined; // wrong tag
    }
  },
};
