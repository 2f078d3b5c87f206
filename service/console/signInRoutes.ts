// The routes by which a person signs in to the console with the provider of the operator: to the provider, and back from it.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { isSame } from "../crypto/isSame.ts";
import { SignInFailed, type Pending, type SignIn, type SignInProblem } from "../identity/person.ts";
import { refuse } from "../refusal.ts";
import { isByHttps } from "../requestAddress.ts";
import type { Clock } from "../time/clock.ts";
import type { Vault } from "../store/vault.ts";
import type { Sessions } from "./sessions.ts";

/** What the routes need. */
interface SignInRoutes {
  /** Undefined if the operator has configured none. */
  readonly signIn: SignIn | undefined;
  readonly sessions: Sessions;
  readonly vault: Vault;
  /** That of the computer. */
  readonly clock: Clock;
}

// ASSUMED: a person has ten minutes to sign in at the provider.
const pendingMs = 10 * 60_000;

const cookieName = (isSecure: boolean): string => `${isSecure ? "__Host-" : ""}machines_sign_in`;

/** The address that the browser sees. Its name was checked. */
const originOf = (request: FastifyRequest): string =>
  `${isByHttps(request) ? "https" : "http"}://${request.headers.host ?? "localhost"}`;

/** Adds the routes. */
export function addSignInRoutes(app: FastifyInstance, { signIn, sessions, vault, clock }: SignInRoutes): void {
  const open = { config: { open: true as const } };
  app.get("/console/provider", open, (_request, reply) =>
    reply.header("cache-control", "no-store").send({ name: signIn?.name ?? null }),
  );
  const configured = (): SignIn => {
    if (!signIn) throw refuse(404, "no provider is configured; start the service with --oidc-issuer");
    return signIn;
  };
  const signature = (pending: Omit<Kept, "signature">): string =>
    vault.digest("console sign-in", [pending.state, pending.nonce, pending.verifier, String(pending.until)].join("\0"));
  // The browser comes back from a page of another site, so the cookie is not strict. It opens nothing by itself.
  const setCookie = (reply: FastifyReply, value: string, seconds: number, isSecure: boolean): FastifyReply =>
    reply.header(
      "set-cookie",
      `${cookieName(isSecure)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`,
    );
  const toPage = (reply: FastifyReply, fragment: string): FastifyReply =>
    // A browser does not send what is behind `#` with a request, so no log has it.
    reply.header("cache-control", "no-store").header("referrer-policy", "no-referrer").redirect(`/#${fragment}`, 302);
  const failed = (
    request: FastifyRequest,
    reply: FastifyReply,
    problem: SignInProblem | "expired",
    error?: unknown,
  ) => {
    request.log.warn({ reason: error instanceof Error ? error.message : problem }, "a person could not sign in");
    return toPage(reply, `sign-in=${encodeURIComponent(problem)}`);
  };

  app.get("/console/sign-in", { config: { open: true, fromElsewhere: true } }, async (request, reply) => {
    try {
      const { url, pending } = await configured().begin(`${originOf(request)}/console/signed-in`);
      const until = clock.now() + pendingMs;
      const kept = { ...pending, until, signature: signature({ ...pending, until }) };
      const value = Buffer.from(JSON.stringify(kept)).toString("base64url");
      setCookie(reply, value, pendingMs / 1000, isByHttps(request));
      return await reply.header("cache-control", "no-store").redirect(url.href, 302);
    } catch (error) {
      if (error instanceof SignInFailed) return failed(request, reply, error.problem, error);
      throw error;
    }
  });

  app.get("/console/signed-in", { config: { open: true, fromElsewhere: true } }, async (request, reply) => {
    configured();
    const isSecure = isByHttps(request);
    const pending = keptIn(request.headers.cookie ?? "", cookieName(isSecure));
    setCookie(reply, "", 0, isSecure);
    const isOurs = pending && isSame(pending.signature, signature(pending)) && pending.until > clock.now();
    if (!isOurs) return failed(request, reply, "expired");
    try {
      const token = await configured().finish(new URL(request.url, originOf(request)), pending);
      return toPage(reply, `code=${sessions.codeFor(token)}`);
    } catch (error) {
      if (error instanceof SignInFailed) return failed(request, reply, error.problem, error);
      throw error;
    }
  });
}

/** What the cookie has. */
interface Kept extends Pending {
  /** Milliseconds since 1970. */
  readonly until: number;
  readonly signature: string;
}

/** What a browser has kept; undefined without it. */
function keptIn(cookies: string, name: string): Kept | undefined {
  const value = cookies
    .split(/; */)
    .find((one) => one.startsWith(`${name}=`))
    ?.slice(name.length + 1);
  try {
    const kept = JSON.parse(Buffer.from(value ?? "", "base64url").toString()) as Partial<Kept> | null;
    const { state, nonce, verifier, until, signature } = kept ?? {};
    if (typeof until !== "number") return undefined;
    const [a, b, c, d] = [state, nonce, verifier, signature].map((one) => (typeof one === "string" ? one : undefined));
    if (a === undefined || b === undefined || c === undefined || d === undefined) return undefined;
    return { state: a, nonce: b, verifier: c, until, signature: d };
  } catch {
    return undefined;
  }
}
