// Exchanges the identity token of a workflow for a token of the service (docs/service.md#workflows-without-a-stored-secret).
import { hash } from "node:crypto";
import { decodeJwt, errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from "jose";
import type { Context } from "../context.ts";
import { refuse } from "../refusal.ts";
import { rfc3339 } from "../time/clock.ts";
import { hasRole } from "../store/roles.ts";
import { addToken } from "../store/tokens.ts";
import { trustsOf, type Claims, type Trust } from "../store/trusts.ts";
import { IssuerUnavailable, type IssuerKeys } from "./issuerKeys.ts";

/** How long a token that was given for an identity token is valid, in milliseconds. */
export const exchangedMs = 15 * 60_000;
/** The clocks of the issuer and of this computer may differ by so many seconds. */
const toleranceSeconds = 60;
/** ASSUMED: an identity token that was issued more than a day ago is refused, whatever it says. */
const oldest = "1 day";
const algorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
const longestName = 200;

/** The answer to an identity token. */
export interface Exchanged {
  readonly token: string;
  readonly token_id: string;
  readonly organization: string;
  readonly role: string;
  readonly expires_at: string;
}

const short = (text: string): string => JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);

/** The issuer that a token names, before anything of it is proved. */
function issuerIn(token: string): string {
  try {
    const { iss } = decodeJwt(token);
    if (iss !== undefined) return iss;
  } catch {
    // It is no token.
  }
  throw refuse(401, "the identity token is not one: it must be a JWT with the claim iss");
}

/** Claims whose values name a workflow, for messages. */
const telling = ["sub", "aud", "repository", "project_path", "ref", "environment"];

/** The values of a token that tell where it comes from. They are its sender's own. */
const described = (payload: JWTPayload): string =>
  telling
    .flatMap((name) => {
      const value = payload[name];
      return value === undefined
        ? []
        : [`${name} ${typeof value === "string" ? short(value) : short(JSON.stringify(value))}`];
    })
    .join(", ");

const hasClaims = (payload: JWTPayload, claims: Claims): boolean =>
  Object.entries(claims).every(([name, value]) => {
    const own = Object.hasOwn(payload, name) ? payload[name] : undefined;
    return (typeof own === "string" || typeof own === "number" || typeof own === "boolean") && String(own) === value;
  });

const names = (payload: JWTPayload, audience: string): boolean => [payload.aud ?? []].flat().includes(audience);

/**
 * The trust that accepts a token. ASSUMED: of several trusts that accept a token, the one that asks for the most claims decides, then the one with the higher role, then the
 * oldest.
 */
function trustFor(payload: JWTPayload, trusts: readonly Trust[]): Trust | undefined {
  const accepting = trusts.filter(({ audience, claims }) => names(payload, audience) && hasClaims(payload, claims));
  const count = ({ claims }: Trust): number => Object.keys(claims).length;
  return accepting.reduce<Trust | undefined>((best, one) => {
    if (!best || count(one) > count(best)) return one;
    return count(one) === count(best) && hasRole(one.role, best.role) && one.role !== best.role ? one : best;
  }, undefined);
}

/** The name of a token in lists and records: the workflow, and who started it. */
function nameOf({ sub, ...claims }: JWTPayload, trust: Trust): string {
  const person = ["actor", "user_login", "https://pulumi.com/actor"]
    .map((name) => claims[name])
    .find((one) => typeof one === "string");
  const by = person === undefined ? "" : ` by ${person.slice(0, 80)}`;
  const name = `${(sub ?? trust.name).slice(0, longestName - by.length)}${by}`;
  return name.replaceAll(/[\p{Cc}\p{Cf}]/gu, " ");
}

/** The refusal of a token. Nothing in it is of others. */
function refusalOf(error: unknown, issuer: string): unknown {
  if (error instanceof IssuerUnavailable) return refuse(503, `the keys of ${issuer} cannot be read; try again`);
  if (error instanceof errors.JWTExpired) return refuse(401, "the identity token has expired");
  if (error instanceof errors.JWTClaimValidationFailed)
    return refuse(401, `the identity token is not valid: ${error.message}`);
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWSSignatureVerificationFailed)
    return refuse(401, `the identity token was not signed by ${issuer}`);
  if (error instanceof errors.JOSEError) return refuse(401, "the identity token is not valid");
  return error;
}

/** Finds the key of a token. If that is not known to be missing, the issuer cannot be asked. */
const keyOf =
  (find: JWTVerifyGetKey): JWTVerifyGetKey =>
  async (...of) => {
    try {
      return await find(...of);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) throw error;
      throw new IssuerUnavailable(error instanceof Error ? error.message : String(error));
    }
  };

async function verified(token: string, issuer: string, trusts: readonly Trust[], options: ExchangeOptions) {
  try {
    const { payload } = await jwtVerify(token, keyOf(await options.keys.of(issuer)), {
      ...{ issuer, algorithms, clockTolerance: toleranceSeconds, maxTokenAge: oldest },
      audience: [...new Set(trusts.map(({ audience }) => audience))],
      requiredClaims: ["exp", "iat", "sub"],
      currentDate: new Date(options.context.clock.now()),
    });
    return payload;
  } catch (error) {
    if (error instanceof IssuerUnavailable)
      options.context.log.warn({ err: error, issuer }, "the keys of an issuer cannot be read");
    throw refusalOf(error, issuer);
  }
}

/** Dependencies of the exchange. */
export interface ExchangeOptions {
  readonly context: Context;
  readonly keys: IssuerKeys;
}

/** Exchanges an identity token. Refuses one that no trust accepts, and one that was exchanged before. */
export async function exchange(identity: string, options: ExchangeOptions): Promise<Exchanged> {
  const { store, clock, ids } = options.context;
  const issuer = issuerIn(identity);
  const trusts = trustsOf(store, issuer);
  // The keys of others are never read.
  if (trusts.length === 0) throw refuse(401, `no trust accepts identity tokens of ${short(issuer)}`);
  const payload = await verified(identity, issuer, trusts, options);
  return store.write(() => {
    // One may have been removed meanwhile.
    const trust = trustFor(payload, trustsOf(store, issuer));
    if (!trust) throw refuse(401, `no trust accepts this identity token: ${described(payload)}`);
    const now = clock.now();
    // Some signatures can be written in several ways, so the token without a name is known by what is signed.
    const own = payload.jti === undefined ? identity.split(".").slice(0, 2) : [issuer, payload.jti];
    const used = hash("sha256", JSON.stringify(own));
    // A day later, in case a clock was ahead.
    store.run("DELETE FROM exchanged WHERE expires_at < ?", now - 86_400_000);
    store.run("DELETE FROM tokens WHERE trust IS NOT NULL AND expires_at < ?", now);
    if (!trust.isReusable) {
      if (store.get("SELECT 1 FROM exchanged WHERE hash = ?", used))
        throw refuse(401, "this identity token was exchanged before; ask for another one");
      const until = ((payload.exp ?? 0) + 2 * toleranceSeconds) * 1000;
      store.insert("exchanged", { hash: used, expires_at: until });
    }
    const token = ids.accessToken();
    const { slug, role, apps, network } = trust;
    const expiresAt = now + exchangedMs;
    const grant = { slug, role, apps, network, name: nameOf(payload, trust), trust: trust.id, expiresAt };
    const token_id = addToken(store, token, grant, now);
    store.run("UPDATE trusts SET used_at = ? WHERE id = ?", now, trust.id);
    return { token, token_id, organization: slug, role, expires_at: rfc3339(expiresAt) };
  });
}
