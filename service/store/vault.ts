// Secrets at rest: values are sealed with a key that lies in a file of its own beside the data, so that a copy of the
// database alone gives nothing away.
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RandomBytes } from "../ids.ts";
import { StoreError } from "./database.ts";
import { keepPrivate, writePrivately } from "./privateFile.ts";

/** Path of the key. */
export const keyFile = (folder: string): string => join(folder, "key");

const algorithm = "aes-256-gcm";
const nonceLength = 12;
const tagLength = 16;

/** Bytes by which a sealed value is longer than the value. */
export const sealedMore = nonceLength + tagLength;

/** Seals and opens values. */
export class Vault {
  readonly #draw: () => Uint8Array;
  #drawn: Uint8Array | undefined;
  readonly #random: RandomBytes;

  /** The key is asked for once, when it is first needed. */
  constructor(key: () => Uint8Array, random: RandomBytes) {
    this.#draw = key;
    this.#random = random;
  }

  get #key(): Uint8Array {
    return (this.#drawn ??= this.#draw());
  }

  /** Seals a value; it opens only under the same name. */
  seal(name: string, value: string | Uint8Array): Uint8Array {
    const nonce = this.#random(nonceLength);
    const cipher = createCipheriv(algorithm, this.#key, nonce).setAAD(Buffer.from(name));
    const sealed = Buffer.concat([cipher.update(value), cipher.final()]);
    return Buffer.concat([nonce, sealed, cipher.getAuthTag()]);
  }

  /** Opens what was sealed under that name. Throws when it was sealed with another key. */
  open(name: string, sealed: Uint8Array): Buffer {
    const nonce = sealed.subarray(0, nonceLength);
    const opener = createDecipheriv(algorithm, this.#key, nonce).setAAD(Buffer.from(name));
    opener.setAuthTag(sealed.subarray(sealed.length - tagLength));
    return Buffer.concat([opener.update(sealed.subarray(nonceLength, sealed.length - tagLength)), opener.final()]);
  }

  /** A digest that changes with the value and that nobody can look a value up by, not even a short one. */
  digest(name: string, value: string | Uint8Array): string {
    return createHmac("sha256", this.#key).update(`${name}\0`).update(value).digest("hex").slice(0, 32);
  }
}

/** The vault of a data folder; its key is drawn at the first start. Without a folder the key is nowhere but here. */
export function openVault(folder: string | undefined, random: RandomBytes, sealedBefore: boolean): Vault {
  if (folder === undefined) return new Vault(() => random(32), random);
  const file = keyFile(folder);
  if (existsSync(file)) {
    keepPrivate(file);
    const key = Buffer.from(readFileSync(file, "utf8").trim(), "base64");
    if (key.length !== 32) throw new StoreError(`${file} is damaged. Put a backup in its place.`);
    return new Vault(() => key, random);
  }
  if (sealedBefore)
    throw new StoreError(
      `${file} is missing, and without it the secrets in ${folder} cannot be read. Put a backup in its place.`,
    );
  const key = random(32);
  writePrivately(file, `${Buffer.from(key).toString("base64")}\n`);
  return new Vault(() => key, random);
}
