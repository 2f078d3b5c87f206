// ECDSA on P-256 with SHA-256, as ES256 of RFC 7518: the key is the private number, the signature r and s side by side.
import { createECDH, createPrivateKey, createPublicKey, sign, verify, type KeyObject } from "node:crypto";
import { keyLengthProblem } from "../../api/secretKeys.ts";
import type { Signer } from "./kind.ts";

const curve = "prime256v1";

/** The public point, uncompressed: 4, x, y. */
function pointOf(key: Uint8Array): Buffer {
  const ecdh = createECDH(curve);
  ecdh.setPrivateKey(key);
  return ecdh.getPublicKey();
}

const part = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url");

function jwk(key: Uint8Array): { kty: "EC"; crv: "P-256"; x: string; y: string; d: string } {
  const point = pointOf(key);
  return { kty: "EC", crv: "P-256", x: part(point.subarray(1, 33)), y: part(point.subarray(33)), d: part(key) };
}

const options = (key: KeyObject) => ({ key, dsaEncoding: "ieee-p1363" as const });

function isKey(key: Uint8Array): boolean {
  try {
    return pointOf(key).length === 65;
  } catch {
    return false; // zero, or not below the order of the curve
  }
}

/** ES256. */
export const es256: Signer = {
  problem: (key) => keyLengthProblem("es256", key.length) ?? (isKey(key) ? undefined : "it is no private key of P-256"),
  generate(random) {
    let key = random(32);
    while (!isKey(key)) key = random(32);
    return key;
  },
  publicKey: pointOf,
  sign: (key, plaintext) => sign("sha256", plaintext, options(createPrivateKey({ key: jwk(key), format: "jwk" }))),
  verify: (key, plaintext, signature) =>
    verify("sha256", plaintext, options(createPublicKey({ key: jwk(key), format: "jwk" })), signature),
};
