// An issuer of identity tokens, as those of GitHub Actions and GitLab: OpenID Connect discovery, keys, and signed tokens.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWTPayload } from "jose";
import { afterThisTest } from "./leftovers.ts";

/** Gets what to do at the end. */
type AtEnd = (end: () => void) => void;

/** A running issuer. */
export interface Issuer {
  readonly url: string;
  /** Paths that were requested. */
  readonly asked: string[];
  /** What its description says beside the usual. */
  readonly described: Record<string, unknown>;
  /** Signs with the newest key. */
  readonly sign: (claims?: JWTPayload, header?: { readonly alg?: string; readonly kid?: string }) => Promise<string>;
  /** Replaces its key. */
  readonly rotate: () => Promise<void>;
}

/** The end of GitHub Actions that gives identity tokens to a workflow: its variables, and how often it was asked. */
export interface Actions {
  readonly env: Readonly<Record<string, string>>;
  /** The audiences that were requested. */
  readonly audiences: string[];
}

/** Starts it for a workflow with these claims. */
export async function startActions(issuer: Issuer, claims: JWTPayload, atEnd: AtEnd = afterThisTest): Promise<Actions> {
  const audiences: string[] = [];
  const server = createServer((request, response) => {
    const asked = new URL(request.url ?? "", "http://localhost").searchParams.get("audience") ?? "";
    if (request.headers.authorization !== "Bearer of-the-runner") return void response.writeHead(401).end();
    audiences.push(asked);
    void issuer.sign({ aud: asked, ...claims }).then((value) => response.end(JSON.stringify({ value })));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  atEnd(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token?api-version=2.0`;
  return {
    env: { ACTIONS_ID_TOKEN_REQUEST_URL: url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: "of-the-runner" },
    audiences,
  };
}

/**
 * Starts an issuer, which ends with the test. `now` is the time at which it issues tokens, in milliseconds since 1970, and `path` that of
 * its address.
 */
export async function startIssuer(now: () => number, atEnd: AtEnd = afterThisTest, path = ""): Promise<Issuer> {
  let [count, privateKey, keys] = [0, undefined as CryptoKey | undefined, [] as object[]];
  const asked: string[] = [];
  const described: Record<string, unknown> = {};
  const server = createServer(({ url: of = "" }, response) => {
    asked.push(of);
    const known: Readonly<Record<string, () => object>> = {
      [`${path}/.well-known/openid-configuration`]: () => ({ issuer: url, jwks_uri: `${url}/keys`, ...described }),
      [`${path}/keys`]: () => ({ keys }),
    };
    const body = known[of]?.();
    response.writeHead(body ? 200 : 404, { "content-type": "application/json" }).end(JSON.stringify(body ?? {}));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  atEnd(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
  const rotate = async (): Promise<void> => {
    const pair = await generateKeyPair("RS256");
    privateKey = pair.privateKey;
    keys = [{ ...(await exportJWK(pair.publicKey)), kid: `key-${++count}`, use: "sig", alg: "RS256" }];
  };
  await rotate();
  let issued = 0;
  return {
    ...{ url, asked, described, rotate },
    sign: (claims = {}, header = {}) => {
      if (!privateKey) throw new Error("the issuer has no key");
      const seconds = Math.floor(now() / 1000);
      const usual = { iss: url, iat: seconds, exp: seconds + 300, jti: `token-${++issued}` };
      return new SignJWT({ ...usual, ...claims })
        .setProtectedHeader({ alg: "RS256", kid: `key-${count}`, ...header })
        .sign(privateKey);
    },
  };
}
