// What members and commands of one service sign with the key that they share.
import { createHmac, hkdfSync } from "node:crypto";
import { isSame } from "../crypto/isSame.ts";

/** Signs for other members. */
export class MemberKey {
  readonly #key: Uint8Array;

  /** `key` is the key of the data. */
  constructor(key: Uint8Array) {
    this.#key = Buffer.from(hkdfSync("sha256", key, "", "machines members", 32));
  }

  /** The signature of a text or of bytes, for a purpose. */
  sign(purpose: string, signed: string | Uint8Array): string {
    return createHmac("sha256", this.#key).update(`${purpose}\0`).update(signed).digest("hex");
  }

  isValid(purpose: string, signed: string | Uint8Array, signature: string): boolean {
    return isSame(signature, this.sign(purpose, signed));
  }
}
