// What the console needs of a provider at which people sign in. The library for it is loaded only with a provider.
import type { Context } from "../context.ts";

/** Why a sign-in failed, for the page. */
export type SignInProblem = "unreachable" | "refused" | "no group";

/** A sign-in that failed. */
export class SignInFailed extends Error {
  readonly problem: SignInProblem;

  constructor(problem: SignInProblem, message: string, cause?: unknown) {
    super(message, { cause });
    this.problem = problem;
  }
}

/** What the browser keeps until it comes back. */
export interface Pending {
  readonly state: string;
  readonly nonce: string;
  /** The proof that the same browser comes back (PKCE). */
  readonly verifier: string;
}

/** Signs people in. */
export interface SignIn {
  /** The provider's name for a button. */
  readonly name: string;
  /** Where a browser signs in, and what it keeps until it comes back to `redirectUri`. */
  begin(redirectUri: string): Promise<{ readonly url: URL; readonly pending: Pending }>;
  /**
   * Takes the answer of the provider, which is in the address that the browser came back to. Returns the id of a token for the session of
   * the person. The token itself is never sent.
   * @throws SignInFailed
   */
  finish(address: URL, pending: Pending): Promise<string>;
}

/** Creates it for a service. */
export type SignInFactory = (context: Context) => SignIn;
