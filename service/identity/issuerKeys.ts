// The keys of issuers of identity tokens, by OpenID Connect discovery.
import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey } from "jose";
import { z } from "zod";

const patienceMs = 10_000;
/** Bytes of a description, and of keys. */
const mostBytes = 1_000_000;
/**
 * ASSUMED: the address of an issuer's keys is read again after an hour, the keys themselves after ten minutes, or when a new one is
 * named. If the issuer does not answer, the address that is known stays in use, and it is asked again after half a minute.
 */
const describedMs = 3600_000;
const retryMs = 30_000;

const description = z.object({ issuer: z.string(), jwks_uri: z.string() });

const isLoopback = (url: URL): boolean => ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);

/** Whether a URL may be that of an issuer: no one on the way may change its keys. */
export const isIssuerUrl = (text: string): boolean => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.search !== "" || url.hash !== "") return false;
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url));
};

/** The keys of an issuer cannot be read. */
export class IssuerUnavailable extends Error {}

/** Reads an answer without redirects, up to a size. */
async function read(url: string, init: RequestInit = {}): Promise<Response> {
  const answer = await fetch(url, { ...init, redirect: "error", signal: AbortSignal.timeout(patienceMs) });
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of answer.body ?? []) {
    bytes += (part as Uint8Array).length;
    if (bytes > mostBytes) throw new Error(`${url} has more than ${mostBytes} bytes`);
    parts.push(part as Uint8Array);
  }
  return new Response(Buffer.concat(parts), { status: answer.status, headers: answer.headers });
}

/** The keys of one issuer. */
class Issuer {
  readonly #url: string;
  readonly #elapsed: () => number;
  #keys: JWTVerifyGetKey | undefined;
  #readAgainAt = 0;
  #reading: Promise<void> | undefined;

  constructor(url: string, elapsed: () => number) {
    this.#url = url;
    this.#elapsed = elapsed;
  }

  async keys(): Promise<JWTVerifyGetKey> {
    if (!this.#keys || this.#elapsed() >= this.#readAgainAt)
      // All who wait share one request.
      await (this.#reading ??= this.#read().finally(() => (this.#reading = undefined)));
    if (!this.#keys) throw new IssuerUnavailable(`${this.#url} has no keys`);
    return this.#keys;
  }

  async #read(): Promise<void> {
    try {
      this.#keys = await this.#find();
      this.#readAgainAt = this.#elapsed() + describedMs;
    } catch (error) {
      if (!this.#keys) throw new IssuerUnavailable(error instanceof Error ? error.message : String(error));
      this.#readAgainAt = this.#elapsed() + retryMs;
    }
  }

  async #find(): Promise<JWTVerifyGetKey> {
    const url = `${this.#url.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const answer = await read(url, { headers: { accept: "application/json" } });
    if (!answer.ok) throw new Error(`${url} was answered with ${answer.status}`);
    const { issuer: named, jwks_uri } = description.parse(await answer.json());
    if (named !== this.#url) throw new Error(`${url} describes another issuer: ${JSON.stringify(named.slice(0, 200))}`);
    const [own, keys] = [new URL(this.#url), URL.canParse(jwks_uri) ? new URL(jwks_uri) : undefined];
    const isSafe = keys?.protocol === "https:" || (keys !== undefined && isLoopback(own) && isIssuerUrl(jwks_uri));
    if (!keys || !isSafe) throw new Error(`${url} has keys at an address without TLS`);
    return createRemoteJWKSet(keys, { timeoutDuration: patienceMs, [customFetch]: read });
  }
}

/** Finds and remembers keys. Only issuers that a trust names are asked. */
export class IssuerKeys {
  readonly #issuers = new Map<string, Issuer>();
  readonly #elapsed: () => number;

  constructor(elapsed: () => number) {
    this.#elapsed = elapsed;
  }

  /** Finds the key of a token of an issuer. Throws IssuerUnavailable. */
  async of(issuer: string): Promise<JWTVerifyGetKey> {
    let known = this.#issuers.get(issuer);
    if (!known) this.#issuers.set(issuer, (known = new Issuer(issuer, this.#elapsed)));
    return known.keys();
  }
}
