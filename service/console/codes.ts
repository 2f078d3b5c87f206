// One-time codes that open the console in a browser. A command makes one without the service: it needs the key of the data folder,
// and a user who can read that file can read the first token as well.
import { isSame } from "../crypto/isSame.ts";
import type { RandomBytes } from "../ids.ts";
import type { Vault } from "../store/vault.ts";

// ASSUMED: a code that opens the console is valid for five minutes: enough for a slow browser, too short for a terminal that is
// read later.
const lifetimeMs = 5 * 60_000;

/** Only who can read the data folder can make a code. */
const mostUsed = 1000;

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
  /** Nonces of the used ones. The clock can be set, so their age does not tell which ones are worthless. */
  readonly #used = new Set<string>();

  constructor(vault: Vault, run: string) {
    this.#vault = vault;
    this.#run = run;
  }

  /** Uses a code; false if it is wrong, used, expired, or was made for another run. */
  take(code: string, now: number): boolean {
    const [nonce = "", expiresAt = "", signature = ""] = code.split(".");
    if (!isSame(signature, signatureOf(this.#vault, this.#run, nonce, expiresAt))) return false;
    if (this.#used.has(nonce) || Number(expiresAt) <= now) return false;
    const [oldest] = this.#used;
    if (this.#used.size >= mostUsed && oldest !== undefined) this.#used.delete(oldest);
    this.#used.add(nonce);
    return true;
  }
}
