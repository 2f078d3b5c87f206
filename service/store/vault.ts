// Encrypts secrets at rest: values are sealed with a key in a separate file next to the data, so that a copy of the database
// alone reveals nothing.
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

/** Number of bytes that sealing adds to a value. */
export const sealedMore = nonceLength + tagLength;

/** Seals and opens values. */
export class Vault {
  readonly #draw: () => Uint8Array;
  #drawn: Uint8Array | undefined;
  readonly #random: RandomBytes;

  /** The key is loaded when it is first needed. */
  constructor(key: () => Uint8Array, random: RandomBytes) {
    this.#draw = key;
    this.#random = random;
  }

  get #key(): Uint8Array {
    return (this.#drawn ??= this.#draw());
  }

  /** Seals a value; opening it needs the same name. */
  seal(name: string, value: string | Uint8Array): Uint8Array {
    const nonce = this.#random(nonceLength);
    const cipher = createCipheriv(algorithm, this.#key, nonce).setAAD(Buffer.from(name));
    const sealed = Buffer.concat([cipher.update(value), cipher.final()]);
    return Buffer.concat([nonce, sealed, cipher.getAuthTag()]);
  }

  /** Opens a value that was sealed under that name. Throws when its key was another one. */
  open(name: string, sealed: Uint8Array): Buffer {
    const nonce = sealed.subarray(0, nonceLength);
    const opener = createDecipheriv(algorithm, this.#key, nonce).setAAD(Buffer.from(name));
    opener.setAuthTag(sealed.subarray(sealed.length - tagLength));
    return Buffer.concat([opener.update(sealed.subarray(nonceLength, sealed.length - tagLength)), opener.final()]);
  }

  /** A digest that changes with the value. It is keyed, so that even a short value cannot be guessed from it. */
  digest(name: string, value: string | Uint8Array): string {
    return createHmac("sha256", this.#key).update(`${name}\0`).update(value).digest("hex").slice(0, 32);
  }
}

/** The vault of a data folder; its key is generated at the first start. Without a folder the key exists only in memory. */
export function openVault(folder: string | undefined, random: RandomBytes, sealedBefore: boolean): Vault {
  if (folder === undefined) return new Vault(() => random(32), random);
  const file = keyFile(folder);
  if (existsSync(file)) {
    keepPrivate(file);
    const key = Buffer.from(readFileSync(file, "utf8").trim(), "base64");
    if (key.length !== 32) throw new StoreError(`${file} is damaged. Restore a backup.`);
    return new Vault(() => key, random);
  }
  if (sealedBefore)
    throw new StoreError(
      `${file} is missing, and without it the secrets in ${folder} cannot be read. Restore a backup.`,
    );
  const key = random(32);
  writePrivately(file, `${Buffer.from(key).toString("base64")}\n`);
  return new Vault(() => key, random);
}
