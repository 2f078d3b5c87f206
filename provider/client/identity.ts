// Signs a run of CI in with the identity token of its workflow, which the service exchanges for a token of 15 minutes
// (docs/service.md#workflows-without-a-stored-secret). Nothing is stored.
import type { Clock } from "./clock.ts";
import { MachinesError } from "./errors.ts";
import type { Sent, Transport } from "./transport.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** What runs the workflow: GitHub Actions, or one that puts the token into a variable, such as GitLab. */
export type IdentitySource = "github" | "variable";

/** Name of the variable with an identity token. */
export const identityVariable = "MACHINES_ID_TOKEN";

/** Where an identity token can be had; undefined outside of CI, or if the workflow may not have one. */
export const identityIn = (env: Env): IdentitySource | undefined =>
  env["ACTIONS_ID_TOKEN_REQUEST_URL"] && env["ACTIONS_ID_TOKEN_REQUEST_TOKEN"]
    ? "github"
    : env[identityVariable]
      ? "variable"
      : undefined;

/** What exchanges identity tokens. */
export interface IdentityOptions {
  readonly endpoint: string;
  readonly source: IdentitySource;
  readonly env: Env;
  readonly clock: Pick<Clock, "now" | "sleep">;
  readonly transport: Transport;
}

/** Another token is requested after that many milliseconds. */
const renewedMs = 10 * 60_000;
/** If that fails, the token before is used for so long: it ends a minute later. */
const usedMs = 14 * 60_000;
const patienceMs = 30_000;
const pauses = [1000, 3000, 9000] as const;

const failed = (message: string, cause?: unknown): MachinesError =>
  new MachinesError("configuration", message, cause === undefined ? {} : { cause });

/** A temporary failure. */
class TemporaryFailure extends Error {}

interface Answered {
  readonly status: number;
  /** Undefined if it is no JSON. */
  readonly body: unknown;
}

/** Sends a request as the client sends its own, so that it takes the same proxies, and follows no redirect. */
async function answerOf(
  transport: Transport,
  sent: Pick<Sent, "method" | "url" | "headers" | "body">,
): Promise<Answered> {
  const outcome = await transport({ ...sent, timeout: patienceMs, held: false, signal: undefined });
  if (outcome.kind !== "answer") {
    const { message } = outcome.cause;
    throw outcome.lasting
      ? failed(`${new URL(sent.url).origin} cannot be asked: ${message}`)
      : new TemporaryFailure(message);
  }
  const { status, text } = outcome;
  if (status >= 500 || status === 429) throw new TemporaryFailure(`${new URL(sent.url).origin} answered ${status}`);
  try {
    return { status, body: JSON.parse(text) };
  } catch {
    return { status, body: undefined };
  }
}

const textIn = (body: unknown, name: string): string | undefined => {
  const value = (body as Readonly<Record<string, unknown>> | null | undefined)?.[name];
  return typeof value === "string" && value !== "" ? value : undefined;
};

/** The token of the variable, which only the service that it names may see: another one could use it there. */
function forEndpoint(token: string, endpoint: string): string {
  const { origin } = new URL(endpoint);
  let audience: unknown;
  try {
    const payload = Buffer.from(token.split(".")[1] ?? "", "base64url").toString();
    ({ aud: audience } = JSON.parse(payload) as { readonly aud?: unknown });
  } catch {
    throw failed(`${identityVariable} has no identity token: it must be a JWT`);
  }
  if (![audience].flat().includes(origin))
    throw failed(`the identity token in ${identityVariable} is not for this service: its audience must be ${origin}`);
  return token;
}

/** The identity token of the workflow, for this service alone. */
async function identityToken({ source, env, endpoint, transport }: IdentityOptions): Promise<string> {
  if (source === "variable") return forEndpoint(env[identityVariable] ?? "", endpoint);
  const url = new URL(env["ACTIONS_ID_TOKEN_REQUEST_URL"] ?? "");
  url.searchParams.set("audience", new URL(endpoint).origin);
  const authorization = `Bearer ${env["ACTIONS_ID_TOKEN_REQUEST_TOKEN"]}`;
  const { status, body } = await answerOf(transport, {
    ...{ method: "GET", url: url.href, body: undefined },
    headers: { authorization, accept: "application/json", "user-agent": "pulumi-machines" },
  });
  const token = textIn(body, "value");
  if (token === undefined) throw failed(`GitHub Actions gave no identity token: it answered ${status}`);
  return token;
}

/** One exchange. A lost answer cannot be had again, so the next try begins with another identity token, if there is one. */
async function exchanged(options: IdentityOptions): Promise<string> {
  const identity_token = await identityToken(options);
  const { status, body } = await answerOf(options.transport, {
    ...{ method: "POST", url: `${options.endpoint}/local/tokens/exchange` },
    headers: { "content-type": "application/json", accept: "application/json", "user-agent": "pulumi-machines" },
    body: JSON.stringify({ identity_token }),
  });
  const token = textIn(body, "token");
  if (status === 201 && token !== undefined) return token;
  const why = textIn(body, "error")?.replaceAll(identity_token, "[token]") ?? "no reason is known";
  throw failed(
    status === 404
      ? `${options.endpoint} exchanges no identity tokens; set an access token in MACHINES_TOKEN`
      : `${options.endpoint} refuses the identity token of this workflow: ${why}. \`machines-service trust list\` shows which it accepts.`,
  );
}

/** Gives the token of the run, and another one before it ends, or if the service `refused` it. */
export function identityTokens(options: IdentityOptions): (refused?: string) => Promise<string> {
  const { clock } = options;
  let current: { readonly token: Promise<string>; readonly at: number; value?: string } | undefined;
  const withRetries = async (): Promise<string> => {
    for (let tries = 0; ; tries++)
      try {
        return await exchanged(options);
      } catch (error) {
        if (!(error instanceof TemporaryFailure)) throw error;
        const pause = pauses[tries];
        if (pause === undefined)
          throw failed(
            `this workflow cannot sign in at ${options.endpoint} with its identity token: ${error.message}`,
            error,
          );
        await clock.sleep(pause);
      }
  };
  return (refused) => {
    if (refused !== undefined && current?.value === refused) current = undefined;
    const before = current;
    if (before && clock.now() - before.at < renewedMs) return before.token;
    const at = clock.now();
    const token = withRetries().catch((error: unknown) => {
      current = before;
      if (before && at - before.at < usedMs) return before.token;
      current = undefined;
      throw error;
    });
    const made: NonNullable<typeof current> = { token, at };
    current = made;
    void token.then(
      (value) => (made.value = value),
      () => {},
    );
    return token;
  };
}
