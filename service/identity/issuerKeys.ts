// The keys of issuers of identity tokens, by OpenID Connect discovery.
import { createRemoteJWKSet, type JWTVerifyGetKey } from "jose";
import { z } from "zod";

const patienceMs = 10_000;
/** Characters of a description. */
const mostText = 100_000;
/** ASSUMED: where an issuer has its keys is read again after an hour; the keys themselves after ten minutes, or when one is new. */
const describedMs = 3600_000;

const description = z.object({ issuer: z.string(), jwks_uri: z.string() });

interface Known {
  readonly keys: JWTVerifyGetKey;
  readonly at: number;
}

/** Whether a URL may be that of an issuer: nobody on the way may change its keys. */
export const isIssuerUrl = (text: string): boolean => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isOwn = url !== undefined && ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  return (
    url !== undefined &&
    url.search === "" &&
    url.hash === "" &&
    (url.protocol === "https:" || (isOwn && url.protocol === "http:"))
  );
};

/** Why the keys of an issuer cannot be read. */
export class IssuerUnavailable extends Error {}

/** Finds and remembers keys. Only issuers that a trust names are asked. */
export class IssuerKeys {
  readonly #known = new Map<string, Promise<Known>>();
  readonly #elapsed: () => number;

  constructor(elapsed: () => number) {
    this.#elapsed = elapsed;
  }

  /** What finds the key of a token of an issuer. Throws IssuerUnavailable. */
  async of(issuer: string): Promise<JWTVerifyGetKey> {
    const known = await this.#known.get(issuer)?.catch(() => undefined);
    if (known && this.#elapsed() - known.at < describedMs) return known.keys;
    const read = this.#read(issuer);
    this.#known.set(issuer, read);
    try {
      return (await read).keys;
    } catch (error) {
      this.#known.delete(issuer);
      // The keys that are known stay valid while the issuer does not answer.
      if (known) return known.keys;
      throw new IssuerUnavailable(error instanceof Error ? error.message : String(error));
    }
  }

  async #read(issuer: string): Promise<Known> {
    const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const answer = await fetch(url, {
      headers: { accept: "application/json" },
      redirect: "error",
      signal: AbortSignal.timeout(patienceMs),
    });
    if (!answer.ok) throw new Error(`${url} was answered with ${answer.status}`);
    const text = await answer.text();
    if (text.length > mostText) throw new Error(`${url} has more than ${mostText} characters`);
    const { issuer: named, jwks_uri } = description.parse(JSON.parse(text));
    if (named !== issuer) throw new Error(`${url} describes another issuer: ${JSON.stringify(named.slice(0, 200))}`);
    if (!isIssuerUrl(jwks_uri)) throw new Error(`${url} has keys at an address without TLS`);
    return { keys: createRemoteJWKSet(new URL(jwks_uri), { timeoutDuration: patienceMs }), at: this.#elapsed() };
  }
}
