// Signs people in with an OpenID Connect provider: the authorization code flow with PKCE (docs/service.md#people). Who may sign in, and
// with which role, is decided by their groups.
import { readFileSync } from "node:fs";
import * as client from "openid-client";
import type { Context } from "../context.ts";
import { reasonOf } from "../reasonOf.ts";
import { hasRole } from "../store/roles.ts";
import { addToken } from "../store/tokens.ts";
import { peopleOf, type People } from "../store/trusts.ts";
import { SignInFailed, type Pending, type SignIn, type SignInFactory } from "./person.ts";

/** The provider, as the operator configures it. */
export interface SignInOptions {
  /** URL of the issuer. */
  readonly issuer: string;
  /** Id of this service at the provider. */
  readonly clientId: string;
  /** File with the client's secret; undefined for a public client. */
  readonly secretFile?: string | undefined;
  /** The claim that lists a person's groups. */
  readonly groupsClaim: string;
  /** What is requested of the provider, such as `openid profile email`. */
  readonly scope: string;
}

/** Requests to the provider end after so many seconds. */
const timeoutSeconds = 10;
/** ASSUMED: a person who signed in has to do so again after 12 hours, a working day. */
const signedInMs = 12 * 3600_000;
const longestName = 200;
/** Claims that name a person, the best first. */
const naming = ["email", "preferred_username", "name", "sub"];

/** Signs people in with a provider. */
export const openIdSignIn =
  (options: SignInOptions): SignInFactory =>
  (context) =>
    new OpenIdSignIn(options, context);

class OpenIdSignIn implements SignIn {
  readonly #options: SignInOptions;
  readonly #context: Context;
  #configuration: Promise<client.Configuration> | undefined;

  constructor(options: SignInOptions, context: Context) {
    this.#options = options;
    this.#context = context;
  }

  get name(): string {
    return new URL(this.#options.issuer).hostname;
  }

  async begin(redirectUri: string): Promise<{ readonly url: URL; readonly pending: Pending }> {
    const configuration = await this.#configured();
    const verifier = client.randomPKCECodeVerifier();
    const pending = { state: client.randomState(), nonce: client.randomNonce(), verifier };
    const url = client.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: this.#options.scope,
      state: pending.state,
      nonce: pending.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    });
    return { url, pending };
  }

  async finish(address: URL, { state, nonce, verifier }: Pending): Promise<string> {
    const configuration = await this.#configured();
    const claims = await client
      .authorizationCodeGrant(configuration, address, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      })
      .then(async (answer) => {
        const own: Readonly<Record<string, unknown>> & { readonly sub: string } = answer.claims() ?? { sub: "" };
        // Some providers give the groups only there.
        if (
          own[this.#options.groupsClaim] !== undefined ||
          configuration.serverMetadata().userinfo_endpoint === undefined
        )
          return own;
        return { ...own, ...(await client.fetchUserInfo(configuration, answer.access_token, own.sub)) };
      })
      .catch((error: unknown) => {
        throw failureOf(error);
      });
    return this.#signIn(claims);
  }

  async #signIn(claims: Readonly<Record<string, unknown>>): Promise<string> {
    const { store, clock, ids } = this.#context;
    return store.write(() => {
      const groups = [claims[this.#options.groupsClaim] ?? []].flat().filter((one) => typeof one === "string");
      const people = peopleFor(peopleOf(store), new Set(groups));
      const name = nameOf(claims);
      if (!people)
        throw new SignInFailed(
          "no group",
          `${name} is in no group that may sign in; the groups are ${JSON.stringify(groups)}`,
        );
      const { id, slug, role, apps, network } = people;
      const now = clock.now();
      store.run("DELETE FROM tokens WHERE trust IS NOT NULL AND expires_at < ?", now);
      const grant = { slug, role, apps, network, name, trust: id, expiresAt: now + signedInMs };
      const token = addToken(store, ids.accessToken(), grant, now);
      store.run("UPDATE trusts SET used_at = ? WHERE id = ?", now, id);
      return token;
    });
  }

  /** What the provider says about itself, read once it is needed. A failure is not remembered. */
  #configured(): Promise<client.Configuration> {
    const { issuer, clientId, secretFile } = this.#options;
    this.#configuration ??= (async () => {
      const secret = secretFile === undefined ? undefined : readFileSync(secretFile, "utf8").trim();
      const authentication = secret === undefined ? client.None() : undefined;
      // Only this computer can be the provider without TLS.
      const execute = issuer.startsWith("http:") ? [client.allowInsecureRequests] : [];
      return client.discovery(new URL(issuer), clientId, secret, authentication, { execute, timeout: timeoutSeconds });
    })().catch((error: unknown) => {
      this.#configuration = undefined;
      throw new SignInFailed("unreachable", `${issuer} cannot be read: ${reasonOf(error)}`, error);
    });
    return this.#configuration;
  }
}

function failureOf(error: unknown): SignInFailed {
  if (error instanceof SignInFailed) return error;
  const isOfNetwork = error instanceof TypeError || (error instanceof Error && error.name === "TimeoutError");
  return new SignInFailed(isOfNetwork ? "unreachable" : "refused", reasonOf(error), error);
}

const isName = (value: unknown): value is string => typeof value === "string" && value.trim() !== "";

/** A person's name, in one line. */
function nameOf(claims: Readonly<Record<string, unknown>>): string {
  const found = naming.map((claim) => claims[claim]).find(isName) ?? "a person without a name";
  return found.slice(0, longestName).replaceAll(/[\p{Cc}\p{Cf}]/gu, " ");
}

/** ASSUMED: of several groups of a person, the one with the highest role counts, then the oldest. */
function peopleFor(all: readonly People[], groups: ReadonlySet<string>): People | undefined {
  const own = all.filter(({ group }) => group === undefined || groups.has(group));
  return own.reduce<People | undefined>(
    (best, one) => (!best || (hasRole(one.role, best.role) && one.role !== best.role) ? one : best),
    undefined,
  );
}
