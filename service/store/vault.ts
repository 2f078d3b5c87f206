// Encrypts secrets at rest: values are sealed with a key in a separate file next to the data, so that a copy of the database
// alone reveals nothing.
import { createHmac } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { nonceLength, openSealed, sealed } from "../crypto/sealed.ts";
import type { RandomBytes } from "../ids.ts";
import { StoreError } from "./database.ts";
import { keyBytes, keyText, readKey } from "./keyFile.ts";
import { keepPrivate, writePrivately } from "./privateFile.ts";

/** Path of the key. */
export const keyFile = (folder: string): string => join(folder, "key");

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
    return sealed(this.#key, name, value, this.#random(nonceLength));
  }

  /** Opens a value that was sealed under that name. Throws when its key was another one. */
  open(name: string, bytes: Uint8Array): Buffer {
    return openSealed(this.#key, name, bytes);
  }

  /** A digest that changes with the value. It is keyed, so that even a short value cannot be guessed from it. */
  digest(name: string, value: string | Uint8Array): string {
    return createHmac("sha256", this.#key).update(`${name}\0`).update(value).digest("hex").slice(0, 32);
  }
}

/** The vault of a data folder; its key is generated at the first start. Without a folder the key exists only in memory. */
export function openVault(folder: string | undefined, random: RandomBytes, sealedBefore: boolean): Vault {
  if (folder === undefined) return new Vault(() => random(keyBytes), random);
  const file = keyFile(folder);
  if (existsSync(file)) {
    keepPrivate(file);
    const key = readKey(file);
    if (key === undefined) throw new StoreError(`${file} is damaged. Restore a backup.`);
    return new Vault(() => key, random);
  }
  if (sealedBefore)
    throw new StoreError(
      `${file} is missing, and without it the secrets in ${folder} cannot be read. Restore a backup.`,
    );
  const key = random(keyBytes);
  writePrivately(file, keyText(key));
  return new Vault(() => key, random);
}
