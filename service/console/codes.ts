// One-time codes that open the console in a browser. A command makes one without the service: it needs the key of the data folder,
// and a user who can read that file can read the first token as well.
import { timingSafeEqual } from "node:crypto";
import type { RandomBytes } from "../ids.ts";
import type { Vault } from "../store/vault.ts";

// ASSUMED: a code that opens the console is valid for five minutes: enough for a slow browser, too short for a terminal that is
// read later.
const lifetimeMs = 5 * 60_000;

/** Whether two texts are the same, in a time that does not depend on where they differ. */
export function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

const signatureOf = (vault: Vault, run: string, nonce: string, expiresAt: string): string =>
  vault.digest("console code", `${run}\0${nonce}\0${expiresAt}`);

/** A code for one run of the service, valid for five minutes. */
export function makeCode(vault: Vault, run: string, random: RandomBytes, now: number): string {
  const nonce = Buffer.from(random(16)).toString("base64url");
  const expiresAt = String(now + lifetimeMs);
  return [nonce, expiresAt, signatureOf(vault, run, nonce, expiresAt)].join(".");
}

/** Accepts the codes of one run of the service, each once. */
export class Codes {
  readonly #vault: Vault;
  readonly #run: string;
  /** Expiry of the used ones, by nonce. */
  readonly #used = new Map<string, number>();

  constructor(vault: Vault, run: string) {
    this.#vault = vault;
    this.#run = run;
  }

  /** Uses a code; false if it is wrong, used, expired, or was made for another run. */
  take(code: string, now: number): boolean {
    const [nonce = "", expiresAt = "", signature = ""] = code.split(".");
    if (!isSame(signature, signatureOf(this.#vault, this.#run, nonce, expiresAt))) return false;
    for (const [used, until] of this.#used) if (until <= now) this.#used.delete(used);
    if (this.#used.has(nonce) || Number(expiresAt) <= now) return false;
    this.#used.set(nonce, Number(expiresAt));
    return true;
  }
}
